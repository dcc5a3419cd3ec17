"""The words of a question are marked in passages: whole words alone, in their places, the question analysed once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.stores.words.analysis import UNSPACED, Analysis
from search.hits import marks
from search.hits.marks import QuestionWords


def marked(text: str, question: str, language: str = "en") -> list[str]:
    return [word["text"] for word in QuestionWords(Analysis(language), question).mark(text)]


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        ("Cats. The cat's category: cat", "cats", ["Cats", "cat", "cat"]),
        ("v2.3.1, 3.1 and 13.12", "3.1", ["v2.3.1", "3.1"]),
        ("numpy.array ..array .array", "array", ["numpy.array", "array", "array"]),
        ("ends with cat. ", "cat", ["cat"]),
        ("the β-cells, β and 5 µm cells", "cell β", ["β", "cells", "β", "cells"]),
        ("東京のcats、cat", "東京 cat", ["東京", "cats", "cat"]),
        ("我们在北\n京的图书馆", "北京", ["北\n京"]),
        ("an e\u200bmail", "email", ["e\u200bmail"]),
        ("nothing here", "cat", []),
        ("the and", "the", []),
    ],
)
def test_whole_words_are_marked_in_their_order(text: str, question: str, words: list[str]) -> None:
    assert marked(text, question) == words


def test_offsets_are_those_of_the_document() -> None:
    assert QuestionWords(Analysis("en"), "cats").mark("the cat, a concat, and CATS", start=100) == [
        {"text": "cat", "start": 104, "end": 107},
        {"text": "CATS", "start": 123, "end": 127},
    ]


@given(
    st.text(st.sampled_from("aAbé_.. -1ßx"), max_size=40),
    st.lists(st.text(st.sampled_from("aAbé.1ß"), min_size=1, max_size=4), min_size=1, max_size=3),
    st.sampled_from(["none", "de", "fr"]),
)
def test_marks_are_those_of_looking_at_each_word(text: str, question: list[str], language: str) -> None:
    analysis = Analysis(language)
    terms = set(analysis.terms(" ".join(question)))
    expected = [
        found.span()
        for found in re.finditer(r"\w+(?:\.\w+)*", text)
        if not terms.isdisjoint([*analysis.terms(found[0]), *analysis.stems(found[0])])
    ]
    assert not re.search(f"[{UNSPACED}]", text)
    words = QuestionWords(analysis, " ".join(question)).mark(text)
    assert [(word["start"], word["end"]) for word in words] == expected


def test_the_question_is_analysed_once_for_all_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = Analysis.question_terms

    def watched(self: Analysis, question: str) -> Any:
        asked.append(question)
        return real(self, question)

    monkeypatch.setattr(Analysis, "question_terms", watched)
    question = QuestionWords(Analysis("en"), "moons")
    assert [len(question.mark(text)) for text in ("a moon", "moons and moons", "the sun")] == [1, 2, 0]
    assert question.share_in("the moon rises") == 1
    assert asked == ["moons"]


@pytest.mark.parametrize(
    ("question", "text", "holds"),
    [
        *(("covid-19", "COVID 19 in schools", True), ("covid-19", "Covid-19", True), ("covid-19", "covid", False)),
        *(("wifi", "Wi-Fi", True), ("1000000 stars", "1,000,000 star", True)),
    ],
)
def test_a_text_holds_a_question_that_is_joined_there_or_in_the_question(question: str, text: str, holds: bool) -> None:
    assert (QuestionWords(Analysis("en"), question).share_in(text) == 1) is holds


def test_a_full_vocabulary_is_replaced_and_an_answer_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_VOCABULARY_WORDS", 2)
    monkeypatch.setattr(marks, "_vocabularies", {})
    first = QuestionWords(Analysis("none"), "one")
    assert len(first.mark("one two three")) == 1
    assert len(QuestionWords(Analysis("none"), "four").mark("one four")) == 1
    assert len(marks._vocabularies[Analysis("none")].terms) == 2
    assert len(first.mark("one two three")) == 1
