"""Numbers, checks and, after any operations, the comparison with the reference store, on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.stores.reference import ReferenceStore
from engine.stores.suite.suite import (
    AXES,
    DIMENSIONS,
    MEANING,
    SETTINGS,
    Engine,
    agree,
    doc,
    filled,
    hashed,
    put,
    random_rows,
    row_of,
    stamp_sizes,
)

from indexer.errors import IndexDamaged
from indexer.ledger import HELD, NO_REASON, Code, LedgerState, Reason
from indexer.records import Document, Span, Stamp
from indexer.settings import Meaning
from indexer.stores.addresses.copying import copy_commit
from indexer.stores.port import Batch, EmbeddedDocument, Hashes, LedgerRow, RunOutcome
from indexer.stores.reading.store import Store, Writer


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
        assert first.check(None).ok
        assert second.check(None).ok


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
        assert info.unsealed == 3
        assert info.bytes > 0
        assert version >= 1
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
        assert not report.ok
        assert len(report.problems) == 1
        assert report.problems[0].startswith("bad: ")
        assert len(snapshot.check(Meaning("another", "passages")).problems) == 2
    with store.writer() as writer:
        assert writer.repair(None).ok
        report = writer.repair(MEANING)
    assert any("1 damaged document" in note for note in report.notes)
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
    assert copy_commit(store, engine.at(str(tmp_path / "copy.index"))) == ()


# any operations, against the reference


WORDS = ["apple", "pear", "plum", "fig", "the", "quince", "tree", "Apple_Tree", "treeTop", "京都", "naïve"]
FILTERS = [None, "n >= 3", 'not (tag = "x" or exists n)']


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


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_operations_leave_what_the_reference_has(store: Store, seed: int) -> None:
    both, vectors = Both(store, seed), [random_rows(1, 1000 + seed)[0], AXES[0]]
    for step in range(16):
        both.any()
        with both.stores[0].snapshot() as one, both.stores[1].snapshot() as other:
            assert list(one.ledger()) == list(other.ledger())
            assert dict(one.files()) == dict(other.files())
            assert dict(one.ledger_counts()) == dict(other.ledger_counts())
            of_documents = [Counter(snapshot.ledger_of_documents()) for snapshot in (one, other)]
            assert of_documents[0] == of_documents[1]
            files = [Counter(snapshot.files_of_documents()) for snapshot in (one, other)]
            assert files[0] == files[1]
            assert dict(one.hashes()) == dict(other.hashes())
            if step % 8 == 7:
                agree(one, other, vectors, FILTERS)
    for change in (both.settle, both.put, both.compact):
        change()
        with both.stores[0].snapshot() as one, both.stores[1].snapshot() as other:
            agree(one, other, vectors, FILTERS)
            assert one.info().tokens == other.info().tokens
            assert one.check(MEANING).ok
            assert other.check(MEANING).ok
    mine, theirs = (list(one.export()) for one in both.stores)
    for item, expected in zip(mine, theirs, strict=True):
        assert (item.document, item.spans) == (expected.document, expected.spans)
        np.testing.assert_array_equal(item.vectors, expected.vectors)
