"""Snippets: the part of a passage that holds the words of the question, with these words marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from likewise.shell.snippets import WIDTH, snippet
from likewise.shell.terminal.output import printable


def marked(passage: str, words: str, width: int = WIDTH) -> list[str]:
    found = snippet(passage, words.split(), width)
    return [found.text[start:end] for start, end in found.marks]


def test_the_words_are_marked_whole_and_in_scripts_without_spaces_anywhere() -> None:
    assert marked("Baking bread: the baker baked two Breads.", "Baking baked bread") == ["Baking", "bread", "baked"]
    assert marked("C++ and parse_json.", "parse_json C") == ["C", "parse_json"]
    assert marked("我住在东京都,不在京都。", "东京 京都") == ["东京", "京都"]
    assert marked("the cat is on it", "") == []


def test_a_word_that_goes_on_in_the_next_line_is_marked() -> None:
    found = snippet("我们在北\n京", ["北\n京", " "])
    assert (found.text, [found.text[start:end] for start, end in found.marks]) == ("我们在北京", ["北京"])
    assert snippet("A new\nline in 上\n\n海 and 東\n 京.", [], sentence="東\n 京.", width=15).text == "… 東京."


def test_a_short_passage_is_shown_whole_and_on_one_line() -> None:
    found = snippet("A heading\n=========\n\n  two   lines\nof text\n", ["nothing"])
    assert (found.text, found.marks) == ("A heading two lines of text", ())


def test_a_long_passage_is_cut_around_the_words_of_the_question() -> None:
    passage = " ".join(["filler"] * 200 + ["the tide follows the moon"] + ["filler"] * 200)
    found = snippet(passage, ["moon", "tide"], 120)
    assert found.text.startswith("… ")
    assert found.text.endswith(" …")
    assert marked(passage, "moon tide", 120) == ["tide", "moon"]
    assert len(found.text) <= 120 + 4
    assert snippet(passage, [], 50).text == " ".join(["filler"] * 7) + " …"


def test_a_word_longer_than_the_width_is_cut() -> None:
    assert snippet("x" * 1000, ["question"], 100).text == "x" * 100 + " …"


@given(st.text(max_size=800), st.lists(st.text(min_size=1, max_size=8)), st.integers(20, 200))
def test_marks_lie_in_the_text_in_order_and_survive_cleaning(passage: str, words: list[str], width: int) -> None:
    found = snippet(passage, words, width)
    assert len(printable(found.text)) == len(found.text) <= width + 4
    assert "\n" not in found.text
    reached = 0
    for start, end in found.marks:
        assert reached <= start < end <= len(found.text)
        reached = end
