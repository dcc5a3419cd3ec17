"""Documents, commits, settings, the ledger and iteration, on every engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engine.stores.suite.suite import (
    AXES,
    DIMENSIONS,
    MEANING,
    SETTINGS,
    STAMPS,
    UNITS,
    Engine,
    doc,
    everything,
    hashed,
    notes_of,
    put,
    random_rows,
    remove,
    row_of,
    stamp_sizes,
    unit,
    uris,
)

from indexer.encoders.recipes.recipe import Recipe
from indexer.errors import BadInput, FilterError, IndexDamaged, LikewiseError
from indexer.filters.parse import parse
from indexer.ledger import NO_REASON, Code
from indexer.passages.cut import PassageSettings
from indexer.records import Changes, Document, KnownFile, Section, Span, Stamp
from indexer.settings import Calibration, Probed, RecordedSource, Settings
from indexer.stores.port import Batch, EmbeddedDocument, LedgerRow, ReasonCount, RunOutcome
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from indexer.stores.vectors import from_blobs, to_blobs

# documents


def test_an_empty_store_answers_everything(store: Store) -> None:
    with store.snapshot() as snapshot:
        assert (snapshot.documents, snapshot.passages, snapshot.settings) == (0, 0, SETTINGS)
        assert (dict(snapshot.hashes()), snapshot.get("a"), snapshot.vectors_of("a")) == ({}, None, None)
        assert snapshot.passages_of("a") is None
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
        assert [p.text for p in snapshot.passages_of("a")] == ["new", "one"]
        assert snapshot.passages_of("b") == [passages[0]]
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
        with pytest.raises(FilterError, match='no document has a field "n"'):
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
    assert found is not None
    assert found.dtype == np.float32
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
    put(store, doc("b", "another"), row_of("c", "text c", metadata={"n": 1}), doc("e", "new"))
    remove(store, "d")
    with store.snapshot() as snapshot:
        now = snapshot.hashes()
        assert sorted(uri for uri in {**now, **earlier} if now.get(uri) != earlier.get(uri)) == ["b", "c", "d", "e"]
        assert snapshot.hashes()["c"].content == earlier["c"].content
        assert snapshot.hashes()["c"].row != earlier["c"].row
    put(store, doc("b", "text b"), row_of("c", "text c"), doc("d", "text d"))
    remove(store, "e")
    with store.snapshot() as snapshot:
        assert snapshot.hashes() == earlier


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
        "settings": snapshot.settings,
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
            writer.change(lambda settings: replace(settings, words_bias=0.5))
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
        Calibration(0.25, 7),
        Probed(0.5, 0.25, 60),
        "why it could not",
    )
    store = make(whole)
    with store.snapshot() as snapshot:
        assert snapshot.settings == whole
    for settings in (
        Settings(DIMENSIONS),
        replace(whole, recall=1.0),
        replace(whole, language_open=True),
        replace(whole, language_noted=True),
        replace(whole, columns_searched=True),
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
        writer.change(lambda stored: replace(stored, recall=0.5))
        writer.change(lambda stored: replace(stored, words_bias=1.5))
    other = engine.open(store.address)
    with other.snapshot() as snapshot:
        assert (snapshot.settings.recall, snapshot.settings.words_bias) == (0.5, 1.5)
    other.close()


def test_equal_reasons_of_the_ledger_are_counted(store: Store) -> None:
    failed = [LedgerRow("/a", f"r{number}", "failed", Code.OTHER("no text")) for number in range(3)]
    other = [LedgerRow("/b", "/b", "skipped", Code.OTHER("no text")), LedgerRow("/c", "/c", "failed", Code.EMPTY())]
    marked = LedgerRow("/e", "/e#1", "indexed", replace(NO_REASON, mark="0f"))
    put(store, doc("/d", "x"), doc("/e#1", "x"), rows=[*failed, *other, LedgerRow("/d", "/d", "indexed"), marked])
    with store.snapshot() as snapshot:
        assert snapshot.files()["/e"].entries == (("/e#1", "indexed", marked.reason),)
        assert sorted(snapshot.ledger_reasons(), key=lambda row: (row.state, row.reason.text())) == [
            ReasonCount("failed", Code.EMPTY(), 1),
            ReasonCount("failed", Code.OTHER("no text"), 3),
            ReasonCount("skipped", Code.OTHER("no text"), 1),
        ]


def test_the_ledger_keeps_the_outcome_of_every_file_and_record(store: Store) -> None:
    bad_line = replace(Code.OTHER("no text"), line=2)
    stamps = {"/a": Stamp(1, 2, 3, 4), "/b": Stamp(5, 6, 7, 8), "/empty": Stamp(0, 1, 1, 1)}
    rows = [
        LedgerRow("/a", "/a", "indexed", NO_REASON, "pdf/2", (Code.OTHER("page 3 has no text"), bad_line)),
        LedgerRow("/b", "r1", "indexed", NO_REASON, "jsonl/1"),
        LedgerRow("/b", "r2", "failed", bad_line, "jsonl/2"),
        LedgerRow("/c", "/c", "skipped", Code.EMPTY()),
    ]
    put(store, doc("/a", "x"), doc("r1", "y"), rows=rows, finished=stamps)
    with store.snapshot() as snapshot:
        assert list(snapshot.ledger()) == rows
        assert list(snapshot.ledger("failed")) == rows[2:3]
        assert list(snapshot.ledger("gone")) == []
        assert (list(snapshot.noted()), snapshot.noted_count()) == (rows[:1], 1)
        assert sorted(row.uri for row in snapshot.ledger_of_documents()) == ["/a", "r1"]
        assert dict(snapshot.ledger_counts()) == {"indexed": 2, "failed": 1, "skipped": 1}
        assert dict(snapshot.files()) == {
            "/a": KnownFile(
                Stamp(1, 2, 3, 4), (("/a", "indexed", NO_REASON),), frozenset({"pdf/2"}), {"/a": rows[0].notes}
            ),
            "/b": KnownFile(
                Stamp(5, 6, 7, 8),
                (("r1", "indexed", NO_REASON), ("r2", "failed", bad_line)),
                frozenset({"jsonl/1", "jsonl/2"}),
            ),
            "/c": KnownFile(Stamp(-1, 0, 0, 0), (("/c", "skipped", Code.EMPTY()),), frozenset({""})),
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


def test_a_batch_removes_documents_with_their_rows_of_the_ledger(store: Store) -> None:
    empty = LedgerRow("/empty", "/empty", "skipped", Code.EMPTY())
    put(store, doc("/box", "all"), doc("x", "y"), rows=[LedgerRow("/box", "/box", "indexed"), empty])
    put(store, finished={"/box": Stamp(1, 1, 1, 1)})
    rows = [LedgerRow("/box", "/box#1", "indexed"), LedgerRow("/box", "/box#2", "indexed")]
    with store.writer() as writer:
        batch = Batch(
            [doc("/box#1", "one"), doc("/box#2", "two")], rows, {"/box": Stamp(2, 1, 1, 1)}, 1, ["/box", "/empty", "no"]
        )
        assert writer.put(batch) == Changes(added=("/box#1", "/box#2"))
    with store.snapshot() as snapshot:
        assert (snapshot.uris(), snapshot.documents, snapshot.passages) == (["x", "/box#1", "/box#2"], 3, 3)
        assert list(snapshot.ledger()) == rows
        assert snapshot.info().documents == 3
        assert snapshot.check(None).problems == ()
    assert stamp_sizes(store) == {"/box": 2, "/empty": -1}
    with store.writer() as writer:
        assert writer.put(Batch(removed=["/box#2"])) == Changes()
    with store.snapshot() as snapshot:
        assert (snapshot.documents, [row.uri for row in snapshot.ledger()]) == (2, ["/box#1"])
    assert stamp_sizes(store) == {"/box": -1, "/empty": -1}


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
        assert list(snapshot.files_of_documents()) == [("a2", None)]  # no file has it now; the others name no file
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


def test_what_was_moved_has_other_addresses_and_nothing_else_changes(store: Store) -> None:
    names = ("/a/x", "/a/a/x", "/a/r#7", "/ab")
    items = [doc(uri, f"text of {uri}", path="/a/r" if "#" in uri else uri) for uri in names]
    with store.writer() as writer:
        number = writer.begin_run()
        rows = [LedgerRow("/a/r" if "#" in uri else uri, uri, "indexed") for uri in names]
        writer.put(Batch(items, rows, {row.file: Stamp(1, 2, 3, 4) for row in rows}, number))
        writer.end_run(number, RunOutcome([row.file for row in rows]))
        writer.change(lambda settings: replace(settings, sources=(RecordedSource("/a"), RecordedSource("/ab"))))
        assert writer.move("/a", "/a/a") == 3
        for old, new, why in (("/nowhere", "/b", "no document"), ("/a/a/x", "/ab", "nothing was moved")):
            with pytest.raises(BadInput, match=why):
                writer.move(old, new)
        assert writer.move("/a/a/r", "/b/records") == 1
    moved = {"/a/a/x": "/a/a/x", "/a/a/a/x": "/a/a/a/x", "/b/records#7": "/b/records", "/ab": "/ab"}
    with store.snapshot() as snapshot:
        documents = [snapshot.get(uri) for uri in moved]
        assert [(each.uri, each.path) for each in documents if each is not None] == [*moved.items()]
        assert [each.text for each in documents if each is not None] == [f"text of {uri}" for uri in names]
        assert {path: file.stamp for path, file in snapshot.files().items()} == dict.fromkeys(
            moved.values(), Stamp(1, 2, 3, 4)
        )
        assert {(row.file, row.uri) for row in snapshot.ledger()} == {(path, uri) for uri, path in moved.items()}
        assert snapshot.settings.sources == (RecordedSource("/a/a"), RecordedSource("/ab"))
        assert snapshot.get("/a/r#7") is None
        assert snapshot.check(None).ok


def test_a_run_that_did_not_finish_is_noted(store: Store) -> None:
    with store.writer() as writer:
        assert writer.begin_run() < (number := writer.begin_run())
    with store.snapshot() as snapshot:
        report = snapshot.check(None)
    assert report.ok
    assert any("did not finish" in note for note in report.notes)
    with store.writer() as writer:
        assert writer.end_run(number, RunOutcome()) == 0
    with store.snapshot() as snapshot:
        assert not notes_of(snapshot)


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
    exported = [item.document for item in store.export(parse("n = 0"))]
    assert exported == list(store.iterate(parse("n = 0")))


def test_documents_after_an_id_are_in_the_order_of_addition(store: Store) -> None:
    put(store, *(doc(f"d{number}", "t", metadata={"n": number % 2}) for number in range(100)))
    remove(store, "d2", "d4")
    with store.snapshot() as snapshot:
        every = list(snapshot.documents_after(0))
        assert [document.uri for _, document in every] == snapshot.uris()
        assert list(snapshot.documents_after(every[60][0])) == every[61:]
        even = [(id_, document) for id_, document in every if document.metadata == {"n": 0}]
        assert list(snapshot.documents_after(0, parse("n = 0"))) == even
        assert list(snapshot.documents_after(even[39][0], parse("n = 0"))) == even[40:]
        assert list(snapshot.documents_after(every[-1][0])) == []
        with pytest.raises(FilterError):
            list(snapshot.documents_after(0, parse("unknown = 1")))
