"""A dash in a question: inside it excludes nothing; at its end it excludes a word that no document holds with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from indexer import Document, Index
from search import AsyncSearcher, Query, Searcher, search_indexes

HELD = {
    "tar": "`tar -xzf archive.tar.gz` unpacks an archive that was compressed with gzip.",
    "frost": "It was (−40 °C) in Siberia, -40 °F as well, and -4.5 at sea. In Tokyo －20: 上海-北京",
    "gcc": "Compile with '-std=c++20' and -O2, but x-ray, --force and covid-19 are no flags.",
}

INSIDE = [
    "what does tar -xzf do",
    "unpack -gzip archive",
    "siberia -archive sea",
    "-archive siberia",
    "-gzip -siberia compile",
    'the -"archive that" siberia',
    "siberia -archive, or the sea?",
    "archive -siberia — compile",
    "siberia -archive --force",
    "archive -siberia a - b",
]
"""Questions whose dashes are all before a plain word."""

WITH_ITS_DASH = [
    ("unpack tar -xzf", "tar", "-xzf"),
    ("-xzf", "tar", "-xzf"),
    ("archive -XZF?", "tar", "-XZF?"),
    ("siberia -40", "frost", "-40"),
    ("sea -4.5", "frost", "-4.5"),
    ("tokyo -20", "frost", "-20"),
    ("siberia +was -40", "frost", "-40"),
    ("compile -std=c++20", "gcc", "-std=c++20"),
    ("compile -std -o2", "gcc", "-std, -o2"),
    ("siberia compile -40 -xray", "frost", "-40"),
]
"""Questions that end with words of documents that hold the dash, the best hit, and these words."""

EXCLUDING = [
    ("archive siberia compile -gzip", ["frost", "gcc"]),
    ("archive siberia compile -siberia -compressed", ["gcc"]),
    ("archive siberia compile -ray", ["frost", "tar"]),  # x-ray
    ("archive siberia compile -force", ["frost", "tar"]),  # --force
    ("archive siberia compile -19 .", ["frost", "tar"]),  # covid-19
    ('archive siberia compile -"xzf"', ["frost", "gcc"]),
    ("archive siberia compile -c++20", ["frost", "tar"]),  # -std=c++20
    ("-gzip -siberia", ["gcc"]),
    ("archive siberia compile -xzf -gzip", ["frost", "gcc"]),
    ("东京 archive compile -北京", ["gcc", "tar"]),
]
"""Questions that end with words that are excluded, and the documents that are left."""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> list[Path]:
    """Two indexes: the second one alone holds flags of a compiler."""
    folder = tmp_path_factory.mktemp("dashes")
    for name, uris in (("all", HELD), ("two", ["tar", "frost"]), ("gcc", ["gcc"])):
        with Index.create(folder / f"{name}.index", module_encoder) as index:
            index.add([Document(uri, HELD[uri]) for uri in uris])
    return [folder / f"{name}.index" for name in ("all", "two", "gcc")]


@pytest.fixture(scope="module")
def flags(paths: list[Path], module_encoder: Any) -> Iterator[Searcher]:
    with Searcher(paths[0], module_encoder) as searcher:
        yield searcher


@pytest.mark.parametrize("question", INSIDE)
def test_a_dash_inside_a_question_excludes_nothing(flags: Searcher, question: str) -> None:
    hits, literally = (flags.search(question, literal=literal, explain=True) for literal in (False, True))
    assert ([hit.uri for hit in hits], hits.matched) == ([hit.uri for hit in literally], 3)
    assert [hit.score for hit in hits] == [hit.score for hit in literally]
    (note,) = hits.notes
    assert note.startswith("read as words: -")
    assert '; to leave out documents with a word, end the question with -"' in note


@pytest.mark.parametrize(("question", "best", "words"), WITH_ITS_DASH)
def test_a_word_that_documents_hold_with_its_dash_is_asked(
    flags: Searcher, question: str, best: str, words: str
) -> None:
    hits = flags.search(question, mode="words", literal=False)
    assert hits[0].uri == best
    assert hits.notes[-1].startswith(f"read as words: {words}; ")
    assert hits.query == question
    assert flags.search(question, literal=False, explain=True)[0].why is not None


@pytest.mark.parametrize(("question", "left"), EXCLUDING)
def test_other_words_at_the_end_are_excluded(flags: Searcher, question: str, left: list[str]) -> None:
    for mode in ("dense", "words", "hybrid"):
        hits = flags.search(question, mode=mode, literal=False)  # type: ignore[arg-type]
        assert (sorted(hit.uri for hit in hits), hits.matched) == (left, len(left)), mode
        assert hits.notes[0].startswith("read as conditions: -")


@pytest.mark.needs("federation")
def test_all_ways_to_ask_read_dashes_alike(flags: Searcher, paths: list[Path], module_encoder: Any) -> None:
    async def answers(questions: list[str]) -> list[Any]:
        async with AsyncSearcher(paths[0], module_encoder) as searcher:
            return [await searcher.search(question, literal=False) for question in questions]

    questions = [*INSIDE, *(question for question, *_ in (*WITH_ITS_DASH, *EXCLUDING))]
    with Searcher(paths[1], module_encoder) as two, Searcher(paths[2], module_encoder) as gcc:
        for question, answered in zip(questions, asyncio.run(answers(questions)), strict=True):
            alone = flags.search(question, literal=False)
            assert answered == alone
            together = search_indexes([two, gcc], Query(question, literal=False))
            assert {hit.uri for hit in together} == {hit.uri for hit in alone}, question
            assert together.notes == alone.notes


def test_a_word_excludes_again_when_its_document_is_gone(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index", encoder) as searcher:
        index.add([Document(uri, text) for uri, text in (*HELD.items(), ("other", "xzf is a name"))])
        assert len(searcher.search("archive -xzf", literal=False)) == 4
        index.remove(["tar"])
        hits = searcher.search("archive -xzf", literal=False)
        assert sorted(hit.uri for hit in hits) == ["frost", "gcc"]
        assert hits.notes == ("read as conditions: -xzf",)


def test_a_reranker_reads_words_with_their_dash(flags: Searcher) -> None:
    read = list[str]()

    def scorer(question: str, texts: Sequence[str]) -> list[float]:
        read.append(question)
        return [float("gzip" in text) for text in texts]

    assert flags.search("sea -xzf -ray", rerank=scorer, literal=False)[0].uri == "tar"
    assert read == ["sea -xzf"]
