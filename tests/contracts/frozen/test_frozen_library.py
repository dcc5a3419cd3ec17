"""The library through its public names: documents, hits, filters, vectors of one's own, commits that are seen."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frozen_models import WIDTH, WordEncoder

import indexer
import search
from indexer import Changes, Document, Index, LikewiseError, Section
from search import Hit, Hits, Searcher

DOCUMENTS = [
    Document("a", "bread and flour", "Bread", {"year": 2020, "lang": "en", "price": 1.5, "draft": False}),
    Document("b", "the moon and the tide", "Moon", {"year": 2021, "lang": "de", "tags": ["sky", "sea"], "draft": True}),
    Document("c", "a cup of tea", "Tea", {"year": 2022, "lang": "en", "day": "2024-01-31", "deep": {"er": [1, 2]}}),
    Document("d", "money in the bank", "", {"price": 20, "odd key": "x", "path": "own"}),
    Document(
        *("/files/e.md", "# Dog\n\nwalk the dog", "Dog", {}, "/files/e.md", "markdown", "2024-05-06T07:08:09+00:00"),
        sections=(Section(0, "Dog"),),
    ),
]


HASHES = [
    ("a", "23c6dc0c938ecdbffc6afcf205aaa438", "630ed23981ffd2056374a528923f3713"),
    ("b", "cf1d431c1eeabb742fbc73ca3106e408", "22632d8f2f256266b5523fc8593059c2"),
    ("c", "2331b13b56aa6632517961cd8e965fd9", "07c647a146c9e800889478d3773e6f38"),
    ("d", "25bd61e5e4c0f9f8a27aae4e6baf596a", "f3d455b050ba304e2e726e15f56d9678"),
    ("/files/e.md", "0a1e3ecc551ae696f0520076eb381c88", "67d4008e48acc7c2e2c992a7ad342c3d"),
]


def error(call: Callable[[], Any]) -> str:
    """The name of the error that a call ends with."""
    with pytest.raises(LikewiseError) as raised:
        call()
    assert len(str(raised.value)) > 20
    return type(raised.value).__name__


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library") / "x.index"
    with Index.create(folder, WordEncoder()) as index:
        index.add(DOCUMENTS)
    return folder


@pytest.fixture(scope="module")
def searcher(made: Path) -> Iterator[Searcher]:
    with Searcher(made, WordEncoder()) as searcher:
        yield searcher


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy to write into."""
    shutil.copytree(made, tmp_path / "x.index")
    return tmp_path / "x.index"


def test_the_public_names() -> None:
    names = {"Changes", "Document", "Index", "LikewiseError", "Recipe", "Section", "load_encoder"}
    assert names <= set(indexer.__all__)
    assert {"Hit", "Hits", "Searcher"} <= set(search.__all__)


# documents


def test_documents_come_back_as_they_went_in(made: Path) -> None:
    with Index.open(made) as index:
        assert list(index) == DOCUMENTS
        assert [index.get(document.uri) for document in DOCUMENTS] == DOCUMENTS
        assert ("a" in index, "z" in index, len(index)) == (True, False, 5)
        assert error(lambda: index.get("z")) == "UnknownUri"
        report = index.check()
        assert (report.ok, report.problems, report.notes) == (True, (), ())
        assert index.info().fields == {
            "day": ("text",),
            "deep.er": ("number",),
            "draft": ("boolean",),
            "lang": ("text",),
            "metadata.path": ("text",),
            "odd key": ("text",),
            "price": ("number",),
            "tags": ("text",),
            "year": ("number",),
        }


def test_add_replace_update_unchanged_and_remove(folder: Path) -> None:
    encoder = WordEncoder()
    with Index.open(folder, encoder) as index:
        changes = index.add(
            [
                DOCUMENTS[0],
                Document("b", DOCUMENTS[1].text, DOCUMENTS[1].title, {"year": 1999}),
                Document("c", "another text", "Tea", DOCUMENTS[2].metadata),
                Document("new", "fish"),
            ]
        )
        assert changes == Changes(added=("new",), replaced=("c",), updated=("b",), unchanged=("a",))
        assert encoder.seen == ["Tea another text", "fish"]
        assert (index.get("b").metadata, index.get("c").text) == ({"year": 1999}, "another text")
        assert index.add(list(index)).unchanged == ("a", "b", "c", "d", "/files/e.md", "new")
        assert index.add([Document("new", "one"), Document("new", "two")]).replaced == ("new",)
        assert index.get("new").text == "two"
        assert index.remove(["a", "new"]) == 2
        assert index.remove("b") == 1
        assert error(lambda: index.remove(["c", "nothing"])) == "UnknownUri"
        assert [document.uri for document in index] == ["c", "d", "/files/e.md"]
        index.compact()
        assert index.check().ok
    with Searcher(folder, WordEncoder()) as searcher:
        assert {hit.uri for hit in searcher.search("tea", 10)} == {"c", "d", "/files/e.md"}
        assert searcher.search("moon", mode="words").matched == 0


@pytest.mark.parametrize(
    "document",
    [
        Document("", "text"),
        Document("x", "  "),
        Document("x", "a\0b"),
        Document("x", "text", metadata={"n": float("nan")}),
        Document("x", "text", metadata={"n": 2**70}),
        Document("x", "text", metadata={"o": object()}),
        Document("x", "\ud800"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is_added(folder: Path, document: Document) -> None:
    with Index.open(folder, WordEncoder()) as index:
        assert error(lambda: index.add([Document("good", "text"), document])) == "BadInput"
        assert len(index) == 5


def test_the_hashes_in_the_catalog(made: Path) -> None:
    with closing(sqlite3.connect(made / "catalog.db")) as catalog:
        hashes = catalog.execute("SELECT uri, lower(hex(content_hash)), lower(hex(row_hash)) FROM document").fetchall()
        settings = dict(catalog.execute("SELECT name, value FROM setting"))
        assert catalog.execute("SELECT DISTINCT length(vector), length(checksum) FROM passage").fetchall() == [(64, 8)]
    assert hashes == HASHES
    assert settings.keys() == {
        *("dimensions", "documents", "finished_run", "generation", "history", "language", "passages", "recipe", "run"),
    }
    assert (settings["dimensions"], settings["documents"], settings["language"]) == ("32", "5", "en")
    assert settings["passages"] == '{"max_tokens": 64, "overlap": 16}'


def test_another_recipe_is_refused(folder: Path, tmp_path: Path) -> None:
    from indexer import Recipe

    other = WordEncoder(Recipe("frozen-words", "6" * 64, WIDTH, 64))
    assert error(lambda: Index.open(folder, other)) == "RecipeMismatch"
    assert error(lambda: Searcher(folder, other)) == "RecipeMismatch"
    renamed = WordEncoder(Recipe("another name", "5" * 64, WIDTH, 64))
    with Index.open(folder, renamed) as index:
        assert index.add([Document("x", "text")]).added == ("x",)
    assert error(lambda: Index.open(tmp_path / "nothing")) == "NotAnIndex"
    assert error(lambda: Index.create(folder, WordEncoder())) == "BadInput"


# hits


def test_a_dense_hit(searcher: Searcher) -> None:
    hits = searcher.search("Moon the moon and the tide", 2)
    assert isinstance(hits, Hits)
    assert (hits.query, hits.mode, hits.matched, hits.exact, hits.answered, len(hits)) == (
        *("Moon the moon and the tide", "dense", 5, True, None, 2),
    )
    hit = hits[0]
    assert isinstance(hit, Hit)
    assert hit.why is not None
    assert (hit.uri, hit.title, hit.text, hit.start, hit.end) == ("b", "Moon", "the moon and the tide", 0, 21)
    assert (hit.score, hit.cosine) == (pytest.approx(1, abs=1e-3), pytest.approx(1, abs=1e-3))
    assert (hit.page, hit.line, hit.heading, hit.path, hit.format, hit.modified) == (None, None, "", None, None, None)
    assert hit.metadata == DOCUMENTS[1].metadata
    assert hit.why["words"] == [{"text": "moon", "start": 4, "end": 8}, {"text": "tide", "start": 17, "end": 21}]
    assert hits[0:2] == hits.hits
    assert hits.as_json()["hits"][0]["uri"] == "b"


def test_a_hit_in_a_file_has_line_and_heading(searcher: Searcher) -> None:
    hit = searcher.search("walk dog", mode="words")[0]
    assert (hit.uri, hit.path, hit.format, hit.line, hit.heading) == (
        "/files/e.md",
        "/files/e.md",
        "markdown",
        1,
        "Dog",
    )
    assert hit.modified == "2024-05-06T07:08:09+00:00"
    assert hit.score == pytest.approx(3.5222, abs=1e-3)


def test_every_way_to_ask(searcher: Searcher) -> None:
    vector = WordEncoder().encode(["Bread bread and flour"])[0]
    assert searcher.search_vector(vector, 1)[0].uri == "a"
    assert searcher.search_vector((7 * vector).tolist(), 1)[0].score == pytest.approx(1, abs=1e-3)
    many = searcher.search_many(["Tea a cup of tea", "money in the bank"], 2)
    assert [hits[0].uri for hits in many] == ["c", "d"]
    similar = searcher.similar("a", 9)
    assert (similar.matched, len(similar), "a" in {hit.uri for hit in similar}) == (4, 4, False)
    assert searcher.search("tea", 99).matched == len(searcher.search("tea", 99)) == 5
    assert searcher.search("the cup of the moon", 9, mode="words", where="year > 2021").matched == 1
    both = searcher.search("tea cup", 5, mode="hybrid")
    assert (both[0].uri, both.matched, len(both)) == ("c", 5, 5)
    assert searcher.search("Tea a cup of tea", 5, min_score=0.99).matched == 5
    assert [hit.uri for hit in searcher.search("Tea a cup of tea", 5, min_score=0.99)] == ["c"]
    reranked = searcher.search("tea", 1, rerank=lambda query, texts: [float("bank" in text) for text in texts])
    assert reranked[0].why is not None
    assert reranked[0].uri == "d"
    assert reranked[0].why["first"].keys() >= {"cosine", "bm25", "weights", "contributions", "rank", "score"}


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda s: s.search(""), "BadInput"),
        (lambda s: s.search("tea", 0), "BadInput"),
        (lambda s: s.search("the", mode="words"), "NoWords"),
        (lambda s: s.search("tea", mode="nonsense"), "BadInput"),
        (lambda s: s.search("tea", where="yaer = 1"), "UnknownField"),
        (lambda s: s.search("tea", where="year = "), "FilterSyntaxError"),
        (lambda s: s.search("tea", where='year = "2020"'), "FilterError"),
        (lambda s: s.similar("nothing"), "UnknownUri"),
        (lambda s: s.search_vector([1, 2, 3]), "BadInput"),
        (lambda s: s.search_vector([0] * WIDTH), "BadInput"),
        (lambda s: s.search_many("one string"), "BadInput"),
    ],
)
def test_what_is_refused(searcher: Searcher, ask: Callable[[Searcher], Any], name: str) -> None:
    assert error(lambda: ask(searcher)) == name


# filters


@pytest.mark.parametrize(
    ("where", "uris"),
    [
        ("year = 2020", "a"),
        ("year != 2020", "bc"),
        ("year < 2021", "a"),
        ("year <= 2021", "ab"),
        ("year > 2021", "c"),
        ("year >= 2020.5", "bc"),
        ("year in (2020, 2022)", "ac"),
        ("year not in (2020, 2022)", "b"),
        ("exists year", "abc"),
        ("year exists", "abc"),
        ("not exists year", "de"),
        ("price = 20", "d"),
        ("price > 1.25", "ad"),
        ("draft = true", "b"),
        ("draft != true", "a"),
        ("not draft = true", "acde"),
        ('lang = "en"', "ac"),
        ('lang in ("en", "de")', "abc"),
        ("lang = 'de'", "b"),
        ('lang > "de"', "ac"),
        ('tags = "sea"', "b"),
        ('tags != "sea"', ""),
        ("day = 2024-01-31", "c"),
        ("day < 2025-01-01", "c"),
        ("deep.er = 2", "c"),
        ("exists deep", "c"),
        ('`odd key` = "x"', "d"),
        ('metadata.path = "own"', "d"),
        ('path = "/files/e.md"', "e"),
        ("exists path", "e"),
        ('uri = "a" or uri = "d"', "ad"),
        ('title = "Moon"', "b"),
        ("exists title", "abce"),
        ('format = "markdown"', "e"),
        ("modified >= 2024-05-06", "e"),
        ("year >= 2021 and lang = 'en' or price = 20", "cd"),
        ("year >= 2021 and (lang = 'en' or draft = true)", "bc"),
        ("not (year >= 2021 or price = 20)", "ae"),
    ],
)
def test_a_filter(searcher: Searcher, where: str, uris: str) -> None:
    expected = {"/files/e.md" if letter == "e" else letter for letter in uris}
    hits = searcher.search("bread moon tea money dog", 10, where=where)
    assert ({hit.uri for hit in hits}, hits.matched) == (expected, len(expected))
    assert searcher.search("bread moon tea money dog", 10, where=where, mode="hybrid").matched == len(expected)
    words = searcher.search("bread moon tea money dog", 10, where=where, mode="words")
    assert {hit.uri for hit in words} == expected


# vectors of one's own


def test_vectors_of_ones_own(tmp_path: Path) -> None:
    rows = np.eye(4, dtype=np.float32) + 0.1
    with Index.create(tmp_path / "v.index", dimensions=4) as index:
        documents = [Document(f"d{at}", f"text {at}", metadata={"n": at}) for at in range(4)]
        assert index.add(documents, vectors=3 * rows).added == ("d0", "d1", "d2", "d3")
        assert index.add(documents, vectors=rows).unchanged == ("d0", "d1", "d2", "d3")
        assert index.add(documents[:1], vectors=rows[1:2]).replaced == ("d0",)
        assert index.add(documents[:1], vectors=rows[:1]).replaced == ("d0",)
        assert error(lambda: index.add([Document("x", "text")])) == "BadInput"
        assert error(lambda: index.add(documents, vectors=rows[:, :3])) == "BadInput"
        assert error(lambda: index.add(documents, vectors=0 * rows)) == "BadInput"
        assert (index.recipe, index.dimensions, len(index)) == (None, 4, 4)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    with Searcher(tmp_path / "v.index") as searcher:
        hits = searcher.search_vector(rows[2], 4)
        assert hits[0].uri == "d2"
        assert [hit.score for hit in hits] == pytest.approx(sorted(unit @ unit[2], reverse=True), abs=1e-3)
        assert searcher.search_vector(rows[2], 4, where="n < 2").matched == 2
        assert searcher.search("text 3", 1, mode="words")[0].uri == "d3"
        assert error(lambda: searcher.search("text")) == "BadInput"


# commits that are seen, and several at once


def test_a_searcher_sees_what_is_committed_and_a_replaced_folder(folder: Path, tmp_path: Path) -> None:
    with Searcher(folder, WordEncoder()) as searcher, Index.open(folder, WordEncoder()) as index:
        assert searcher.search("fish", 9).matched == 5
        index.add([Document("f", "fish")])
        assert (searcher.search("fish", 9)[0].uri, searcher.search("fish", 9).matched) == ("f", 6)
        assert searcher.search("fish", mode="words").matched == 1
        index.remove(["f"])
        assert (searcher.search("fish", 9).matched, searcher.search("fish", mode="words").matched) == (5, 0)
        with Index.create(tmp_path / "other.index", WordEncoder()) as other:
            other.add([Document("z", "a red fish")])
        folder.rename(tmp_path / "old.index")
        (tmp_path / "other.index").rename(folder)
        assert [hit.uri for hit in searcher.search("fish", 9)] == ["z"]


def test_a_copy_is_an_index_of_its_own(folder: Path, tmp_path: Path) -> None:
    with Index.open(folder, WordEncoder()) as index:
        index.copy(tmp_path / "copy.index")
        index.add([Document("later", "fish")])
    with Index.open(tmp_path / "copy.index", WordEncoder()) as copy:
        assert (len(copy), copy.check().ok) == (5, True)
        assert copy.info().history != index.info().history


def test_threads_share_a_searcher_and_an_index(folder: Path) -> None:
    found: list[int] = []
    with Searcher(folder, WordEncoder()) as searcher, Index.open(folder, WordEncoder()) as index:

        def work(number: int) -> None:
            index.add([Document(f"thread {number}", f"fish number {number}")])
            found.append(searcher.search("fish", 20, mode="words").matched)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert max(found) == searcher.search("fish", 20, mode="words").matched == 4
        assert len(index) == 9


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_read(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with Searcher(folder, WordEncoder()) as searcher:
        assert searcher.search("tea", 9).matched == 5
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
