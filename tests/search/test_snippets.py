"""What of a passage a person is shown: the part that holds the question's words, with those words marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.cli.terminal import printable
from search.snippets import WIDTH, snippet, stem


def marked(passage: str, query: str, width: int = WIDTH) -> list[str]:
    found = snippet(passage, query, width)
    return [found.text[start:end] for start, end in found.marks]


def test_words_of_the_question_are_marked_in_any_case_and_form() -> None:
    assert marked("Baking bread: the baker baked two Breads.", "bake bread") == ["Baking", "bread", "baked", "Breads"]
    assert marked("Ein großes Haus", "GROSSES haus") == ["großes", "Haus"]
    assert marked("the cat is on it", "is it on") == []  # words of two letters say little


def test_a_short_passage_is_shown_whole_and_on_one_line() -> None:
    found = snippet("A heading\n=========\n\n  two   lines\nof text\n", "nothing")
    assert (found.text, found.marks) == ("A heading two lines of text", ())


def test_a_long_passage_is_cut_around_the_words_of_the_question() -> None:
    passage = " ".join(["filler"] * 200 + ["the tide follows the moon"] + ["filler"] * 200)
    found = snippet(passage, "moon tides", 120)
    assert found.text.startswith("… ")
    assert found.text.endswith(" …")
    assert marked(passage, "moon tides", 120) == ["tide", "moon"]
    assert len(found.text) <= 120 + 4
    assert snippet(passage, "", 50).text == " ".join(["filler"] * 7) + " …"


def test_a_word_longer_than_the_width_is_cut() -> None:
    assert snippet("x" * 1000, "question", 100).text == "x" * 100 + " …"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("bake", "baking", True),
        ("tides", "tide", True),
        ("Vaccines", "vaccine", True),
        ("cat", "cats", True),
        ("cat", "car", False),
    ],
)
def test_stems(one: str, other: str, same: bool) -> None:
    assert (stem(one) == stem(other)) == same


@given(st.text(max_size=800), st.text(max_size=60), st.integers(20, 200))
def test_marks_lie_in_the_text_in_order_and_survive_cleaning(passage: str, query: str, width: int) -> None:
    found = snippet(passage, query, width)
    assert len(printable(found.text)) == len(found.text) <= width + 4
    assert "\n" not in found.text
    reached = 0
    for start, end in found.marks:
        assert reached <= start < end <= len(found.text)
        reached = end
