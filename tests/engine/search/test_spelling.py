"""Words of a question that no document has, and the documents in the middle of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from indexer import Document, Index
from search import Searcher

TEXTS = {
    "a": "Alzheimer disease is a disease of the brain.",
    "b": "Diseases of the heart are treated with medicines.",
    "c": "The garden needs water in dry summers.",
}


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> Any:
    folder = tmp_path_factory.mktemp("spelling") / "x.index"
    with Index.create(folder, model=module_encoder) as index:
        index.add(Document(uri, text) for uri, text in TEXTS.items())
    with Searcher(folder, module_encoder) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("alzhimer diseese", "alzheimer disease"),
        ("gardn", "garden"),
        ("the diseases of the garden", ""),  # every word is in a document
        ("heart zzzzqq", ""),  # no word is similar
        ("what is the gardens watter", "what is the gardens water"),
        ("dri", ""),  # too short
        ("haert gardan", "heart garden"),  # one letter, or two that changed places
        ("gerdan", ""),  # two letters of six
        ("alzhiemers medicnes", "alzheimer medicines"),
        ("gardn " * 16, "garden " * 16),
        ("gardn " * 17, ""),  # a text that was pasted
    ],
)
def test_words_that_no_document_has_are_replaced(searcher: Searcher, question: str, meant: str) -> None:
    assert searcher.search(question, mode="hybrid").did_you_mean == meant
    assert searcher.search(question, mode="dense").did_you_mean == ""


def test_a_word_that_texts_write_with_a_capital_keeps_it(tmp_path: Path, module_encoder: Any) -> None:
    """German nouns have a capital within a sentence. The first word of a sentence, and a word of capitals, lose it."""
    text = "Wir wollen den Kompost umsetzen. Kompost im Garten, GEMÜSE und Blätter. Schneiden wir Blumen? blumen."
    with Index.create(tmp_path / "x.index", model=module_encoder, language="de") as index:
        index.add([Document("a", text)])
    with Searcher(tmp_path / "x.index", module_encoder) as searcher:
        asked = searcher.search("kompots gartn gemüsse blättter schneidn blummen", mode="hybrid")
    assert asked.did_you_mean == "Kompost Garten gemüse Blätter schneiden blumen"


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("+garden alzhimer diseese", "+garden alzheimer disease"),
        ("alzhimer +garden diseese", ""),  # what is asked is not in one piece
        ('"gardn"', ""),  # a note on the condition names words like it
        ("disease +gardn", ""),
        ("gardn -gardnx", ""),  # the other word would be another condition
    ],
)
def test_conditions_stay_as_they_were_typed(searcher: Searcher, question: str, meant: str) -> None:
    assert searcher.search(question, mode="hybrid", literal=False).did_you_mean == meant


def test_the_first_word_of_a_text_loses_its_capital_below_a_title(tmp_path: Path, module_encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", model=module_encoder) as index:
        index.add([Document("a", "Fermenting takes a week.", title="Cabbage")])
    with Searcher(tmp_path / "x.index", module_encoder) as searcher:
        assert searcher.search("fermentng", mode="hybrid").did_you_mean == "fermenting"


def test_of_equally_similar_words_the_most_frequent_is_meant(tmp_path: Path, encoder: Any) -> None:
    texts = ["a barge", "a badge", "a badge and a barge", "a badge"]
    with Index.create(tmp_path / "x.index", model=encoder) as index:
        index.add(Document(str(number), text) for number, text in enumerate(texts))
    with Searcher(tmp_path / "x.index", encoder) as opened:
        assert opened.search("bazge", mode="words").did_you_mean == "badge"
    with Index.open(tmp_path / "x.index", encoder) as index:
        index.add(Document(f"{number} more", "a barge") for number in range(3))
    with Searcher(tmp_path / "x.index", encoder) as opened:
        assert opened.search("bazge", mode="words").did_you_mean == "barge"


def test_words_are_compared_as_they_are_written(tmp_path: Path, encoder: Any) -> None:
    """The stems anot, annot and anoth are equally alike, and "another" is frequent."""
    with Index.create(tmp_path / "x.index", model=encoder) as index:
        index.add([Document(str(n), f"another text {n}") for n in range(4)])
        index.add([Document("a", "annotations of types"), Document("r", "recipients of letters")])
    with Searcher(tmp_path / "x.index", encoder) as opened:
        assert opened.search("anotations", mode="words").did_you_mean == "annotations"
        assert opened.search("recipes", mode="words").did_you_mean == ""  # three letters fewer


def test_a_hit_that_is_no_nearer_than_chance_is_weak(searcher: Searcher) -> None:
    hits = searcher.search("disease of the brain", mode="hybrid")
    assert [hit.why["weak"] for hit in hits if hit.why] == [False] * len(hits)  # too small to be calibrated
