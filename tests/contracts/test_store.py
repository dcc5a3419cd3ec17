"""What every store must do: one body over the folder and the reference store.

Expected values are literal, computed here by brute force, or those of the reference store after the same operations.
Passages are compared by uri and start, as ids are the engine's own.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contracts.reference import ReferenceEngine, ReferenceStore
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from indexer.copying import backup
from indexer.encoders.recipe import Recipe
from indexer.errors import BadInput, FilterError, IndexDamaged, IndexLocked, LikewiseError, NotAnIndex, NoWords
from indexer.filters.dates import Date, read_date
from indexer.filters.mapping import filter_tree
from indexer.filters.operators import COMPARISONS, TEXT_OPERATORS
from indexer.filters.parse import parse
from indexer.filters.tree import (
    COLUMNS,
    And,
    Compare,
    Exists,
    In,
    Not,
    Or,
    TextMatch,
    Type,
    Under,
    Where,
    matches,
    render,
)
from indexer.ledger import HELD, NO_REASON, Code, LedgerState, Reason
from indexer.passages import PassageSettings
from indexer.records import Changes, Document, KnownFile, Section, Span, Stamp, Vector
from indexer.settings import PERCENTILES, Calibration, Meaning, Probed, Settings
from indexer.stores import port
from indexer.stores.field_types import KEEPS_DATES, check_filter
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.life_cycle import create, draft
from indexer.stores.open import engine_of
from indexer.stores.port import (
    Batch,
    EmbeddedDocument,
    FieldValues,
    Hashes,
    LedgerRow,
    Ranking,
    ReasonCount,
    RunOutcome,
    SideSlot,
    Snapshot,
    Store,
    Unit,
    Writer,
)
from indexer.stores.vectors import from_blobs, to_blobs

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

    at: Callable[[str], port.Engine]
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


def _in_database(path: str) -> port.Engine:
    """Return the engine of the index in the tests' database that stands for a path of a test."""
    from postgres_server import address_of

    return engine_of(path if "://" in path else address_of(path))


ENGINES = {
    "reference": Engine(ReferenceEngine.at),
    "folder": Engine(engine_of, _held_folder),
    "postgres": Engine(_in_database),
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


@pytest.fixture
def make(engine: Engine, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Makes empty stores."""
    stores: list[Store] = []

    def create(settings: Settings = SETTINGS) -> Store:
        stores.append(engine.create(str(tmp_path / f"{len(stores)}.index"), settings))
        return stores[-1]

    yield create
    for store in stores:
        store.close()


@pytest.fixture
def store(make: Callable[..., Store]) -> Store:
    return make()


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
    """What a check notes, but for a version of the server's that is older than it should be."""
    return [note for note in snapshot.check(None).notes if not note.startswith("pgvector ")]


def uris(snapshot: Snapshot, ranking: Ranking) -> list[str]:
    return [uri for uri, _ in shown(snapshot, ranking.passages)]


def everything(store: Store) -> dict[str, Any]:
    """What a store holds, in values that compare."""
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


# documents


def test_an_empty_store_answers_everything(store: Store) -> None:
    with store.snapshot() as snapshot:
        assert (snapshot.documents, snapshot.passages, snapshot.settings) == (0, 0, SETTINGS)
        assert (dict(snapshot.hashes()), snapshot.get("a"), snapshot.vectors_of("a")) == ({}, None, None)
        for one in UNITS:
            for ranking in (snapshot.dense(AXES[0], 5, None, one, False), snapshot.words("apple", 5, None, one)):
                assert (len(ranking.passages), ranking.matched, ranking.exact) == (0, 0, True)
            candidates = snapshot.candidates(AXES[0], "apple", 5, None, one, False)
            assert (len(candidates.passages), candidates.terms, candidates.matched) == (0, 1, 0)
            assert candidates.complete
        assert snapshot.sample(5).vectors.shape == (0, DIMENSIONS)
        assert snapshot.nearest_pairs(5, -1.0).passages == 0
        assert (dict(snapshot.files()), list(snapshot.ledger()), dict(snapshot.ledger_counts())) == ({}, [], {})
        assert list(snapshot.ledger_of_documents()) == []
        assert snapshot.passages_by_id([]) == []
        info, recall = snapshot.info(), snapshot.recall()
        assert (info.documents, info.passages, info.tokens, info.dimensions) == (0, 0, 0, DIMENSIONS)
        assert (recall.recall, recall.questions, recall.exact) == (1.0, 0, True)
        assert snapshot.check(MEANING).ok
        assert not snapshot.matches("a", parse("anything = 1"))
        assert snapshot.dense(AXES[0], 5, parse("anything = 1"), "document", False).matched == 0
        with pytest.raises(FilterError, match="compare it with text"):
            snapshot.dense(AXES[0], 5, parse("title = 1"), "document", False)
    assert (list(store.iterate()), list(store.export())) == ([], [])


def test_put_adds_replaces_and_updates(store: Store) -> None:
    changes = put(store, doc("a", "one two"), doc("b", "three", metadata={"n": 1}), doc("c", "four"))
    assert (changes.added, changes.replaced, changes.updated) == (("a", "b", "c"), (), ())
    with store.snapshot() as snapshot:
        first = snapshot.passages_by_id(snapshot.sample(9).passages.tolist())
    parts = [Span(0, 3, tokens=5), Span(4, 7, tokens=6)]
    changes = put(
        store,
        doc("d", "five"),
        doc("a", "new one", unit([0, 1, 0, 0], [0, 0, 1, 0]), parts),
        row_of("b", "three", metadata={"m": [True]}),
    )
    assert (changes.added, changes.replaced, changes.updated) == (("d",), ("a",), ("b",))
    with store.snapshot() as snapshot:
        passages = snapshot.passages_by_id(snapshot.sample(9).passages.tolist())
        assert [(p.uri, p.text) for p in passages] == [
            ("b", "three"),
            ("c", "four"),
            ("d", "five"),
            ("a", "new"),
            ("a", "one"),
        ]
        assert (snapshot.documents, snapshot.passages) == (4, 5)
        assert [p.id for p in passages[:2]] == [p.id for p in first[1:]]  # an updated document keeps its passages
        assert passages[3].document_id == first[0].document_id  # a replaced one its id, with new passages
        assert min(p.id for p in passages[2:]) > max(p.id for p in first)
        assert snapshot.get("a") == Document("a", "new one")
        assert snapshot.get("b") == Document("b", "three", metadata={"m": [True]})
        assert passages[0].metadata == {"m": [True]}
        np.testing.assert_array_equal(snapshot.vectors_of("a"), AXES[1:3])
        np.testing.assert_array_equal(snapshot.vectors_of("b"), AXES[:1])
        info = snapshot.info()
        assert (info.documents, info.passages, info.tokens) == (4, 5, 1 + 1 + 1 + 5 + 6)
        assert info.fields == {"m": ("boolean",)}
    assert [document.uri for document in store.iterate()] == ["a", "b", "c", "d"]


def test_remove_leaves_no_trace_and_ids_are_never_used_again(store: Store) -> None:
    put(store, doc("a", "apple"), doc("b", "pear", metadata={"n": 1}), doc("c", "apple"))
    with store.snapshot() as snapshot:
        before = snapshot.passages_by_id(snapshot.sample(9).passages.tolist())
    assert remove(store, "b", "c", "c", "unknown") == 2
    with store.snapshot() as snapshot:
        assert (snapshot.documents, snapshot.passages, list(snapshot.hashes())) == (1, 1, ["a"])
        assert uris(snapshot, snapshot.dense(AXES[0], 9, None, "document", False)) == ["a"]
        assert uris(snapshot, snapshot.words("apple pear", 9, None, "document")) == ["a"]
        assert (snapshot.get("b"), snapshot.vectors_of("b")) == (None, None)
        assert snapshot.info().fields == {}
        with pytest.raises(FilterError, match='no field "n"'):
            snapshot.dense(AXES[0], 9, parse("n = 1"), "document", False)
        with pytest.raises(IndexDamaged):
            snapshot.passages_by_id([before[1].id])
    for uri in "cd":
        put(store, doc(uri, "again"))
    with store.snapshot() as snapshot:
        after = snapshot.passages_by_id(snapshot.sample(9).passages.tolist())
    assert before[2].id < after[1].id < after[2].id
    assert before[2].document_id < after[1].document_id < after[2].document_id
    assert remove(store, "unknown") == remove(store) == 0


def test_documents_come_back_as_they_were_put(store: Store) -> None:
    document = Document(
        "ä/ö.txt",
        "Erste Zeile\nzweite 🦉 Zeile",
        "Título",
        {"x": {"y": [1, 2.5, True, None, "é"]}, "big": 2**63 - 1, "": "", "pair": (1, 2)},
        "/home/ä/ö.txt",
        "text",
        "2026-01-31T10:00:00Z",
        (Section(0, "A > B", 1), Section(12, "", None)),
    )
    put(store, EmbeddedDocument(document, hashed(document), (Span(0, len(document.text)),), AXES[:1]))
    with store.snapshot() as snapshot:
        expected = replace(document, metadata={**document.metadata, "pair": [1, 2]})
        assert snapshot.get("ä/ö.txt") == expected
        assert snapshot.hashes(["ä/ö.txt", "b"]) == {"ä/ö.txt": hashed(document)}
    assert list(store.iterate()) == [expected]


def test_passages_come_in_the_order_asked_for_with_everything_that_is_stored(store: Store) -> None:
    text = "one\ntwo 🦉\n\nfour"
    spans = [Span(0, 5, "p", 3, "H", 2), Span(2, 9, tokens=4), Span(11, 15)]
    members = {"title": "T", "metadata": {"n": 1}, "modified": "2026-01-31"}
    put(
        store,
        doc("/a.txt", text, random_rows(3, 1), spans, path="/a.txt", format="text", **members),
        doc("/b.pdf", text, random_rows(3, 2), spans, path="/b.pdf", format="pdf"),
        doc("c", text, random_rows(3, 3), spans),
    )
    with store.snapshot() as snapshot:
        ids = snapshot.sample(9).passages.tolist()
        found = snapshot.passages_by_id([ids[2], ids[0], ids[5], ids[0]])
        first = found[1]
        assert [(p.id, p.uri, p.text) for p in found] == [
            (ids[2], "/a.txt", "four"),
            (ids[0], "/a.txt", "one\nt"),
            (ids[5], "/b.pdf", "four"),
            (ids[0], "/a.txt", "one\nt"),
        ]
        assert (first.title, first.start, first.end, first.heading, first.page) == ("T", 0, 5, "H", 2)
        assert (first.path, first.format, first.modified) == ("/a.txt", "text", "2026-01-31")
        assert (first.metadata, first.line) == ({"n": 1}, 1)
        assert [p.line for p in snapshot.passages_by_id(ids)] == [1, 1, 4] + 6 * [None]
        assert [p.text for p in snapshot.passages_by_id(ids[:3])] == ["one\nt", "e\ntwo 🦉", "four"]
        assert (found[2].heading, found[2].page, found[2].metadata) == ("", None, {})


def test_lines_of_passages_that_overlap_are_counted_back(store: Store) -> None:
    text = "a\nb\nc\nd"
    spans = [Span(0, 5), Span(4, 7), Span(2, 5), Span(6, 7)]
    put(store, doc("/a.md", text, random_rows(4, 1), spans, path="/a.md", format="markdown"))
    with store.snapshot() as snapshot:
        assert [p.line for p in snapshot.passages_by_id(snapshot.sample(9).passages.tolist())] == [1, 3, 2, 4]


def test_vectors_are_float16_rows_of_unit_length(store: Store) -> None:
    rows = random_rows(30, 5)
    put(store, doc("a", "x" * 30, rows, [Span(at, at + 1) for at in range(30)]))
    with store.snapshot() as snapshot:
        found = snapshot.vectors_of("a")
        sample = snapshot.sample(100)
    assert found is not None and found.dtype == np.float32
    np.testing.assert_array_equal(found, from_blobs(to_blobs(rows), DIMENSIONS))
    np.testing.assert_array_equal(found, found.astype(np.float16))
    np.testing.assert_array_equal(found, sample.vectors)
    np.testing.assert_allclose(found, rows, atol=2e-3)


def test_hashes_tell_what_has_changed(store: Store) -> None:
    put(store, *(doc(uri, f"text {uri}") for uri in "abcd"))
    with store.snapshot() as snapshot:
        earlier = dict(snapshot.hashes())
        assert set(earlier) == set("abcd")
        assert snapshot.hashes(["b", "x", "b"]) == {"b": hashed(Document("b", "text b"))}
        assert snapshot.hashes([]) == {}
        assert list(snapshot.changed_since(earlier)) == []
        assert sorted(snapshot.changed_since({})) == list("abcd")
    put(store, doc("b", "another"), row_of("c", "text c", metadata={"n": 1}), doc("e", "new"))
    remove(store, "d")
    with store.snapshot() as snapshot:
        assert sorted(snapshot.changed_since(earlier)) == ["b", "c", "d", "e"]
        assert snapshot.hashes()["c"].content == earlier["c"].content
        assert snapshot.hashes()["c"].row != earlier["c"].row
    put(store, doc("b", "text b"), row_of("c", "text c"), doc("d", "text d"))
    remove(store, "e")
    with store.snapshot() as snapshot:
        assert list(snapshot.changed_since(earlier)) == []


# one commit


def answers(snapshot: Snapshot) -> dict[str, Any]:
    dense = snapshot.dense(AXES[0], 9, None, "document", False)
    words = snapshot.words("apple", 9, None, "passage")
    candidates = snapshot.candidates(AXES[0], "apple", 9, None, "document", False)
    return {
        "counts": (snapshot.documents, snapshot.passages, snapshot.info().documents, snapshot.info().tokens),
        "dense": (dense.passages.tolist(), dense.matched),
        "words": (words.passages.tolist(), words.matched, words.scores.tolist()),
        "candidates": (candidates.passages.tolist(), candidates.words.tolist()),
        "known": (dict(snapshot.hashes()), snapshot.get("a"), snapshot.info().fields),
        "texts": [(p.uri, p.text, p.metadata) for p in snapshot.passages_by_id(dense.passages.tolist())],
        "ledger": (list(snapshot.ledger()), dict(snapshot.ledger_counts()), dict(snapshot.files())),
        "settings": (snapshot.settings, snapshot.fitted_parameters()),
        "sample": snapshot.sample(9).passages.tolist(),
        "version": (snapshot.version, snapshot.history),
    }


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_snapshot_does_not_change_while_a_writer_commits(store: Store, asked_before: bool) -> None:
    rows = [LedgerRow("/f", "a", "indexed"), LedgerRow("/f", "b", "indexed")]
    put(store, doc("a", "apple pie", metadata={"n": 1}), doc("b", "apple"), rows=rows)
    with store.snapshot() as snapshot:
        expected = answers(snapshot)
    with store.snapshot() as snapshot:
        if asked_before:
            assert answers(snapshot) == expected
        else:
            assert snapshot.documents == 2
        with store.writer() as writer:
            writer.put(
                Batch([doc("a", "pear"), *(doc(uri, "apple apple") for uri in "cd")], [LedgerRow("/g", "c", "indexed")])
            )
            writer.remove(["b"])
            writer.change(lambda settings: replace(settings, words_bias=0.5), b"fitted")
            writer.settle()
            with store.snapshot() as inner:
                changed = answers(inner)
            assert answers(snapshot) == expected
            writer.compact()
        assert answers(snapshot) == expected
    with store.snapshot() as snapshot:
        found = answers(snapshot)
        assert found["version"][1] == expected["version"][1]
        assert {name for name in expected if found[name] == expected[name]} == set()
        assert {name for name in found if found[name] != changed[name]} <= {"version"}


def test_versions_tell_commits_apart(store: Store) -> None:
    seen = []
    for change in (lambda: None, lambda: put(store, doc("a", "x")), lambda: remove(store, "a")):
        change()
        with store.snapshot() as one, store.snapshot() as other:
            assert (one.version, one.history) == (other.version, other.history)
            seen.append((one.version, one.history))
    assert len({version for version, _ in seen}) == 3
    assert len({history for _, history in seen}) == 1
    assert hash(seen[0][0]) == hash(seen[0][0])


def test_a_batch_is_all_or_nothing(store: Store) -> None:
    put(store, doc("a", "apple", metadata={"n": 1}), rows=[LedgerRow("/f", "a", "indexed")], finished=STAMPS)
    before = everything(store)
    for bad in (doc("bad", "x", metadata={"n": float("nan")}), row_of("unknown", "x")):
        with pytest.raises((LikewiseError, AssertionError)), store.writer() as writer:
            writer.put(
                Batch(
                    [doc("b", "pear"), doc("a", "changed"), bad, doc("c", "plum")],
                    [LedgerRow("/f", "a", "failed", Code.OTHER("why")), LedgerRow("/g", "b", "indexed")],
                    {"/f": Stamp(9, 9, 9, 9), "/g": Stamp(1, 2, 3, 4)},
                )
            )
        assert everything(store) == before
        with store.snapshot() as snapshot:
            assert uris(snapshot, snapshot.words("apple pear changed", 9, None, "document")) == ["a"]
            assert snapshot.check(MEANING).ok
    assert put(store, doc("b", "pear")).added == ("b",)
    assert put(store) == Changes()


STAMPS = {"/f": Stamp(10, 20, 30, 40)}


def test_threads_that_read_while_another_writes_see_whole_commits(store: Store) -> None:
    """Each commit adds two documents that are alike; whatever a snapshot is asked, it has an even number of them."""
    stop, errors, seen = threading.Event(), list[BaseException](), set[int]()

    def read() -> None:
        try:
            while not stop.is_set():
                with store.snapshot() as snapshot:
                    count = snapshot.documents
                    assert count % 2 == 0
                    for one in UNITS:
                        assert snapshot.dense(AXES[0], 99, None, one, False).matched == count
                        assert snapshot.words("apple", 99, None, one).matched == count
                    assert len(snapshot.hashes()) == len(snapshot.sample(99).passages) == count
                    seen.add(count)
        except BaseException as error:  # noqa: BLE001 - a thread's assertion is raised by the test below
            errors.append(error)

    put(store, doc("a", "apple"), doc("b", "apple"))
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(6):
        put(store, doc(f"a{number}", "apple"), doc(f"b{number}", "apple"))
        if number == 3:
            remove(store, "a", "b")
            with store.writer() as writer:
                writer.settle()
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    assert seen


def test_there_is_one_store_at_an_address(engine: Engine, store: Store, tmp_path: Path) -> None:
    put(store, doc("a", "x"))
    with pytest.raises(BadInput):
        engine.create(store.address, SETTINGS)
    with pytest.raises(NotAnIndex), engine.open(str(tmp_path / "missing")).snapshot():
        pytest.fail("there is nothing to read")
    with store.snapshot() as snapshot:
        assert snapshot.documents == 1


# ranking by meaning


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


def brute_force(
    store: Store, vector: Vector, one: Unit, allowed: Callable[[int], bool] = lambda number: True
) -> list[tuple[str, int, float]]:
    """Every unit that is allowed with its best passage: uri, start, cosine; equal ones as they were added."""
    best: dict[Any, tuple[str, int, float]] = {}
    for item in store.export():
        assert item.spans is not None and item.vectors is not None
        for span, row in zip(item.spans, item.vectors, strict=True):
            found = (item.document.uri, span.start, float(np.float32(np.einsum("j,j->", row, vector))))
            key = found[0] if one == "document" else found[:2]
            if allowed(item.document.metadata["n"]) and (key not in best or found[2] > best[key][2]):
                best[key] = found
    return sorted(best.values(), key=lambda unit: -unit[2])


@pytest.mark.parametrize("one", UNITS)
@pytest.mark.parametrize("exact", [False, True])
def test_dense_is_brute_force(store: Store, one: Unit, exact: bool) -> None:
    vector = filled(store)
    filters: list[tuple[str | None, Callable[[int], bool]]] = [
        (None, lambda n: True),
        ("n >= 3 and n < 9", lambda n: 3 <= n < 9),
        ("n = 7", lambda n: n == 7),
        ("n < 0", lambda n: False),
        ("even = true", lambda n: n % 2 == 0),
    ]
    for settle in (False, True):
        if settle:
            remove(store, "d2", "d8")
            with store.writer() as writer:
                writer.settle()
        for text, allowed in filters:
            expected = brute_force(store, vector, one, allowed)
            for k in (0, 1, 5, len(expected), len(expected) + 1, MANY):
                with store.snapshot() as snapshot:
                    ranking = snapshot.dense(vector, k, parse(text) if text else None, one, exact)
                    assert shown(snapshot, ranking.passages) == [unit[:2] for unit in expected[:k]]
                    owners = [passage.document_id for passage in snapshot.passages_by_id(ranking.passages.tolist())]
                assert (ranking.matched, ranking.exact) == (len(expected), True)
                assert ranking.documents.tolist() == owners
                assert ranking.scores.dtype == np.float32 and ranking.passages.dtype == np.int64
                np.testing.assert_allclose(ranking.scores, [unit[2] for unit in expected[:k]], atol=1e-6)


def test_equal_cosines_come_in_the_order_the_passages_were_added(store: Store) -> None:
    halves = [Span(0, 1), Span(1, 2)]
    put(store, *(doc(f"d{number}", "ab", np.tile(AXES[:1], (2, 1)), halves) for number in range(40)))
    put(store, doc("d3", "ab", AXES[:2], halves))  # its passages are the newest now
    order = [f"d{number}" for number in range(40) if number != 3] + ["d3"]
    for change in ("none", "settle", "exact"):
        with store.writer() as writer:
            if change == "settle":
                writer.settle()
            elif change == "exact":
                writer.compact("exact")
        with store.snapshot() as snapshot:
            for k in (1, 7, 50):
                ranking = snapshot.dense(AXES[0], k, None, "document", False)
                assert shown(snapshot, ranking.passages) == [(uri, 0) for uri in order[:k]]
            passages = [(uri, start) for uri in order for start in (0, 1)]
            ranking = snapshot.dense(AXES[0], 30, None, "passage", False)
            assert shown(snapshot, ranking.passages) == passages[:30]
            assert ranking.scores.tolist() == [1.0] * 30
            assert snapshot.dense(AXES[1], 80, None, "passage", False).scores.tolist() == [1.0] + [0.0] * 79


# filters

COLLECTION = [
    doc("a", "t", title="Apple", path="/x/a.txt", format="text", modified="2024-01-31T10:00:00Z",
        metadata={"year": 2020, "lang": "en", "draft": True, "tags": ["x", "y"], "author": {"name": "Ann"}}),
    doc("b", "t", title="", metadata={"year": 2021.5, "lang": "dé", "draft": False, "tags": [], "author": None}),
    doc("c", "t", title="Pear", format="pdf", modified="2025-06-01", path="",
        metadata={"year": "2020", "lang": None, "tags": ["y", 3], "title": "own", "cites": [{"by": 1}, {"by": "q"}]}),
    doc("d", "t", title="apple", metadata={"year": [1999, 2030], "my field": 1, "author": {"name": "Zoë", "age": 7}}),
    doc("e", "t"),
]  # fmt: skip

MEANINGS = [
    ("year = 2020", "a"), ("year = 2020.0", "a"), ("year = 2021.5", "b"), ('year = "2020"', "c"), ("year = 1999", "d"),
    ("year != 2020", "bcd"), ('year != "2020"', "abd"), ("year < 2020", "d"), ("year <= 2020", "ad"),
    ("year > 2020", "bd"), ("year >= 2021.5", "bd"), ('year >= "2"', "c"), ("year > 99999", ""),
    ("year in (2020, 2030)", "ad"), ('year in (2021.5, "2020")', "bc"), ("year not in (2020, 1999)", "bc"),
    ('year not in ("2020")', "abd"), ("exists year", "abcd"), ("not exists year", "e"), ("not year = 2020", "bcde"),
    ("draft = true", "a"), ("draft = false", "b"), ("draft != true", "b"), ("not draft = true", "bcde"),
    ("draft in (true, false)", "ab"), ("draft < true", "b"), ("exists draft", "ab"),
    ('lang = "dé"', "b"), ('lang != "dé"', "a"), ('lang > "dz"', "ab"), ("exists lang", "ab"), ('lang < "e"', "b"),
    ('tags = "y"', "ac"), ('tags != "y"', ""), ('tags != "x"', "c"), ("tags = 3", "c"), ('tags in ("x", "z")', "a"),
    ('tags not in ("x")', "c"), ("exists tags", "ac"),
    ('author.name = "Ann"', "a"), ("exists author", "ad"), ("author.age >= 7", "d"), ('author.name >= "Zo"', "d"),
    ("cites.by = 1", "c"), ('cites.by = "q"', "c"), ("exists cites", "c"), ("`my field` = 1", "d"),
    ('title = "Apple"', "a"), ('title != "Apple"', "cd"), ("exists title", "acd"), ('title > "P"', "cd"),
    ('metadata.title = "own"', "c"), ("exists metadata.title", "c"), ("metadata.year = 2020", "a"),
    ('uri = "e"', "e"), ('uri in ("a", "e", "x")', "ae"), ('uri not in ("a", "e")', "bcd"), ('uri >= "c"', "cde"),
    ('path = "/x/a.txt"', "a"), ("exists path", "a"), ("not exists path", "bcde"), ('path > "/"', "a"),
    ('format = "pdf"', "c"), ("exists format", "ac"), ('format not in ("pdf")', "a"),
    ("modified >= 2024-01-31", "ac"), ("modified < 2025", None), ('modified < "2025"', "a"), ("exists modified", "ac"),
    ("modified = 2025-06-01", "c"), ("modified not in (2025-06-01)", "a"),
    ('title contains "pp"', "ad"), ('title contains "PP"', ""), ('title not contains "pp"', "c"),
    ('title startswith "Ap"', "a"), ('title startswith ""', "acd"), ('title endswith "ple"', "ad"),
    ('title like "APPLE"', "ad"), ('title like "%E%"', "acd"), ('title like "_ear"', "c"), ('title not like "a%"', "c"),
    ('lang like "DÉ"', "b"), ('lang contains ""', "ab"), ('tags startswith "x" and tags endswith "y"', "a"),
    ('tags contains "y"', "ac"), ('tags not contains "x"', "c"), ('tags not contains "z"', "ac"),
    ('year like "20%"', "c"), ('year not like "19%"', "abcd"), ('author.name like "zOË"', "d"),
    ('modified startswith "2024-01"', "a"), ('modified contains "-"', "ac"), ('uri like "A"', "a"),
    ('cites.by contains "q"', "c"), ('metadata.title like "o_n"', "c"), ('format endswith "f"', "c"),
    ('under "/x"', "a"), ('under "/"', "a"), ('under "/x/a.txt"', ""), ('not under "/x"', "bcde"), ('under "/y"', ""),
    ("year = 2020 and draft = true", "a"), ("year = 2020 or draft = false", "ab"),
    ("not (year = 2020 or draft = false)", "cde"), ("(year > 2000 or exists tags) and not draft = true", "bcd"),
    ('uri = "a" or uri = "b" or year = 1999', "abd"), ("exists year and not (exists draft and exists lang)", "cd"),
]  # fmt: skip


EMPTY = [
    (In("year", ()), ""), (In("year", (), negated=True), "abcd"), (Not(In("tags", ())), "abcde"),
    (And((In("lang", ()), Exists("year"))), ""), (Or((In("lang", ()), Exists("draft"))), "ab"),
]  # fmt: skip


def test_one_of_no_values_holds_for_nothing(store: Store) -> None:
    put(store, *COLLECTION)
    with store.snapshot() as snapshot:
        for where, expected in EMPTY:
            ranking = snapshot.dense(AXES[0], 9, where, "document", False)
            assert "".join(sorted(uris(snapshot, ranking))) == expected, where
            assert "".join(uri for uri in "abcdex" if snapshot.matches(uri, where)) == expected, where
        with pytest.raises(FilterError, match="no field"):
            snapshot.matches("a", In("yeer", ()))


def test_filters_mean_what_the_grammar_says(store: Store) -> None:
    put(store, *COLLECTION)
    for settled in (False, True):
        with store.writer() as writer:
            if settled:
                writer.settle()
        with store.snapshot() as snapshot:
            for text, expected in MEANINGS:
                if expected is None:
                    with pytest.raises(FilterError):
                        snapshot.dense(AXES[0], 9, parse(text), "document", False)
                    continue
                where = parse(text)
                ranking = snapshot.dense(AXES[0], 9, where, "document", False)
                assert (sorted(uris(snapshot, ranking)), ranking.matched) == (list(expected), len(expected)), text
                assert "".join(uri for uri in "abcdex" if snapshot.matches(uri, where)) == expected, text
                if text.startswith(("exists", "year")):
                    assert "".join(document.uri for document in store.iterate(where)) == expected, text


REFUSED = [
    ("yeer = 2020", 'filter: no field "yeer" in this index; near: year'),
    ("exists nothing_like_it", 'filter: no field "nothing_like_it" in this index; it has: uri, title, path'),
    ("author = 1", 'filter: no field "author" in this index; near: author.age, author.name'),
    ('draft = "yes"', 'filter: field draft cannot be compared with "yes": compare it with true or false'),
    ("lang >= 3", 'filter: field lang cannot be compared with 3: compare it with text in quotes such as "en"'),
    ("year = true", "filter: field year cannot be compared with true: compare it with a number such as 2020 or a "),
    ("title = 3", 'filter: field title cannot be compared with 3: compare it with text in quotes such as "en"'),
    ('modified > "today"', 'filter: field modified cannot be compared with "today": compare it with a date such a'),
    ('lang in ("en", 3)', 'filter: field lang cannot be compared with 3: compare it with text in quotes such as "'),
    ('draft contains "t"', 'filter: field draft cannot be compared with "t": compare it with true or false'),
    ('tittle like "a%"', 'filter: no field "tittle" in this index; near: title'),
    ("year = 2020 or not (draft = true and yeer = 1)", 'filter: no field "yeer" in this index; near: year'),
]


def test_a_filter_that_does_not_fit_is_refused_with_what_would(store: Store) -> None:
    put(store, *COLLECTION)
    with store.snapshot() as snapshot:
        for text, message in REFUSED:
            where = parse(text)
            for ask in (
                lambda: snapshot.dense(AXES[0], 9, where, "document", False),  # noqa: B023
                lambda: snapshot.words("apple", 9, where, "passage"),  # noqa: B023
                lambda: snapshot.candidates(AXES[0], "apple", 9, where, "document", False),  # noqa: B023
                lambda: snapshot.matches("a", where),  # noqa: B023
                lambda: list(store.iterate(where)),  # noqa: B023
            ):
                with pytest.raises(FilterError) as raised:
                    ask()
                assert str(raised.value).startswith(message)


OF_DATES = [
    doc("a", "t", modified="2024-01-31T10:00:00+00:00", metadata={"created": "25-Sep-2000", "code": "2000"}),
    doc("b", "t", modified="2024-02-01", metadata={"created": "Sept 25, 2000", "code": "x"}),
    doc("c", "t", modified="1706697000", metadata={"created": ["2000-09-26T01:30:00+02:00", "soon"], "n": 2000}),
    doc("d", "t", metadata={"created": "2000/9/26", "history": [{"day": "1999"}, {"day": "2001-10"}], "lang": "en"}),
    doc("e", "t", modified="", metadata={"created": "09/25/2000", "n": 1}),
    doc("f", "t", metadata={"created": "Mon, 25 Sep 2000 10:30:00 +0000", "modified": "2000-09-25"}),
]

MEANINGS_OF_DATES = [
    ("created = 2000-09-25", "abcf"), ("created = 2000-09", "abcdf"), ("created = 2000-09-25T10:30", "f"),
    ("created != 2000-09-25", "de"), ("not created = 2000-09-25", "de"), ("created > 2000-09-25", "d"),
    ("created >= 2000-09-25", "abcdf"), ("created >= 2000-09-25T00:00:00.000001Z", "cdf"), ("created < 2000-09-25", ""),
    ("created <= 2000-09-25", "abcf"), ("created < 2000-09-26", "abcf"), ("created > 2000-08", "abcdf"),
    ("created >= 2000-09-25T23:30:00Z", "cd"), ("created > 2000-09-25T23:30Z", "d"), ("created <= 2000-09", "abcdf"),
    ("created in (2000-09-26, 1999-01)", "d"), ("created not in (2000-09-26, 1999-01)", "abcef"),
    ("created in (2000-09-26, 2000-09-25T10:30:00Z, 2000-09-26T00:00Z)", "df"), ("exists created", "abcdef"),
    ('created in (2000-09-26, "soon", "09/25/2000")', "cde"), ('created != "soon"', "abdef"), ('created > "t"', ""),
    ('created = "25-Sep-2000"', "abcf"), ('created >= "Sep 26, 2000"', "d"), ('created = "September 2000"', "abcdf"),
    ('created != "25-Sep-2000"', "de"), ('created in ("2000-09-26", "soon")', "cd"), ('created < "2000-10"', "abcdf"),
    ('created not in ("2000-09-26", "soon")', "abef"), ('created = "09/25/2000"', "e"), ('created < "09/26"', "e"),
    ("history.day < 2000-01-01 and history.day >= 2001-10-01 and history.day = 1999-01-01", "d"),
    ("code = 2000-01-01", "a"), ('code = "2000"', "a"), ('code >= "2"', "ab"), ('code < "2001"', "a"),
    ('code >= "2000"', "ab"), ("code != 2000-01-01", "b"),
    ("modified >= 2024-02-01", "b"), ("modified = 2024-01", "a"), ("modified < 2024-02", "a"),
    ("exists modified", "abc"), ("modified != 2024-01-31", "bc"),
    ('modified = "2024-01-31"', "a"), ('modified < "2024-02-01"', "a"),
    ('modified = "31 Jan 2024"', "a"), ('modified < "2024"', "c"), ("metadata.modified = 2000-09-25", "f"),
    ("modified >= -1h", ""), ("modified < -7d", "ab"), ("created < -1y and not created < -9999mo", "abcdf"),
]  # fmt: skip


def test_dates_mean_the_time_they_name(store: Store) -> None:
    put(store, *OF_DATES)
    for settled in (False, True):
        with store.writer() as writer:
            if settled:
                writer.settle()
        with store.snapshot() as snapshot:
            for text, expected in MEANINGS_OF_DATES:
                where = parse(text)
                ranking = snapshot.dense(AXES[0], 9, where, "document", False)
                assert (sorted(uris(snapshot, ranking)), ranking.matched) == (list(expected), len(expected)), text
                assert "".join(uri for uri in "abcdefx" if snapshot.matches(uri, where)) == expected, text
    with store.snapshot() as snapshot:
        info = snapshot.info()
        assert info.dates == ("code", "created", "history.day", "metadata.modified")
        assert (info.fields["created"], info.fields["code"], info.fields["n"]) == (("text",), ("text",), ("number",))
        assert snapshot.fields is not None and "modified" not in info.fields and "modified" not in snapshot.fields
    put(store, doc("a", "t", modified="2025-03-01", metadata={"created": "26 Sep 2000"}))
    with store.snapshot() as snapshot:
        assert snapshot.count(parse("created = 2000-09-26 and modified = 2025-03")) == 1
        assert snapshot.count(parse("created = 2000-09-25")) == 3
        assert snapshot.uris(parse("created = 2000-09-26 and modified = 2025-03")) == ["a"]
        assert len(snapshot.uris(parse("created = 2000-09-25"))) == 3
        assert snapshot.uris() == [document.uri for document in store.iterate()]
        assert snapshot.check(None).ok
        assert "code" not in snapshot.info().dates
    with store.writer() as writer:
        writer.remove("abcdef")
        writer.put(Batch([doc("g", "t", metadata={"n": 1})]))
    with store.snapshot() as snapshot:
        assert (snapshot.info().dates, snapshot.count(parse("modified > 2000-01"))) == ((), 0)


REFUSED_OF_DATES = [
    ("n >= 2000-01-01", "n cannot be compared with 2000-01-01, as it holds no date: compare it with a number such as"),
    (
        "lang = 2000-01",
        "lang cannot be compared with 2000-01, as it holds no date: compare it with text in quot",
    ),
    (
        "title > 2000-01",
        "title cannot be compared with 2000-01, as it holds no date: compare it with text in quot",
    ),
    (
        "created >= 2000",
        "created cannot be compared with 2000: compare it with a date such as 2000-01-01 or text in q",
    ),
    ("created in (true)", "created cannot be compared with true: compare it with a date such as 2026-01-31 or text in"),
    ("modified > 3", "modified cannot be compared with 3: compare it with a date such as 2026-01-31"),
    ('modified > "7d"', 'modified cannot be compared with "7d": compare it with a date such as 2026-01-31'),
]


def test_a_date_is_compared_with_dates_alone(store: Store) -> None:
    put(store, *OF_DATES)
    with store.snapshot() as snapshot:
        for text, message in REFUSED_OF_DATES:
            with pytest.raises(FilterError) as raised:
                snapshot.matches("a", parse(text))
            assert str(raised.value).startswith(f"filter: field {message}"), text


def test_values_of_a_field_are_counted(store: Store) -> None:
    put(
        store,
        doc("a", "t", metadata={"n": [1, 2.5, "1"], "lang": "en", "on": True, "deep": [{"x": "y"}, {"x": "y"}]}),
        doc("b", "t", metadata={"n": 1.0, "lang": ["en", "de"], "on": False, "day": "25-Sep-2000"}, format="html"),
        doc("c", "t", metadata={"n": -3, "lang": "é", "day": ["2001-02", "soon", "x" * 201]}, format="pdf"),
        doc("d", "t", metadata={"n": None, "lang": [], "on": True}, format="pdf", modified="2024-01-31T23:30:00-01:00"),
        doc("e", "t", metadata={"least": -(2**63)}),
    )
    expected = {
        "n": FieldValues(3, ((1, 2), (-3, 1), (2.5, 1), ("1", 1)), (-3, 2.5)),
        "lang": FieldValues(3, (("en", 2), ("de", 1), ("é", 1))),
        "on": FieldValues(3, ((True, 2), (False, 1))),
        "deep.x": FieldValues(1, (("y", 1),)),
        "day": FieldValues(2, (("2001-02", 1), ("25-Sep-2000", 1), ("soon", 1)), None, ("2000-09-25", "2001-02-01")),
        "format": FieldValues(3, (("pdf", 2), ("html", 1))),
        "modified": FieldValues(1, (("2024-01-31T23:30:00-01:00", 1),), None, ("2024-02-01", "2024-02-01")),
        "uri": FieldValues(5, (("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1))),
        "least": FieldValues(1, ((-(2**63), 1),), (-(2**63), -(2**63))),
        "nothing": FieldValues(),
    }
    for settled in (False, True):
        with store.writer() as writer:
            if settled:
                writer.settle()
        with store.snapshot() as snapshot:
            assert {field: snapshot.values(field, 20) for field in expected} == expected
            assert [type(value) for value, _ in snapshot.values("on", 20).frequent] == [bool, bool]
            assert [type(value) for value in snapshot.values("least", 20).numbers or ()] == [int, int]
            assert snapshot.values("lang", 1).frequent == (("en", 2),)
            assert snapshot.values("lang", 1).documents == 3
    remove(store, "a", "b", "c")
    with store.snapshot() as snapshot:
        assert (snapshot.values("n", 20), snapshot.values("day", 20)) == (FieldValues(), FieldValues())
        assert snapshot.values("on", 20) == FieldValues(1, ((True, 1),))


def test_many_dates_in_a_list(store: Store) -> None:
    days = [date(2020, 1, 1) + timedelta(days=number) for number in range(300)]
    put(store, *(doc(day.isoformat(), "t", metadata={"day": f"{day:%d %B %Y}"}) for day in days))
    with store.snapshot() as snapshot:
        some = [*days[::3], *days[:10], *(day + timedelta(days=5_000) for day in days)]
        where = filter_tree({"day": {"in": some}})
        assert where is not None
        assert snapshot.count(where) == 106
        assert snapshot.count(filter_tree({"day": {"not in": some}}) or where) == 194


def flat(value: Any, path: str = "") -> dict[str, list[Any]]:
    """Metadata as `matches` takes it; written apart from the code under test."""
    if isinstance(value, dict):
        members = [flat(member, f"{path}.{key}" if path else key) for key, member in value.items()]
    elif isinstance(value, list):
        members = [flat(element, path) for element in value]
    else:
        reserved = path.split(".", maxsplit=1)[0] in (*COLUMNS, "metadata")
        return {} if value is None else {f"metadata.{path}" if reserved else path: [value]}
    merged: dict[str, list[Any]] = {}
    for member in members:
        for name, values in member.items():
            merged.setdefault(name, []).extend(values)
    return merged


def fits(where: Where, known: Mapping[str, list[Any]]) -> bool:
    """Whether every condition of a filter is about a field that some document has, with a value of such a type."""
    if isinstance(where, And | Or):
        return all(fits(part, known) for part in where.parts)
    if isinstance(where, Not):
        return fits(where.part, known)
    if isinstance(where, Exists):
        return where.field in COLUMNS or any(f"{name}.".startswith(f"{where.field}.") for name in known)
    if isinstance(where, Under):
        return True
    if isinstance(where, TextMatch):
        return where.field in COLUMNS or str in {kind(value) for value in known.get(where.field, [])}
    values = where.values if isinstance(where, In) else (where.value,)
    kinds = {kind(value) for value in known.get(where.field, [])}
    if any(isinstance(value, str) and read_date(value) for value in known.get(where.field, [])):
        kinds.add(Date)
    if where.field in COLUMNS:
        kinds = {str}
    if where.field == "modified":
        text = next((value for value in values if isinstance(value, str)), "2020")
        is_year = len(text) >= 4 and text[:4].isdecimal() and not text[4:5].isdecimal()
        kinds = {str, Date} if is_year or read_date(text) else {Date}
    return {kind(value) for value in values} <= kinds


def kind(value: Any) -> type:
    return float if type(value) in (int, float) else type(value)


def snapshot_types(known: Mapping[str, list[Any]]) -> dict[str, Collection[Type]]:
    """The types of each field, as a store gives them to `check_filter`."""
    kinds: dict[type, Type] = {float: "number", bool: "boolean", str: "text"}
    types: dict[str, Collection[Type]] = {}
    for name, values in known.items():
        dates: set[Type] = {"date"} if any(isinstance(value, str) and read_date(value) for value in values) else set()
        types[name] = {kinds[kind(value)] for value in values} | dates
    return {**KEEPS_DATES, **types}


FEW = [0, 1, 2, -3, 0.5, 1.0, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e300, 0.1]
TEXTS = ["", "a", "b", "é", "1", "true", "🦉", "aB", "É%", "ΣΑς", "Straße", "ŉ", "\U0010ffff", "\ud7ffa"]
parts = st.sampled_from(
    [
        *TEXTS,
        "%",
        "_",
        "%A%",
        "b%",
        "σας",
        "%SS_",
        "strasse",
        "_n",
        "\\%",
        "%\\%",
        "-",
        "20",
        "\U0010ffff\U0010ffff",
        "\ud7ff",
    ]
)
PATHS = [None, "", "a", "/a", "/a/b", "/a/bc/d", "/a/b/c"]
DAYS = ["2020", "2020-02", "2020-02-01", "1-Feb-2020", "Feb 29, 2020", "2020-02-01T02:00+0300"]
few_values = st.one_of(st.sampled_from(FEW), st.booleans(), st.sampled_from(TEXTS), st.sampled_from(DAYS))
compared = st.one_of(few_values, st.sampled_from([read for day in DAYS if (read := read_date(day))]))
keys = st.sampled_from(["x", "y", "y.z", "title", "metadata", "z", "ü"])
nested = st.recursive(
    st.one_of(few_values, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=4,
)
columns = st.fixed_dictionaries(
    {
        "path": st.sampled_from(PATHS),
        "format": st.sampled_from([None, "", "a", "b"]),
        "modified": st.sampled_from([None, "", *DAYS]),
    }
)
collections = st.lists(
    st.tuples(columns, st.sampled_from(["", "a", "b"]), st.dictionaries(keys, nested, max_size=4)),
    min_size=1,
    max_size=6,
)
fields = st.sampled_from(
    ["x", "y", "y.z", "z", "x.y", "ü", "metadata.title", "metadata.metadata", "title", "path", "modified"]
)
conditions = st.one_of(
    st.builds(Compare, fields, st.sampled_from(COMPARISONS), compared),
    st.builds(In, fields, st.lists(compared, min_size=1, max_size=4).map(tuple), st.booleans()),
    st.builds(Exists, fields),
    st.builds(TextMatch, fields, st.sampled_from([*TEXT_OPERATORS]), parts, st.booleans()),
    st.builds(Under, st.sampled_from(["/", "/a", "/a/b"])),
)
wheres: st.SearchStrategy[Where] = st.recursive(
    conditions,
    lambda parts: st.one_of(
        st.builds(And, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Not, parts),
    ),
    max_leaves=5,
)


@given(collections, st.lists(wheres, min_size=12, max_size=16))
@hypothesis_settings(
    deadline=None, max_examples=15, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_filter_leaves_what_the_tree_says(
    store: Store, collection: list[tuple[dict[str, Any], str, dict[str, Any]]], filters: list[Where]
) -> None:
    with store.writer() as writer:
        writer.remove([document.uri for document in store.iterate()])
        items = [
            doc(f"d{number}", "t", title=title, metadata=metadata, **members)
            for number, (members, title, metadata) in enumerate(collection)
        ]
        writer.put(Batch(items))
    seen = {
        item.document.uri: {**flat(item.document.metadata), **{name: getattr(item.document, name) for name in COLUMNS}}
        for item in items
    }
    known: dict[str, list[Any]] = {}
    for found in seen.values():
        for name, values in found.items():
            if name not in COLUMNS:
                known.setdefault(name, []).extend(values)
    with store.snapshot() as snapshot:
        for where in filters:
            if not fits(where, known):
                with pytest.raises(FilterError):
                    snapshot.dense(AXES[0], 9, where, "document", False)
                continue
            ranking = snapshot.dense(AXES[0], 9, where, "document", False)
            resolved = check_filter(where, snapshot_types(known))
            expected = [uri for uri in seen if matches(resolved, seen[uri])]
            assert uris(snapshot, ranking) == expected, render(where)
            assert [uri for uri in seen if snapshot.matches(uri, where)] == expected, render(where)


# words


def test_words_have_exactly_these_scores(store: Store) -> None:
    put(store, doc("a", "apple pie"), doc("b", "apples, apple: tart cake"), doc("c", "pear"))
    with store.snapshot() as snapshot:
        ranking = snapshot.words("an apple", 9, None, "document")
        # idf = ln(1 + (3 - 2 + .5) / (2 + .5)) = .4700; of `b`, with a mean length of 7/3: 2.2 * 2 / (2 + 1.8429) * idf
        assert uris(snapshot, ranking) == ["b", "a"]
        assert ranking.scores.tolist() == pytest.approx([0.5381, 0.4992], abs=1e-4)
        assert (ranking.matched, ranking.exact) == (2, True)
        assert ranking.scores.dtype == np.float32
        # idf of a word that one text of three has: ln(1 + 2.5 / 1.5) = .9808; each word of the question counts once
        ranking = snapshot.words("pear pear pie pears", 9, None, "passage")
        assert uris(snapshot, ranking) == ["c", "a"]
        assert ranking.scores.tolist() == pytest.approx([1.2801, 1.0417], abs=1e-4)
        assert snapshot.words("apple", 1, None, "document").scores.tolist() == pytest.approx([0.5381], abs=1e-4)
        assert snapshot.words("unknown", 9, None, "document").matched == 0
        assert len(snapshot.words("unknown words", 9, None, "passage").passages) == 0


def test_lengths_are_rounded_to_one_byte(store: Store) -> None:
    put(store, doc("a", "apple" + " filler" * 62), doc("b", "apple" + " filler" * 36))
    with store.snapshot() as snapshot:
        # 63 words count as 60, 37 as 37; the mean is 50 and counts as it is. idf = ln(1 + .5 / 2.5) = .1823
        ranking = snapshot.words("apple", 9, None, "document")
        assert uris(snapshot, ranking) == ["b", "a"]
        expected = [0.18232 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / 50)) for length in (37, 60)]
        assert ranking.scores.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_document_is_ranked_by_all_its_words_and_shown_by_its_best_passage(store: Store) -> None:
    text = "apple pie. pear tart. plum"
    put(
        store,
        doc("a", text, random_rows(3, 1), [Span(0, 10), Span(11, 21), Span(22, 26)], title="Orchard"),
        doc("b", "apple x x x x x x x x"),
        doc("c", "applepie", random_rows(2, 2), [Span(0, 4), Span(4, 8)]),
        doc("d", "", title="quince"),
    )
    with store.snapshot() as snapshot:
        # Titles are words of every passage: of those that hold one word each, the shortest scores best.
        for question, best in (("tart", 11), ("plum pie", 22), ("orchard", 22), ("plum pear tart", 11)):
            ranking = snapshot.words(question, 1, None, "document")
            assert shown(snapshot, ranking.passages) == [("a", best)], question
        assert shown(snapshot, snapshot.words("applepie", 9, None, "document").passages) == [("c", 0)]
        assert snapshot.words("applepie", 9, None, "passage").matched == 0
        assert shown(snapshot, snapshot.words("quince", 9, None, "passage").passages) == [("d", 0)]
        assert snapshot.words("orchard", 9, None, "passage").matched == 3


def test_a_filter_leaves_the_statistics_as_they_are(store: Store) -> None:
    put(store, *(doc(f"d{n}", f"apple {'pie ' * n}", metadata={"n": n}) for n in range(6)))
    for one in UNITS:
        with store.snapshot() as snapshot:
            whole = snapshot.words("apple pie", 9, None, one)
            scores = dict(zip(uris(snapshot, whole), whole.scores.tolist(), strict=True))
            for text, numbers in (("n >= 2 and n < 4", {2, 3}), ("n != 1", {0, 2, 3, 4, 5}), ("n > 9", set())):
                some = snapshot.words("apple pie", 9, parse(text), one)
                expected = [uri for uri in uris(snapshot, whole) if int(uri[1:]) in numbers]
                assert uris(snapshot, some) == expected
                assert some.matched == len(expected)
                assert some.scores.tolist() == pytest.approx([scores[uri] for uri in expected], abs=NEAR)
                assert uris(snapshot, snapshot.words("apple pie", 1, parse(text), one)) == expected[:1]


@pytest.mark.parametrize(
    ("question", "message"), [("", "has no word"), ("?!", "has no word"), ("of the", "too common")]
)
def test_a_question_needs_a_word(store: Store, question: str, message: str) -> None:
    put(store, doc("a", "of the ?!"))
    with store.snapshot() as snapshot:
        for one in UNITS:
            with pytest.raises(NoWords, match=message):
                snapshot.words(question, 5, None, one)
            candidates = snapshot.candidates(AXES[0], question, 5, None, one, False)
            assert (candidates.terms, candidates.words.tolist(), candidates.matched) == (0, [0.0], 1)


@pytest.mark.parametrize(
    ("language", "found"),
    [
        ("en", {"run": ["a"], "runs": ["a"], "haus": [], "häuser": ["b"], "the": None, "und": ["b"], "京都": ["c"]}),
        ("none", {"run": [], "runs": ["a"], "haus": [], "the": ["a"], "京": []}),
        ("de", {"haus": ["b"], "und": None, "the": ["a"], "runs": ["a"], "京都": ["c"]}),
        ("german", {"haus": ["b"]}),
    ],
)
def test_words_are_found_by_the_endings_of_the_language(
    make: Callable[..., Store], language: str, found: dict[str, list[str] | None]
) -> None:
    store = make(replace(SETTINGS, language=language))
    put(store, doc("a", "the owl runs"), doc("b", "Häuser und mehr"), doc("c", "东京都"))
    with store.snapshot() as snapshot:
        assert snapshot.settings.language == {"german": "de"}.get(language, language)
        for question, expected in found.items():
            if expected is None:
                with pytest.raises(NoWords):
                    snapshot.words(question, 5, None, "document")
            else:
                assert uris(snapshot, snapshot.words(question, 5, None, "document")) == expected, question


def test_words_follow_the_language_when_it_is_changed(store: Store) -> None:
    put(store, doc("a", "the owl runs"), doc("b", "Häuser"))
    for language, found in (("de", ["b"]), ("none", []), ("en", [])):
        with store.writer() as writer:
            writer.change(lambda settings: replace(settings, language=language))  # noqa: B023
        for settle in (False, True):
            with store.writer() as writer:
                if settle:
                    writer.settle()
            with store.snapshot() as snapshot:
                assert uris(snapshot, snapshot.words("haus", 5, None, "document")) == found
                assert uris(snapshot, snapshot.words("run", 5, None, "document")) == ["a"] * (language != "none")
                assert snapshot.check(None).ok


def test_an_unknown_language_is_refused(make: Callable[..., Store]) -> None:
    with pytest.raises(BadInput, match="language 'klingon' is unknown"):
        make(replace(SETTINGS, language="klingon"))


def test_equal_scores_of_words_come_in_the_order_the_passages_were_added(store: Store) -> None:
    put(store, *(doc(f"d{number}", "the same text") for number in range(60)))
    put(store, doc("d4", "the same text"))
    order = [f"d{number}" for number in range(60) if number != 4] + ["d4"]
    with store.snapshot() as snapshot:
        for one in UNITS:
            for k in (1, 7, 59, 60, MANY):
                ranking = snapshot.words("text", k, None, one)
                assert (uris(snapshot, ranking), ranking.matched) == (order[:k], 60), k


@pytest.mark.parametrize("one", UNITS)
def test_none_are_found_where_none_are_asked_for(store: Store, one: Unit) -> None:
    put(store, doc("a", "apple"), doc("b", "apple"))
    with store.snapshot() as snapshot:
        for ranking in (snapshot.dense(AXES[0], 0, None, one, False), snapshot.words("apple", 0, None, one)):
            assert (len(ranking.passages), len(ranking.documents), len(ranking.scores)) == (0, 0, 0)
            assert (ranking.matched, ranking.exact) == (2, True)
        candidates = snapshot.candidates(AXES[0], "apple", 0, None, one, False)
        assert (len(candidates.passages), candidates.matched, candidates.complete) == (0, 2, False)


# candidates


@pytest.mark.parametrize("one", UNITS)
def test_candidates_are_the_best_of_both_legs_with_both_scores(store: Store, one: Unit) -> None:
    words = ["apple", "pear", "plum", "fig"]
    chance = np.random.default_rng(4)
    for number in range(14):
        parts = [" ".join(chance.choice(words, 3)) for _ in range(int(chance.integers(1, 6)))]
        text = ". ".join(parts)
        starts = np.cumsum([0] + [len(part) + 2 for part in parts]).tolist()
        spans = [Span(start, start + len(part)) for start, part in zip(starts, parts, strict=False)]
        put(store, doc(f"d{number}", text, random_rows(len(parts), number), spans, metadata={"n": number}))
    vector = random_rows(1, 99)[0]
    with store.snapshot() as snapshot:
        every = snapshot.dense(vector, 999, None, "passage", True)
        passages = snapshot.passages_by_id(every.passages.tolist())
        by_words = snapshot.words("an apple and a fig", 999, None, one)
        asked = dict(
            zip(
                (by_words.documents if one == "document" else by_words.passages).tolist(),
                by_words.scores.tolist(),
                strict=True,
            )
        )
        nearest: dict[int, list[tuple[int, float]]] = {}
        numbers: dict[int, int] = {}
        for passage, cosine in zip(passages, every.scores.tolist(), strict=True):
            key = passage.document_id if one == "document" else passage.id
            nearest.setdefault(key, []).append((passage.id, cosine))
            numbers[key] = passage.metadata["n"]
        for text, low in ((None, 0), ("n >= 5", 5), ("n >= 99", 99)):
            where = parse(text) if text else None
            left = [key for key in nearest if numbers[key] >= low]  # by cosine, best first
            for depth in (1, 3, 10, MANY):
                near, said = left[:depth], [key for key in asked if numbers[key] >= low][:depth]
                expected = sorted({*near, *said})
                found = snapshot.candidates(vector, "an apple and a fig", depth, where, one, False)
                assert found.passages.tolist() == [nearest[key][0][0] for key in expected]
                np.testing.assert_allclose(found.cosines, [nearest[key][0][1] for key in expected], atol=1e-6)
                means = [np.mean([cosine for _, cosine in nearest[key][:3]]) for key in expected]
                np.testing.assert_allclose(found.best_means, means, atol=1e-6)
                np.testing.assert_allclose(found.words, [asked.get(key, 0.0) for key in expected], atol=NEAR)
                assert (found.terms, found.matched, found.complete) == (2, len(left), len(expected) == len(left))
                assert found.best_means.dtype == np.float64
                alone = snapshot.candidates(vector, "of the", depth, where, one, False)
                assert alone.passages.tolist() == [nearest[key][0][0] for key in sorted(near)]
                assert (alone.terms, alone.words.tolist()) == (0, [0.0] * len(near))


# settings and the ledger


def test_settings_are_kept_as_they_are_changed(engine: Engine, make: Callable[..., Store]) -> None:
    recipe = Recipe("words", "0" * 64, DIMENSIONS, 32)
    whole = Settings(
        DIMENSIONS,
        recipe,
        PassageSettings(32, 8),
        "de",
        0.9,
        -0.25,
        Calibration(PERCENTILES, tuple(reversed(PERCENTILES)), PERCENTILES, 7),
        Probed(0.5, 0.25, 60),
        "why it could not",
    )
    store = make(whole)
    with store.snapshot() as snapshot:
        assert snapshot.settings == whole
        assert snapshot.fitted_parameters() is None
    for settings in (
        Settings(DIMENSIONS),
        replace(whole, recall=1.0),
        replace(whole, language_open=True),
        whole,
        replace(whole, recipe=replace(recipe, model="/elsewhere"), passages=PassageSettings(64, 0)),
        replace(whole, words_bias=None, uncompiled=""),
        replace(whole, words_bias=0.0, calibration=None),
        replace(whole, probed=None, recall=None),
    ):
        with store.snapshot() as snapshot:
            before = snapshot.settings
        with store.writer() as writer:
            seen: list[Settings] = []

            def update(stored: Settings) -> Settings:
                seen.append(stored)  # noqa: B023
                return settings  # noqa: B023

            assert writer.change(update) == settings
            assert seen == [before]
        with store.snapshot() as snapshot:
            assert snapshot.settings == settings
    with pytest.raises(ZeroDivisionError), store.writer() as writer:
        writer.change(lambda stored: replace(stored, recall=1 / 0))
    with store.writer() as writer:
        writer.change(lambda stored: replace(stored, recall=0.5), b"\0fitted")
        writer.change(lambda stored: replace(stored, words_bias=1.5))
    other = engine.open(store.address)
    with other.snapshot() as snapshot:
        assert snapshot.fitted_parameters() == b"\0fitted"
        assert (snapshot.settings.recall, snapshot.settings.words_bias) == (0.5, 1.5)
    other.close()
    with store.writer() as writer, pytest.raises(BadInput):  # every vector depends on them
        writer.change(lambda stored: replace(stored, recall=0.9), b"others")
    with store.snapshot() as snapshot:
        assert (snapshot.fitted_parameters(), snapshot.settings.recall) == (b"\0fitted", 0.5)


def test_settle_and_compact_keep_the_recall_that_they_are_given(store: Store) -> None:
    put(store, doc("a", "x"))
    with store.writer() as writer:
        for change in (writer.settle, lambda recall: writer.compact("exact", recall)):
            for recall in (0.0, 1.01, -1.0):
                with pytest.raises(BadInput, match="recall"):
                    change(recall)
        writer.settle(0.8)
        with store.snapshot() as snapshot:
            assert snapshot.settings.recall == 0.8
        writer.compact("auto", 1)
        writer.settle()
        with pytest.raises(BadInput, match="kind 'fast' is unknown"):
            writer.compact("fast")  # type: ignore[arg-type]
    with store.snapshot() as snapshot:
        assert snapshot.settings.recall == 1.0


def test_equal_reasons_of_the_ledger_are_counted(store: Store) -> None:
    failed = [LedgerRow("/a", f"r{number}", "failed", Code.OTHER("no text")) for number in range(3)]
    other = [LedgerRow("/b", "/b", "skipped", Code.OTHER("no text")), LedgerRow("/c", "/c", "failed", Code.EMPTY())]
    put(store, doc("/d", "x"), rows=[*failed, *other, LedgerRow("/d", "/d", "indexed")])
    with store.snapshot() as snapshot:
        assert sorted(snapshot.ledger_reasons(), key=lambda row: (row.state, row.reason.text())) == [
            ReasonCount("failed", Code.EMPTY(), 1),
            ReasonCount("failed", Code.OTHER("no text"), 3),
            ReasonCount("skipped", Code.OTHER("no text"), 1),
        ]


def test_the_ledger_keeps_the_outcome_of_every_file_and_record(store: Store) -> None:
    bad_line = replace(Code.OTHER("no text"), line=2)
    stamps = {"/a": Stamp(1, 2, 3, 4), "/b": Stamp(5, 6, 7, 8), "/empty": Stamp(0, 1, 1, 1)}
    rows = [
        LedgerRow("/a", "/a", "indexed"),
        LedgerRow("/b", "r1", "indexed"),
        LedgerRow("/b", "r2", "failed", bad_line),
        LedgerRow("/c", "/c", "skipped", Code.EMPTY()),
    ]
    put(store, doc("/a", "x"), doc("r1", "y"), rows=rows, finished=stamps)
    with store.snapshot() as snapshot:
        assert list(snapshot.ledger()) == rows
        assert list(snapshot.ledger("failed")) == rows[2:3]
        assert list(snapshot.ledger("gone")) == []
        assert sorted(row.uri for row in snapshot.ledger_of_documents()) == ["/a", "r1"]
        assert dict(snapshot.ledger_counts()) == {"indexed": 2, "failed": 1, "skipped": 1}
        assert dict(snapshot.files()) == {
            "/a": KnownFile(Stamp(1, 2, 3, 4), (("/a", "indexed", NO_REASON),)),
            "/b": KnownFile(
                Stamp(5, 6, 7, 8),
                (("r1", "indexed", NO_REASON), ("r2", "failed", bad_line)),
            ),
            "/c": KnownFile(Stamp(-1, 0, 0, 0), (("/c", "skipped", Code.EMPTY()),)),
            "/empty": KnownFile(Stamp(0, 1, 1, 1), ()),
        }
    put(store, doc("r1", "changed"))  # behind its file's back: the next run reads that again
    assert stamp_sizes(store) == {"/a": 1, "/b": -1, "/c": -1, "/empty": 0}
    put(store, doc("r1", "changed"), rows=[LedgerRow("/d", "r1", "indexed")])  # by a run: nothing is read again
    put(store, finished={"/b": Stamp(9, 6, 7, 8)})
    assert stamp_sizes(store) == {"/a": 1, "/b": 9, "/c": -1, "/d": -1, "/empty": 0}
    assert remove(store, "/a", "r2") == 1  # r2 is no document, and its row stays
    assert stamp_sizes(store) == {"/a": -1, "/b": 9, "/c": -1, "/d": -1, "/empty": 0}
    with store.snapshot() as snapshot:
        assert [(row.file, row.uri) for row in snapshot.ledger()] == [
            ("/b", "r1"),
            ("/b", "r2"),
            ("/c", "/c"),
            ("/d", "r1"),
        ]


def stamp_sizes(store: Store) -> dict[str, int]:
    with store.snapshot() as snapshot:
        return {path: file.stamp.size for path, file in snapshot.files().items()}


def states(store: Store) -> list[str]:
    with store.snapshot() as snapshot:
        return sorted(f"{row.file} {row.uri} {row.state}" for row in snapshot.ledger())


def run(store: Store, rows: Sequence[LedgerRow], read: Sequence[str] = (), unchanged: Sequence[str] = ()) -> int:
    """A whole run: documents are put for the rows that say so, and the files are finished."""
    with store.writer() as writer:
        number = writer.begin_run()
        items = [doc(row.uri, row.uri) for row in rows if row.state == "indexed"]
        writer.put(Batch(items, rows, {row.file: Stamp(1, 1, 1, 1) for row in rows}, number))
        return writer.end_run(number, RunOutcome(read, unchanged))


def test_the_end_of_a_run_marks_what_is_gone_and_what_is_unchanged(store: Store) -> None:
    first = [
        LedgerRow("/a", "a1", "indexed"),
        LedgerRow("/a", "a2", "indexed"),
        LedgerRow("/a", "a3", "failed", Code.OTHER("why")),
        LedgerRow("/b", "b1", "indexed"),
        LedgerRow("/b", "b2", "skipped", Code.EMPTY()),
        LedgerRow("/c", "c1", "indexed"),
    ]
    assert run(store, first, ["/a", "/b", "/c"]) == 0
    assert [state.split()[2] for state in states(store)] == [row.state for row in first]
    assert run(store, [LedgerRow("/a", "a1", "unchanged")], ["/a"], ["/b"]) == 0
    assert states(store) == [
        "/a a1 unchanged",
        "/a a2 gone",
        "/b b1 unchanged",
        "/b b2 skipped",
        "/c c1 indexed",
    ]
    with store.snapshot() as snapshot:
        assert snapshot.files()["/a"].entries == (("a1", "unchanged", NO_REASON),)
        assert snapshot.get("a2") is not None  # gone from its file, and still a document
        assert sorted(row.uri for row in snapshot.ledger_of_documents()) == ["a1", "a2", "b1", "c1"]
    assert run(store, [LedgerRow("/a", "a2", "indexed")], ["/b"]) == 0  # one file came back with it, one is lost whole
    assert states(store) == ["/a a1 unchanged", "/a a2 indexed", "/b b1 gone", "/c c1 indexed"]


def test_the_end_of_a_run_writes_stamps_before_it_has_files_read_again(store: Store) -> None:
    rows = [LedgerRow("/a", "x", "indexed"), LedgerRow("/b", "x", "indexed"), LedgerRow("/c", "y", "indexed")]
    assert run(store, rows, ["/a", "/b", "/c"]) == 0
    with store.writer() as writer:
        finished = {"/b": Stamp(2, 1, 1, 1), "/c": Stamp(3, 1, 1, 1)}
        assert writer.end_run(writer.begin_run(), RunOutcome(["/a"], ["/b", "/c"], finished)) == 1
    assert stamp_sizes(store) == {"/a": 1, "/b": -1, "/c": 3}


def test_files_that_hold_what_another_has_lost_are_read_again(store: Store) -> None:
    first = [
        LedgerRow("/a", "x", "indexed"),
        LedgerRow("/b", "x", "skipped", Code.DUPLICATE()),
        LedgerRow("/c", "x", "skipped", Code.EMPTY()),
        LedgerRow("/d", "y", "indexed"),
    ]
    assert run(store, first, ["/a", "/b", "/c", "/d"]) == 0
    assert run(store, [], ["/a"], ["/b", "/c", "/d"]) == 1
    assert states(store) == ["/a x gone", "/b x skipped", "/c x skipped", "/d y unchanged"]
    assert stamp_sizes(store) == {"/a": 1, "/b": -1, "/c": 1, "/d": 1}
    assert run(store, [LedgerRow("/b", "x", "indexed")], ["/b"]) == 0  # it is that file's now
    assert states(store) == ["/b x indexed", "/c x skipped", "/d y unchanged"]


def test_a_run_that_did_not_finish_is_noted(store: Store) -> None:
    with store.writer() as writer:
        assert writer.begin_run() < (number := writer.begin_run())
    with store.snapshot() as snapshot:
        report = snapshot.check(None)
    assert report.ok and any("did not finish" in note for note in report.notes)
    with store.writer() as writer:
        assert writer.end_run(number, RunOutcome()) == 0
    with store.snapshot() as snapshot:
        assert not notes_of(snapshot)


# the whole of it


def test_iteration_reads_in_pages_and_is_not_disturbed(store: Store) -> None:
    put(store, *(doc(f"d{number}", "t", metadata={"n": number % 2}) for number in range(600)))
    constant = {f"d{number}" for number in range(0, 600, 2)}
    for where in (None, parse("n = 0")):
        found = []
        for document in store.iterate(where):
            found.append(document.uri)
            if len(found) == 3:
                remove(store, *(f"d{number}" for number in range(1, 600, 2)))
                put(store, doc("later", "t", metadata={"n": 0}), doc("d8", "replaced", metadata={"n": 0}))
        numbered = [int(uri[1:]) for uri in found if uri != "later"]
        assert numbered == sorted(set(numbered))
        assert constant <= set(found)
        if where is not None:  # the filter is that of the moment it began
            assert set(found) == constant
        remove(store, "later")
    with pytest.raises(FilterError):
        next(iter(store.iterate(parse("unknown = 1"))))
    began = store.iterate(parse("n = 0"))
    assert next(began).uri == "d0"
    assert len(list(began)) == 299


def test_reading_in_pages_ends_where_another_index_takes_the_place(store: Store) -> None:
    """Its ids are those of other documents, which the filter might not leave."""
    put(store, *(doc(f"d{number}", "t", metadata={"n": 1}) for number in range(600)))
    with store.writer():
        made = store.engine.make("next", SETTINGS)
    put(made, *(doc(f"d{number}", "t", metadata={"n": number % 2}) for number in reversed(range(600))))
    for place in ("next", "previous"):
        began = [store.iterate(), store.iterate(parse("n = 1")), store.export()]
        for each in began:
            next(each)  # type: ignore[call-overload]
        exchange(store, place)
        for each in began:
            with pytest.raises(NotAnIndex, match="was replaced by another index"):
                list(each)
        assert len(list(store.iterate())) == 600


def test_what_is_exported_makes_a_store_with_the_same_answers(make: Callable[..., Store]) -> None:
    one, other = make(), make()
    vector = filled(one)
    spans = [Span(0, 3, "prefix", 4, "H", 2), Span(4, 8, tokens=5)]
    put(one, doc("x", "two apples", random_rows(2, 8), spans, title="T", path="/x", format="pdf"))
    exported = list(one.export())
    assert [item.document.uri for item in exported] == [document.uri for document in one.iterate()]
    last = exported[-1]
    assert last.spans == (Span(0, 3, "", 9, "H", 2), Span(4, 8, "", 0, "", None))
    assert {item.hashes for item in exported} == {Hashes(b"", b"")}
    put(other, *(replace(item, hashes=hashed(item.document)) for item in exported))
    with one.snapshot() as first, other.snapshot() as second:
        agree(first, second, [vector])
        assert first.check(None).ok and second.check(None).ok


def test_info_tells_the_state_in_numbers(store: Store) -> None:
    spans = [Span(0, 1, tokens=3), Span(1, 2, tokens=4)]
    put(store, doc("a", "ab", random_rows(2, 1), spans, metadata={"n": 1, "x": {"y": [True, "t"]}, "title": 2}))
    put(store, doc("b", "one two", metadata={"n": "text", "none": None}))
    with store.snapshot() as snapshot:
        info, version = snapshot.info(), snapshot.info().format_version
        assert (info.documents, info.passages, info.tokens, info.dimensions) == (2, 3, 9, DIMENSIONS)
        assert info.fields == {"metadata.title": ("number",), "n": ("number", "text"), "x.y": ("boolean", "text")}
        assert list(info.fields) == sorted(info.fields)
        assert info.history == snapshot.history
        assert info.unsealed == 3 and info.bytes > 0 and version >= 1
    put(store, row_of("a", "ab"))
    with store.snapshot() as snapshot:
        assert (snapshot.info().tokens, snapshot.info().fields) == (9, {"n": ("text",)})


def test_check_compares_documents_with_their_hashes(store: Store) -> None:
    broken = doc("bad", "what was embedded")
    other = replace(broken.hashes, content=b"x" * 16)
    own = doc("own", "vectors of one's own", spans=[Span(0, 20)])  # no tokens: nothing was embedded
    rows = [LedgerRow("/f", "bad", "indexed"), LedgerRow("/g", "a", "indexed")]
    stamps = {"/f": Stamp(1, 1, 1, 1), "/g": Stamp(2, 2, 2, 2)}
    put(
        store,
        doc("a", "apple"),
        replace(broken, hashes=other),
        replace(own, hashes=replace(own.hashes, content=b"y" * 16)),
        rows=rows,
        finished=stamps,
    )
    with store.snapshot() as snapshot:
        assert snapshot.check(None).ok
        report = snapshot.check(MEANING)
        assert not report.ok and len(report.problems) == 1 and report.problems[0].startswith("bad: ")
        assert len(snapshot.check(Meaning("another", "passages")).problems) == 2
    with store.writer() as writer:
        assert writer.repair(None).ok
        report = writer.repair(MEANING)
    assert any("1 damaged document(s)" in note for note in report.notes)
    with store.snapshot() as snapshot:
        assert snapshot.hashes()["bad"].content not in (other.content, broken.hashes.content)
        assert snapshot.hashes()["a"] == hashed(Document("a", "apple"))
    assert stamp_sizes(store) == {"/f": -1, "/g": 2}
    assert put(store, broken).replaced == ("bad",)
    with store.snapshot() as snapshot:
        assert snapshot.check(MEANING).ok


def test_a_row_that_is_not_what_was_hashed_is_damage(store: Store) -> None:
    item = doc("bad", "apple", metadata={"n": 1})
    put(store, doc("a", "apple"), replace(item, hashes=replace(item.hashes, row=b"z" * 16)))
    with store.snapshot() as snapshot:
        bad = snapshot.dense(AXES[0], 2, None, "document", False).passages.tolist()[1]
        for ask in (lambda: snapshot.get("bad"), lambda: snapshot.passages_by_id([bad])):
            with pytest.raises(IndexDamaged, match=r"^bad: "):
                ask()
        assert [problem.split(":")[0] for problem in snapshot.check(None).problems] == ["bad"]
    with pytest.raises(IndexDamaged, match=r"^bad: "):
        list(store.iterate())


def test_recall_of_few_passages_is_whole(store: Store) -> None:
    filled(store, 5)
    with store.snapshot() as snapshot:
        recall = snapshot.recall()
    assert (recall.recall, recall.low, recall.high, recall.exact) == (1.0, 1.0, 1.0, True)
    assert recall.questions > 0


def test_nearest_pairs_are_those_of_brute_force(store: Store) -> None:
    filled(store, 14)
    with store.snapshot() as snapshot:
        sample = snapshot.sample(999)
        owners = [passage.document_id for passage in snapshot.passages_by_id(sample.passages.tolist())]
        pairs = [
            (float(np.einsum("j,j->", sample.vectors[i], sample.vectors[j])), i, j)
            for i in range(len(owners))
            for j in range(i + 1, len(owners))
            if owners[i] != owners[j]
        ]
        for count, least in ((1, -1.0), (7, -1.0), (10_000, 0.9), (10_000, -1.0), (5, 0.999), (5, 2.0)):
            expected = sorted(((s, i, j) for s, i, j in pairs if s >= least), key=lambda pair: -pair[0])[:count]
            found = snapshot.nearest_pairs(count, least)
            assert found.passages == len(owners)
            np.testing.assert_allclose(found.scores, [score for score, _, _ in expected], atol=1e-6)
            scores = {(int(sample.passages[i]), int(sample.passages[j])): s for s, i, j in pairs}
            own = [scores[pair] for pair in zip(found.first.tolist(), found.second.tolist(), strict=True)]
            np.testing.assert_allclose(found.scores, own, atol=1e-6)
            assert len(set(zip(found.first.tolist(), found.second.tolist(), strict=True))) == len(expected)


def test_a_sample_is_drawn_by_the_order_of_addition(store: Store) -> None:
    filled(store)
    remove(store, "d3")
    with store.snapshot() as snapshot:
        whole = snapshot.sample(10_000)
        assert whole.passages.tolist() == sorted(whole.passages.tolist())
        assert len(whole.passages) == snapshot.passages
        for seed in (0, 1):
            places = np.sort(np.random.default_rng(seed).choice(len(whole.passages), 5, replace=False))
            some = snapshot.sample(5, seed)
            assert some.passages.tolist() == whole.passages[places].tolist()
            np.testing.assert_array_equal(some.vectors, whole.vectors[places])
        assert snapshot.sample(5).passages.tolist() == snapshot.sample(5, 0).passages.tolist()
        assert snapshot.sample(0).vectors.shape == (0, DIMENSIONS)


def test_a_successor_takes_the_place_when_it_is_complete(engine: Engine, store: Store) -> None:
    put(store, doc("a", "apple"), rows=[LedgerRow("/f", "a", "indexed")])
    with store.writer() as writer:
        writer.begin_run()
    settings = Settings(2, language="de", words_bias=0.5)
    other = engine.open(store.address)
    with other.snapshot() as snapshot:
        assert uris(snapshot, snapshot.words("apple", 5, None, "document")) == ["a"]
    with store.snapshot() as before:
        with store.engine.exclusive(), draft(store.engine, settings) as successor:
            with successor.snapshot() as snapshot:
                assert (snapshot.documents, snapshot.settings, list(snapshot.ledger())) == (0, settings, [])
            put(successor, doc("b", "Häuser", unit([1, 1])), doc("c", "x", unit([1, 0])))
            with store.snapshot() as snapshot:
                assert list(snapshot.hashes()) == ["a"]
        assert (before.documents, before.get("a")) == (1, Document("a", "apple"))
        assert uris(before, before.dense(AXES[0], 5, None, "document", False)) == ["a"]
        version, history = before.version, before.history
    for now in (store, other):
        with now.snapshot() as snapshot:
            assert (list(snapshot.hashes()), snapshot.settings) == (["b", "c"], settings)
            assert (snapshot.version != version, snapshot.history != history) == (True, True)
            assert uris(snapshot, snapshot.dense(unit([0, 1])[0], 5, None, "document", False)) == ["b", "c"]
            assert uris(snapshot, snapshot.words("haus", 5, None, "document")) == ["b"]
            assert snapshot.check(None).ok and not notes_of(snapshot)
    other.close()
    assert put(store, doc("d", "y", unit([1, 0]))).added == ("d",)


def test_a_successor_that_fails_leaves_everything_as_it_was(store: Store) -> None:
    put(store, doc("a", "apple"))
    before = everything(store)
    with store.snapshot() as snapshot:
        history = snapshot.history
    with pytest.raises(ZeroDivisionError), store.engine.exclusive(), draft(store.engine, Settings(2)) as successor:
        put(successor, doc("b", "x", unit([1, 0])))
        raise ZeroDivisionError
    assert everything(store) == before
    with store.snapshot() as snapshot:
        assert snapshot.history == history
    if Path(store.address).exists():
        assert list(Path(store.address).parent.iterdir()) == [Path(store.address)]
    assert put(store, doc("c", "y")).added == ("c",)


# an index beside another one


def taken(item: EmbeddedDocument, origin: bytes) -> EmbeddedDocument:
    return replace(item, origin=origin)


def beside(store: Store, slot: SideSlot) -> Store | None:
    return store.engine.open(slot) if store.engine.exists(slot) else None


def exchange(store: Store, slot: SideSlot) -> None:
    with store.engine.exclusive(), store.engine.open(slot).writer():
        assert store.engine.exists(slot)
        store.engine.publish(slot)


def test_where_a_document_was_taken_from_holds_as_long_as_its_content(store: Store) -> None:
    put(store, taken(doc("a", "one"), b"a" * 16), doc("b", "two"), taken(doc("c", "three"), b"c" * 16))

    def origins() -> dict[str, bytes]:
        with store.snapshot() as snapshot:
            return dict(snapshot.origins(["a", "b", "c", "unknown"]))

    assert origins() == {"a": b"a" * 16, "c": b"c" * 16}
    put(store, row_of("a", "one", metadata={"n": 1}), doc("c", "changed"))
    assert origins() == {"a": b"a" * 16}
    put(store, taken(row_of("b", "two", metadata={"n": 1}), b"b" * 16), doc("c", "three"))
    assert origins() == {"a": b"a" * 16, "b": b"b" * 16, "c": b"c" * 16}  # its content is the same again
    remove(store, "a")
    put(store, doc("a", "one"))
    assert origins() == {"b": b"b" * 16, "c": b"c" * 16}


def test_an_index_beside_another_takes_its_place_and_gives_it_back(engine: Engine, store: Store) -> None:
    put(store, doc("a", "apple"), rows=[LedgerRow("/f", "a", "indexed")], finished=STAMPS)
    assert (beside(store, "next"), beside(store, "previous")) == (None, None)
    settings, first = Settings(2, language="de"), everything(store)
    with store.writer():
        made = store.engine.make("next", settings)
    other = engine.open(store.address)
    put(made, doc("b", "Häuser", unit([1, 1])), doc("c", "x", unit([1, 0])))
    second = everything(made)
    for at in (store, other):
        stored = beside(at, "next")
        assert stored is not None and everything(stored) == second
        assert (everything(at), beside(at, "previous")) == (first, None)
    with store.snapshot() as before:
        with store.engine.exclusive(), made.writer():
            assert everything(store) == first
            store.engine.publish("next")
        assert (before.documents, before.get("a")) == (1, Document("a", "apple"))
        assert uris(before, before.dense(AXES[0], 5)) == ["a"]
        version, history = before.version, before.history
    for at in (store, other):
        with at.snapshot() as snapshot:
            assert (snapshot.version != version, snapshot.history != history) == (True, True)
            assert uris(snapshot, snapshot.dense(unit([0, 1])[0], 5)) == ["b", "c"]
            assert uris(snapshot, snapshot.words("haus", 5)) == ["b"]
            assert snapshot.check(None).ok and not notes_of(snapshot)
        previous = beside(at, "previous")
        assert (everything(at), beside(at, "next")) == (second, None)
        assert previous is not None and everything(previous) == first
    # Both can be written to, and change places as often as is asked for.
    previous = beside(store, "previous")
    assert previous is not None
    put(previous, doc("d", "pear"))
    put(other, doc("e", "y", unit([0, 1])))
    exchange(other, "previous")
    with store.snapshot() as snapshot:
        assert (snapshot.history, list(snapshot.hashes())) == (history, ["a", "d"])
        assert snapshot.check(None).ok
    exchange(store, "previous")
    assert [document.uri for document in other.iterate()] == ["b", "c", "e"]
    with store.writer(), store.engine.open("previous").writer():
        store.engine.discard("previous")
    assert (beside(store, "next"), beside(other, "previous")) == (None, None)
    assert [document.uri for document in store.iterate()] == ["b", "c", "e"]
    with store.writer():
        store.engine.make("next", SETTINGS)
    other.close()


def test_one_index_at_a_time_stands_beside_another(store: Store) -> None:
    with store.writer():
        with pytest.raises(BadInput), store.engine.exclusive():
            store.engine.publish("next")  # there is nothing to exchange it with
        with pytest.raises(BadInput):
            store.engine.discard("previous")
        made = store.engine.make("next", SETTINGS)
        with pytest.raises(BadInput):
            store.engine.make("next", SETTINGS)
    with pytest.raises(ZeroDivisionError), store.engine.exclusive(), made.writer():
        raise ZeroDivisionError
    assert beside(store, "previous") is None
    exchange(store, "next")
    with store.writer(), pytest.raises(BadInput):
        store.engine.make("next", SETTINGS)
    with store.engine.exclusive(), pytest.raises(BadInput):
        store.engine.publish("next")  # there is nothing to exchange it with


def test_a_successor_takes_what_stands_beside_with_it(store: Store) -> None:
    with store.writer():
        put(store.engine.make("next", SETTINGS), doc("a", "apple"))
        with store.engine.exclusive(), draft(store.engine, SETTINGS) as successor:
            put(successor, doc("b", "pear"))
        assert (beside(store, "next"), [document.uri for document in store.iterate()]) == (None, ["b"])


def test_an_index_beside_another_has_a_writer_of_its_own(store: Store) -> None:
    with store.writer():
        made = store.engine.make("next", SETTINGS)
    with made.writer():
        thread = threading.Thread(target=put, args=(store, doc("a", "x")))
        thread.start()
        thread.join()
    assert [document.uri for document in store.iterate()] == ["a"]
    assert list(made.iterate()) == []


def test_copies_and_numbers_leave_out_what_stands_beside(engine: Engine, store: Store, tmp_path: Path) -> None:
    put(store, doc("a", "apple"))
    with store.snapshot() as snapshot:
        size = snapshot.info().bytes
    with store.writer():
        put(store.engine.make("next", SETTINGS), doc("b", "pear"))
    with store.snapshot() as snapshot:
        assert (snapshot.info().bytes, snapshot.check(None).ok, notes_of(snapshot)) == (size, True, [])
    destination = str(tmp_path / "copy.index")
    backup(store, engine.at(destination))
    copy = engine.open(destination)
    assert (beside(copy, "next"), [document.uri for document in copy.iterate()]) == (None, ["a"])
    assert store.free_bytes() is None or store.free_bytes() > 0  # type: ignore[operator]
    copy.close()


def test_a_backup_is_a_copy_with_a_history_of_its_own(engine: Engine, store: Store, tmp_path: Path) -> None:
    vector = filled(store)
    put(store, doc("x", "apple"), rows=[LedgerRow("/f", "x", "indexed")], finished=STAMPS)
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, words_bias=0.5), b"fitted")
        writer.settle()
    destination = str(tmp_path / "copy.index")
    with store.writer() as writer:  # while it is written
        writer.remove(["d4"])
        backup(store, engine.at(destination))
    copy = engine.open(destination)
    assert everything(copy) == everything(store)
    with store.snapshot() as one, copy.snapshot() as other:
        agree(one, other, [vector])
        assert one.sample(6).passages.tolist() == other.sample(6).passages.tolist()
        assert other.fitted_parameters() == b"fitted"
        assert other.history != one.history and other.version != one.version
        assert other.check(None).ok
    put(copy, doc("y", "pear"))
    remove(store, "x")
    with store.snapshot() as one, copy.snapshot() as other:
        assert one.get("y") is None and other.get("x") is not None
    with pytest.raises(BadInput):
        backup(store, engine.at(destination))
    assert [document.uri for document in copy.iterate()][-1] == "y"
    copy.close()


def test_a_sound_store_has_nothing_to_note(engine: Engine, store: Store, tmp_path: Path) -> None:
    with store.writer() as writer:
        writer.put(Batch([doc("a", "an apple"), doc("b", "a pear")]))
        writer.compact()
        writer.put(Batch([doc("c", "an apple and a pear")]))
        writer.remove(["b"])
        writer.settle()
        assert writer.notes == ()
    with store.snapshot() as snapshot:
        assert snapshot.dense(AXES[0], 3).matched == snapshot.words("apple", 3).matched == 2
        assert snapshot.notes == ()
    assert backup(store, engine.at(str(tmp_path / "copy.index"))) == ()


# writers


def test_a_thread_that_writes_gets_the_same_writer_again_and_others_wait(store: Store) -> None:
    outcomes: list[str] = []

    def write(wait: bool) -> None:
        try:
            with store.writer(wait=wait) as writer:
                outcomes.append("wrote")
                writer.put(Batch([doc("b", "y")]))
        except IndexLocked as error:
            outcomes.append(str(error))

    def in_thread(wait: bool) -> threading.Thread:
        thread = threading.Thread(target=write, args=(wait,))
        thread.start()
        return thread

    with store.writer() as outer:
        with store.writer(wait=False) as inner:
            assert inner is outer
            inner.put(Batch([doc("a", "x")]))
        in_thread(wait=False).join()
        assert len(outcomes) == 1 and str(store.address) in outcomes[0]
        waiting = in_thread(wait=True)
        outer.put(Batch([doc("c", "z")]))
        assert len(outcomes) == 1
    waiting.join()
    assert outcomes[1:] == ["wrote"]
    in_thread(wait=False).join()
    assert outcomes[1:] == ["wrote", "wrote"]
    assert [document.uri for document in store.iterate()] == ["a", "c", "b"]


def test_who_waits_for_another_process_is_told_once(engine: Engine, store: Store) -> None:
    if engine.held is None:
        with store.writer(on_wait=pytest.fail):  # nobody to wait for
            return
    told: list[str] = []
    with engine.held(store) as let_go:
        with pytest.raises(IndexLocked, match="is being written by process"), store.writer(wait=False):
            pytest.fail("there are two writers")

        def on_wait(message: str) -> None:
            told.append(message)
            let_go()

        with store.writer(on_wait=on_wait) as writer:
            writer.put(Batch([doc("a", "x")]))
    assert len(told) == 1 and store.address in told[0]


def test_an_error_in_the_block_keeps_what_was_committed_and_frees_the_writer(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writer() as writer:
        writer.put(Batch([doc("a", "x")]))
        raise ZeroDivisionError
    thread = threading.Thread(target=put, args=(store, doc("b", "y")))
    thread.start()
    thread.join()
    assert [document.uri for document in store.iterate()] == ["a", "b"]


def test_a_closed_store_opens_again_when_it_is_used(engine: Engine, store: Store) -> None:
    put(store, doc("a", "apple"))
    with store.snapshot() as snapshot:
        version = snapshot.version
        assert snapshot.words("apple", 5, None, "document").matched == 1
    store.close()
    store.close()
    with store.snapshot() as snapshot:
        assert snapshot.version == version
        assert uris(snapshot, snapshot.words("apple", 5, None, "document")) == ["a"]
    assert isinstance(store.artifacts(), Path)
    other = engine.open(store.address)
    assert other.address == store.address
    put(other, doc("b", "apple"))
    with store.snapshot() as snapshot, other.snapshot() as same:
        assert snapshot.documents == 2
        assert snapshot.version == same.version
    other.close()


# any operations, against the reference


WORDS = ["apple", "pear", "plum", "fig", "the", "quince", "tree", "Apple_Tree", "treeTop", "京都", "naïve"]
QUESTIONS = ["apple", "the fig tree top", "京都 naïve unknown"]
FILTERS = [None, "n >= 3", 'not (tag = "x" or exists n)']


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
    """Passages without their ids."""
    rows = snapshot.passages_by_id([int(id_) for id_ in ids])
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
    one: Snapshot, other: Snapshot, vector: Vector, depth: int, where: Where | None, unit_: Unit
) -> None:
    """Candidates agree; those that only words brought may be others where the last of them nearly tie."""
    for question in ("pear plum", "the"):
        mine, theirs = (s.candidates(vector, question, depth, where, unit_, False) for s in (one, other))
        assert (mine.terms, mine.matched) == (theirs.terms, theirs.matched)
        if shown(one, mine.passages) == shown(other, theirs.passages):
            np.testing.assert_allclose(mine.cosines, theirs.cosines, atol=1e-6)
            np.testing.assert_allclose(mine.best_means, theirs.best_means, atol=1e-6)
            np.testing.assert_allclose(mine.words, theirs.words, atol=NEAR)
            assert mine.complete == theirs.complete
        else:
            np.testing.assert_allclose(np.sort(mine.words)[-depth:], np.sort(theirs.words)[-depth:], atol=NEAR)


class Both:
    """A store and the reference, which do the same."""

    def __init__(self, store: Store, seed: int) -> None:
        self.stores: tuple[Store, Store] = (store, ReferenceStore(SETTINGS))
        self._chance = np.random.default_rng(seed)
        self._number = self._stamp = 0
        self.do(lambda writer: writer.put(Batch([doc("first", "apple", metadata={"n": 1, "tag": "x"})])))

    def do(self, change: Callable[[Writer], Any]) -> None:
        """Make the same change to both; what is returned is the same too."""
        returned = []
        for store in self.stores:
            with store.writer() as writer:
                returned.append(change(writer))
        assert returned[0] == returned[1]

    def put(self) -> None:
        fresh = [f"u{self._number + at}" for at in range(int(self._chance.integers(1, 6)))]
        self._number += len(fresh)
        batch = Batch([self._document(uri) for uri in [*self._some(2), *fresh]])
        self.do(lambda writer: writer.put(batch))

    def update(self) -> None:
        with self.stores[1].snapshot() as snapshot:
            documents = [document for uri in self._some(3) if (document := snapshot.get(uri)) is not None]
        rows = [replace(document, metadata=self._metadata()) for document in documents]
        batch = Batch([EmbeddedDocument(document, hashed(document)) for document in rows])
        self.do(lambda writer: writer.put(batch))

    def remove(self) -> None:
        uris = [*self._some(4), "unknown"]
        self.do(lambda writer: writer.remove(uris))

    def settle(self) -> None:
        self.do(lambda writer: writer.settle())

    def compact(self) -> None:
        self.do(lambda writer: writer.compact("exact"))

    def run(self) -> None:
        """An indexing run that meets some files again, and finds others unchanged or not at all."""
        self._stamp += 1
        kept: list[tuple[LedgerState, Reason]] = [
            *((state, NO_REASON) for state in HELD),
            ("skipped", Code.DUPLICATE()),
            ("failed", Code.OTHER("why")),
        ]
        rows = [LedgerRow(self._file(), uri, *self._one_of(kept)) for uri in self._some(8)]
        finished = {row.file: Stamp(self._stamp, 1, 1, 1) for row in rows[:3]}
        outcome = RunOutcome([self._file(), self._file()], [self._file()])

        def whole(writer: Writer) -> int:
            number = writer.begin_run()
            writer.put(Batch((), rows, finished, number))
            return writer.end_run(number, outcome)

        self.do(whole)

    def any(self) -> None:
        names = ("put", "put", "put", "update", "remove", "run", "run", "settle", "compact")
        getattr(self, self._one_of(names))()

    def _one_of(self, values: Sequence[Any]) -> Any:
        return values[int(self._chance.integers(len(values)))]

    def _some(self, count: int) -> list[str]:
        """Uris of documents; never the first one's, whose fields all filters know."""
        with self.stores[1].snapshot() as snapshot:
            known = list(snapshot.hashes())[1:]
        return [known[at] for at in self._chance.permutation(len(known))[:count]]

    def _file(self) -> str:
        return f"/f{self._chance.integers(5)}"

    def _metadata(self) -> dict[str, Any]:
        values = {"n": int(self._chance.integers(10)), "tag": [self._one_of(["x", "y"])], "other": None}
        return {name: value for name, value in values.items() if self._chance.random() < 0.8}

    def _document(self, uri: str) -> EmbeddedDocument:
        parts = [
            " ".join(self._chance.choice(WORDS, int(self._chance.integers(1, 9))))
            for _ in range(int(self._chance.integers(1, 4)))
        ]
        starts = [sum(len(part) + 1 for part in parts[:at]) for at in range(len(parts))]
        spans = [
            Span(start, start + len(part), tokens=at)
            for at, (start, part) in enumerate(zip(starts, parts, strict=True))
        ]
        place = {"path": f"/{uri}", "format": self._one_of(["text", "pdf"])} if self._chance.random() < 0.5 else {}
        rows = random_rows(len(parts), int(self._chance.integers(40)))  # some are equal
        title = self._one_of(["", "Fig trees", "plum"])
        return doc(uri, "\n".join(parts), rows, spans, title=title, metadata=self._metadata(), **place)


@pytest.mark.parametrize("seed", range(2))
def test_any_operations_leave_what_the_reference_has(store: Store, seed: int) -> None:
    both, vectors = Both(store, seed), [random_rows(1, 1000 + seed)[0], AXES[0]]
    earlier: dict[str, Hashes] = {}
    for step in range(16):
        both.any()
        with both.stores[0].snapshot() as one, both.stores[1].snapshot() as other:
            assert list(one.ledger()) == list(other.ledger())
            assert dict(one.files()) == dict(other.files())
            assert dict(one.ledger_counts()) == dict(other.ledger_counts())
            of_documents = [Counter(snapshot.ledger_of_documents()) for snapshot in (one, other)]
            assert of_documents[0] == of_documents[1]
            assert sorted(one.changed_since(earlier)) == sorted(other.changed_since(earlier))
            earlier = dict(other.hashes())
            assert dict(one.hashes()) == earlier
            if step % 8 == 7:
                agree(one, other, vectors, FILTERS)
    for change in (both.settle, both.put, both.compact):
        change()
        with both.stores[0].snapshot() as one, both.stores[1].snapshot() as other:
            agree(one, other, vectors, FILTERS)
            assert one.info().tokens == other.info().tokens
            assert one.check(MEANING).ok and other.check(MEANING).ok
    mine, theirs = (list(one.export()) for one in both.stores)
    for item, expected in zip(mine, theirs, strict=True):
        assert (item.document, item.spans) == (expected.document, expected.spans)
        np.testing.assert_array_equal(item.vectors, expected.vectors)
