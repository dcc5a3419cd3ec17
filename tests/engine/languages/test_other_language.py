"""Questions in another language than the texts, to an index of a model that reads both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer import Document, Index
from indexer.encoders import Recipe
from indexer.languages.models import reads_many_languages
from indexer.languages.questions import names
from search import Searcher

TEXTS = {
    "panthers": "The defense of the Panthers gave up 308 points. Fans die to see the art of Jared Allen.",
    "gift": "A gift was fast on the way. Musical points of the verse are an art.",
    "war": "The war hat is a rat. Houses of the old town stood by the river for years.",
}
GERMAN = "Wie viele Punkte gab die Verteidigung der Panthers im Jahr 308 durch Art und Gift an Jared Allen ab?"


@pytest.fixture
def make_index(tmp_path: Path, make_encoder: Callable[..., Any]) -> Iterator[Callable[[str], Searcher]]:
    searchers = list[Searcher]()

    def make(model: str) -> Searcher:
        with Index.create(tmp_path / "x.index", model=make_encoder(name=model)) as index:
            index.add(Document(uri, text) for uri, text in TEXTS.items())
        searchers.append(Searcher(tmp_path / "x.index"))
        return searchers[-1]

    yield make
    for searcher in searchers:
        searcher.close()


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (GERMAN, "Punkte Verteidigung Panthers Jahr 308 Art Gift Jared Allen"),
        ("Who won in 1990 with U2?", "1990 U2"),
        ("who wrote it", ""),
        ("كم عدد نقاط Panthers في 2015", "Panthers 2015"),
        ("卡罗来纳黑豹队的Panthers在2015年用vim", "Panthers 2015 vim"),
        ("", ""),
    ],
)
def test_names_have_a_capital_or_a_digit_or_another_script(question: str, found: str) -> None:
    assert names(question) == found


def test_names_alone_rank_and_are_marked(make_index: Callable[[str], Searcher]) -> None:
    searcher = make_index("intfloat/multilingual-e5-small")
    hits = searcher.search(GERMAN, mode="hybrid")
    assert hits[0].uri == "panthers"
    marked = {hit.uri: [word["text"] for word in (hit.why or {})["words"]] for hit in hits}
    assert marked == {"panthers": ["Panthers", "308", "Jared", "Allen"], "gift": [], "war": []}
    assert hits.did_you_mean == searcher.search(GERMAN, mode="words").did_you_mean == ""
    assert hits.notes == ()
    (dense, *_) = searcher.search(GERMAN)
    assert [word["text"] for word in (dense.why or {})["words"]] == ["Panthers", "308", "Jared", "Allen"]
    nameless = searcher.search("wie war die art und das gift am fluss", mode="hybrid")
    assert nameless.notes == ()
    assert {(hit.why or {})["contributions"]["words"] for hit in nameless} == {0.0}


def test_questions_in_the_language_of_the_texts_keep_their_words(make_index: Callable[[str], Searcher]) -> None:
    searcher = make_index("multilingual-e5-small")
    hits = searcher.search("panters defence points", mode="hybrid")
    assert hits.did_you_mean == "Panthers defense points"
    assert [word["text"] for word in (hits[0].why or {})["words"]] == ["points"]


def test_other_models_keep_every_word(make_index: Callable[[str], Searcher]) -> None:
    hits = make_index("all-MiniLM-L6-v2").search(GERMAN, mode="hybrid")
    marked = {word["text"] for hit in hits for word in (hit.why or {})["words"]}
    assert {"die", "art", "gift"} <= marked


@pytest.mark.parametrize(
    ("model", "many"),
    [
        ("intfloat/multilingual-e5-small", True),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", True),
        ("http://localhost:11434/v1#bge-m3:latest", True),
        ("all-MiniLM-L6-v2", False),
        ("/models/ours", False),
    ],
)
def test_models_of_many_languages_are_known_by_name(model: str, many: bool) -> None:
    assert reads_many_languages(Recipe(model, "0" * 64, 384, 256)) is many
    assert not reads_many_languages(None)
