"""The contract of every store, in the files of this folder: one suite for the folder, PostgreSQL and the reference
store.

Expected values are literal, computed by brute force, or those of the reference store after the same operations.
Passages are compared by uri and start, as ids are the engine's own. Here are the engines, and what the files share.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.stores.reference import ReferenceEngine

from indexer.filters.parse import parse
from indexer.filters.tree import COLUMNS, Where
from indexer.records import Document, Span, Stamp, Vector
from indexer.settings import Meaning, Settings
from indexer.stores.addresses.life_cycle import create
from indexer.stores.addresses.open import engine_of
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.port import Batch, Conditions, EmbeddedDocument, Hashes, Passage, Ranking, Unit
from indexer.stores.reading import store
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store

DIMENSIONS = 4
SETTINGS = Settings(DIMENSIONS)
MEANING = Meaning("a recipe", "some passages")
UNITS: tuple[Unit, Unit] = ("document", "passage")
AXES = np.eye(DIMENSIONS, dtype=np.float32)
MANY = 10**20
"""More than there are, and more than 64 bits hold: all of them are asked for."""

NEAR = 2e-4
"""How far a BM25 score may be from another engine's: both are rounded to four digits."""


@dataclass(frozen=True)
class Engine:
    """How stores of one kind are found: `at` gives the engine for a path of a test.

    `held` has another process write to one, as far as it can tell.
    """

    at: Callable[[str], store.Engine]
    held: Callable[[Store], Any] | None = None

    def create(self, path: str, settings: Settings) -> Store:
        return create(self.at(path), settings)

    def open(self, path: str) -> Store:
        return self.at(path).open()


@contextmanager
def _held_folder(store: Store) -> Iterator[Callable[[], None]]:
    """Hold the lock as another process does: it belongs to the open file. Yields how to let go of it."""
    file = os.open(Path(store.address) / "LOCK", os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield lambda: fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)


def _in_database(path: str) -> store.Engine:
    """Return the engine of the index in the tests' database that stands for a path of a test."""
    from postgres_server import address_of

    return engine_of(path if "://" in path else address_of(path))


ENGINES = {
    "reference": Engine(ReferenceEngine.at),
    "folder": Engine(engine_of, _held_folder),
    "postgres": Engine(_in_database),
}


def unit(*rows: Sequence[float]) -> Vector:
    vectors = np.array(rows, np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def random_rows(count: int, seed: int) -> Vector:
    return unit(*np.random.default_rng(seed).normal(size=(count, DIMENSIONS)))


def hashed(document: Document) -> Hashes:
    return Hashes(content_hash(document, MEANING), row_hash(document))


def doc(
    uri: str,
    text: str = "",
    vectors: Vector | None = None,
    spans: Sequence[Span] | None = None,
    **members: Any,
) -> EmbeddedDocument:
    """A document of one passage in the direction of the first axis, unless told otherwise."""
    document = Document(uri, text, **members)
    spans = (Span(0, len(text), tokens=len(text.split())),) if spans is None else tuple(spans)
    vectors = np.tile(AXES[:1], (len(spans), 1)) if vectors is None else vectors.reshape(len(spans), -1)
    return EmbeddedDocument(document, hashed(document), tuple(spans), vectors)


def row_of(uri: str, text: str = "", **members: Any) -> EmbeddedDocument:
    """An update of a document's row alone."""
    document = Document(uri, text, **members)
    return EmbeddedDocument(document, hashed(document))


def put(store: Store, *documents: EmbeddedDocument, **batch: Any) -> Any:
    with store.writer() as writer:
        return writer.put(Batch(documents, **batch))


def remove(store: Store, *uris: str) -> int:
    with store.writer() as writer:
        return writer.remove(uris)


def shown(snapshot: Snapshot, ids: Iterable[int]) -> list[tuple[str, int]]:
    return [(passage.uri, passage.start) for passage in snapshot.passages_by_id([int(id_) for id_ in ids])]


def notes_of(snapshot: Snapshot) -> list[str]:
    """Return the notes of a check, without the note on an old version of the server."""
    return [note for note in snapshot.check(None).notes if not note.startswith("pgvector ")]


def uris(snapshot: Snapshot, ranking: Ranking) -> list[str]:
    return [uri for uri, _ in shown(snapshot, ranking.passages)]


def everything(store: Store) -> dict[str, Any]:
    """Return the content of a store, as values that can be compared."""
    with store.snapshot() as snapshot:
        return {
            "counts": (snapshot.documents, snapshot.passages),
            "settings": snapshot.settings,
            "hashes": dict(snapshot.hashes()),
            "documents": [snapshot.get(uri) for uri in snapshot.hashes()],
            "ids": snapshot.sample(10_000).passages.tolist(),
            "vectors": snapshot.sample(10_000).vectors.tolist(),
            "files": dict(snapshot.files()),
            "ledger": list(snapshot.ledger()),
            "counts of states": dict(snapshot.ledger_counts()),
            "fields": snapshot.info().fields,
            "tokens": snapshot.info().tokens,
        }


STAMPS = {"/f": Stamp(10, 20, 30, 40)}


def filled(store: Store, documents: int = 12, seed: int = 3) -> Vector:
    """Documents of one to three passages with random vectors, some of them equal; returns a question."""
    chance = np.random.default_rng(seed)
    rows = random_rows(3 * documents, seed)
    rows[5::7] = rows[2]
    put(
        store,
        *(
            doc(
                f"d{number}",
                f"{number:03} text",
                rows[3 * number : 3 * number + count],
                [Span(at, at + 4) for at in range(count)],
                metadata={"n": number, "even": number % 2 == 0},
            )
            for number in range(documents)
            for count in (int(chance.integers(1, 4)),)
        ),
    )
    return random_rows(1, seed + 1)[0]


def stamp_sizes(store: Store) -> dict[str, int]:
    with store.snapshot() as snapshot:
        return {path: file.stamp.size for path, file in snapshot.files().items()}


QUESTIONS = ["apple", "the fig tree top", "京都 naïve unknown"]


def agree(one: Snapshot, other: Snapshot, vectors: Sequence[Vector], filters: Sequence[str | None] = (None,)) -> None:
    """Assert that two stores give the same answers to everything; scores of words but for their last digit."""
    assert (one.documents, one.passages) == (other.documents, other.passages)
    assert dict(one.hashes()).keys() == dict(other.hashes()).keys()
    assert one.info().fields == other.info().fields
    for field in (*one.info().fields, *COLUMNS):
        assert one.values(field, 5) == other.values(field, 5), field
    for uri in one.hashes():
        assert one.get(uri) == other.get(uri)
        np.testing.assert_array_equal(one.vectors_of(uri), other.vectors_of(uri))
        assert without_ids(one.passages_of(uri)) == without_ids(other.passages_of(uri))
    every = [passages_of(snapshot, snapshot.sample(10_000).passages) for snapshot in (one, other)]
    assert every[0] == every[1]
    assert shown(one, one.sample(4, 3).passages) == shown(other, other.sample(4, 3).passages)
    for text in filters:
        where = parse(text) if text else None
        for unit_ in UNITS:
            for vector in vectors:
                for k in (3, 1000):
                    pair = [snapshot.dense(vector, k, where, unit_, False) for snapshot in (one, other)]
                    assert shown(one, pair[0].passages) == shown(other, pair[1].passages)
                    assert pair[0].matched == pair[1].matched
                    np.testing.assert_allclose(pair[0].scores, pair[1].scores, atol=1e-6)
            for question in QUESTIONS:
                whole = other.words(question, 1000, where, unit_)
                for k in (2, 1000):
                    same_words(one, one.words(question, k, where, unit_), other, whole, k)
            same_candidates(one, other, vectors[0], 3, where, unit_)
    for count, least in ((4, -1.0), (1000, 0.5)):
        mine, theirs = (snapshot.nearest_pairs(count, least).scores for snapshot in (one, other))
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def passages_of(snapshot: Snapshot, ids: Iterable[int]) -> list[dict[str, Any]]:
    return without_ids(snapshot.passages_by_id([int(id_) for id_ in ids]))


def without_ids(rows: Sequence[Passage]) -> list[dict[str, Any]]:
    names = (
        "uri",
        "title",
        "text",
        "start",
        "end",
        "line",
        "heading",
        "page",
        "path",
        "format",
        "modified",
        "metadata",
    )
    return [{name: getattr(row, name) for name in names} for row in rows]


def same_words(one: Snapshot, ranking: Ranking, other: Snapshot, whole: Ranking, k: int) -> None:
    """A ranking by words is the first k of the other store's whole one, but that near ties may change places."""
    assert ranking.matched == whole.matched
    assert len(ranking.passages) == min(k, whole.matched)
    np.testing.assert_allclose(ranking.scores, whole.scores[:k], atol=NEAR)
    expected = dict(zip(shown(other, whole.passages), whole.scores.tolist(), strict=True))
    found = shown(one, ranking.passages)
    if found != list(expected)[:k]:
        own = {uri: score for (uri, _), score in expected.items()} if len(found) == len({*found}) else {}
        for (uri, start), score in zip(found, ranking.scores.tolist(), strict=True):
            assert expected.get((uri, start), own.get(uri)) == pytest.approx(score, abs=NEAR)


def same_candidates(
    one: Snapshot,
    other: Snapshot,
    vector: Vector,
    depth: int,
    where: Where | None,
    unit_: Unit,
    questions: Sequence[str] = ("pear plum", "the"),
    conditions: Conditions = (),
) -> None:
    """Candidates agree. Candidates from words alone may differ if the last of them nearly tie."""
    for question in questions:
        mine, theirs = (s.candidates(vector, question, depth, where, unit_, False, conditions) for s in (one, other))
        assert (mine.terms, mine.matched) == (theirs.terms, theirs.matched)
        if shown(one, mine.passages) == shown(other, theirs.passages):
            np.testing.assert_allclose(mine.cosines, theirs.cosines, atol=1e-6)
            np.testing.assert_allclose(mine.best_means, theirs.best_means, atol=1e-6)
            np.testing.assert_allclose(mine.words, theirs.words, atol=NEAR)
            assert mine.complete == theirs.complete
        else:
            np.testing.assert_allclose(np.sort(mine.words)[-depth:], np.sort(theirs.words)[-depth:], atol=NEAR)
