"""The store in a folder on this machine: SQLite decides what exists, FAISS finds what is near.

Statements live in catalog.py and reading.py, FAISS in segments.py, when to seal in sealing.py; here they meet.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput, NotAnIndex, StorageError
from indexer.filters.tree import Where
from indexer.records import Changes, Document, Vector
from indexer.stores import checking, completing, ledger, reading, sealing, wordranking, words
from indexer.stores.analysis import code
from indexer.stores.copying import appearing, copy_store
from indexer.stores.failpoint import failpoint
from indexer.stores.lock import WriterLock
from indexer.stores.ranking import rank
from indexer.stores.recall import Recall, measure
from indexer.stores.sampling import sample
from indexer.stores.snapshot import Snapshots, View
from indexer.stores.store import EmbeddedDocument, Info, LedgerRow, Passage, Ranking, Report, Unit
from indexer.stores.wordreading import WordReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from indexer.stores.analysis import Analysis
    from indexer.stores.catalog import Catalog
    from indexer.stores.postings import Found


T = TypeVar("T")

_TOGETHER = 256
"""Documents read in one transaction: a long listing pins none."""


class LocalStore:
    """A `Store` in a folder. Reads are safe from any thread; writes take the writer lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder = folder.absolute()  # whatever the process makes its working folder later
        self.snapshots = Snapshots(folder)
        self._lock = WriterLock(folder)
        self._process, self._inherited = os.getpid(), list[object]()
        self._catalog: Catalog | None = None
        self._depth = 0
        self._reading = threading.local()
        self._words = WordReader(folder)

    @classmethod
    def create(cls, folder: Path, settings: Mapping[str, str]) -> LocalStore:
        """Make an empty store; `settings` must hold `dimensions`. It appears whole or not at all.

        Raises:
            BadInput: something is there already, or words of the language cannot be stemmed.
        """
        from indexer.stores.catalog import Catalog

        language = code(settings.get("language", "en"))
        with appearing(folder) as sibling:
            (sibling / "segments").mkdir()
            (sibling / "LOCK").touch()
            catalog = Catalog(sibling / "catalog.db")
            catalog.initialise({**settings, "language": language})
            catalog.close()
        return cls(folder)

    def close(self) -> None:
        self.snapshots.close()
        self._words.close()

    @contextmanager
    def writing(self, *, wait: bool = True, waiting: Callable[[str], None] | None = None) -> Iterator[Catalog]:
        """Hold the writer lock and the writing connection; re-entrant."""
        from indexer.stores.catalog import Catalog

        if not (self.folder / "catalog.db").exists():
            raise NotAnIndex(f"{self.folder}: is no index any more")
        if self._process != os.getpid():
            self._after_fork()
        with self._lock.held(wait=wait, waiting=waiting):
            if self._catalog is None:
                self._catalog = Catalog(self.folder / "catalog.db")
            self._depth, process = self._depth + 1, self._process
            try:
                yield self._catalog
            finally:
                if process == os.getpid():  # and not a child that was forked inside
                    self._depth -= 1
                    if self._depth == 0:
                        self._catalog.close()
                        self._catalog = None

    def _after_fork(self) -> None:
        """The child begins anew: its parent's connections are not to be used, nor closed."""
        self._inherited += [self._catalog, getattr(self._reading, "view", None)]
        self._process, self._catalog, self._depth, self._reading = os.getpid(), None, 0, threading.local()

    # writing

    def put(self, documents: Sequence[EmbeddedDocument], rows: Sequence[LedgerRow] = (), run: int = 0) -> Changes:
        with self.writing() as catalog:
            changes = catalog.put(documents, rows, run)
            try:
                sealing.seal(catalog, self.snapshots)
                words.catch_up(catalog, self.snapshots)
            except StorageError as error:  # the documents are in, and found in the tail
                warnings.warn(str(error), stacklevel=2)
        return changes

    def remove(self, uris: Iterable[str]) -> int:
        with self.writing() as catalog:
            return catalog.remove(uris)

    def settle(self, recall: float | None = None) -> None:
        """At the end of an indexing run: seal what is left, approximately where that is worth it."""
        with self.writing() as catalog:
            _set_recall(catalog, recall)
            sealing.settle(catalog, self.snapshots)
            words.catch_up(catalog, self.snapshots, least=1, worn=words.WORN)

    def compact(self, kind: str = "auto", recall: float | None = None) -> None:
        """Rewrite everything into one segment without the dead, and give free pages back to the disk.

        Args:
            recall: what approximate segments are tuned to from now on, above 0 and at most 1.

        Raises:
            BadInput: an unknown kind, or a recall out of range.
        """
        with self.writing() as catalog:
            _set_recall(catalog, recall)
            sealing.rewrite(catalog, self.snapshots, kind)
            words.catch_up(catalog, self.snapshots, least=1, worn=0)
            catalog.vacuum()
            failpoint("compact.vacuumed")

    # reading

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Everything this thread reads inside sees one snapshot; re-entrant."""
        if self._process != os.getpid():
            self._after_fork()
        outer: View | None = getattr(self._reading, "view", None)
        if outer is not None:
            yield outer
            return
        with self.snapshots.view() as view:
            self._reading.view = view
            try:
                yield view
            finally:
                self._reading.view = None

    def sample(self, count: int, seed: int = 0) -> tuple[NDArray[np.int64], Vector]:
        """Ids (n,) and stored vectors (n, dimensions) of `count` random passages, or of all there are."""
        with self.reading() as view:
            return sample(view, count, seed)

    def vectors_of(self, uri: str) -> Vector | None:
        """Stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""
        with self.reading() as view:
            return reading.document_vectors(view, uri)

    def dense(
        self, vector: Vector, k: int, where: Where | None = None, unit: Unit = "document", exact: bool = False
    ) -> Ranking:
        with self.reading() as view:
            return rank(view, vector, k, where, unit, exact)

    def words(self, text: str, k: int, where: Where | None = None, unit: Unit = "document") -> Ranking:
        with self.reading() as view:
            return wordranking.rank(view, self._words.at(view), text, k, where, unit)

    def word_documents(self, text: str, k: int, where: Where | None = None) -> Found:
        """As `words` ranks documents, without the passage to show of each."""
        with self.reading() as view:
            return wordranking.documents(view, self._words.at(view), text, k, where)

    def analysis(self) -> Analysis:
        """How text becomes terms here."""
        with self.reading() as view:
            return words.language(view)

    def terms(self, text: str) -> list[str]:
        """The different terms that a question asks for, without stop words."""
        with self.reading() as view:
            return words.language(view).terms(text)

    def passages_of(
        self, vector: Vector, documents: NDArray[np.int64], known: Ranking | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Every passage of the documents (passages,): its id, its document, its cosine."""
        with self.reading() as view:
            return completing.passages_of(view, vector, documents, known)

    def dense_scores(self, vector: Vector, ids: NDArray[np.int64], unit: Unit = "passage") -> NDArray[np.float32]:
        with self.reading() as view:
            return completing.cosines(view, vector, ids, unit)

    def words_scores(self, text: str, ids: NDArray[np.int64], unit: Unit = "passage") -> NDArray[np.float32]:
        with self.reading() as view:
            return wordranking.scores(self._words.at(view), text, ids, unit)

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        with self.reading() as view:
            return reading.passages(view, ids)

    def passes(self, uri: str, where: Where) -> bool:
        """Whether a filter leaves this document."""
        with self.reading() as view:
            return reading.passes(view, uri, where)

    def documents(self, where: Where | None = None) -> Iterator[Document]:
        """Documents in the order they were added; a filter is that of the moment it begins."""
        if where is not None:
            with self.reading() as view:
                ids = np.flatnonzero(reading.document_flags(view, where))
            for at in range(0, len(ids), _TOGETHER):
                with self.reading() as view:
                    some = reading.documents_of(view, ids[at : at + _TOGETHER])
                yield from some
            return
        yield from self._in_turn(lambda view, known: [document for _, document in known])

    def embedded(self) -> Iterator[EmbeddedDocument]:
        """Documents with their passages and vectors, in the order they were added; without the hashes."""
        return self._in_turn(
            lambda view, known: [EmbeddedDocument(one, b"", b"", *reading.spans(view, id_)) for id_, one in known]
        )

    def _in_turn(self, made: Callable[[View, list[tuple[int, Document]]], list[T]]) -> Iterator[T]:
        """What is made of all documents, some of them at a time."""
        after = 0
        while True:
            with self.reading() as view:
                known = reading.documents_after(view, after, _TOGETHER)
                some = made(view, known)
            if not known:
                return
            yield from some
            after = known[-1][0]

    def recall(self) -> Recall:
        """Recall@10 of searches without a filter, measured against brute force."""
        with self.reading() as view:
            return measure(view)

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        with self.reading() as view:
            return ledger.rows(view, state)

    def ledger_counts(self) -> dict[str, int]:
        with self.reading() as view:
            return ledger.counts(view)

    def settings(self) -> dict[str, str]:
        with self.reading() as view:
            return reading.settings(view)

    def post_parameters(self) -> bytes | None:
        """What the recipe's post-processing was fitted to; None where there is none."""
        with self.reading() as view:
            return reading.frozen(view, "post")

    def freeze(self, recipe: str, post: bytes) -> None:
        with self.writing() as catalog:
            catalog.freeze(recipe, post)

    def info(self) -> Info:
        with self.reading() as view:
            sealed = reading.segments(view)
            return Info(
                documents=view.state.documents,
                passages=view.state.passages,
                tokens=reading.tokens(view),
                dimensions=view.state.dimensions,
                unsealed=view.state.passages - sum(row.alive for row in sealed),
                bytes=_size(self.folder),
                format_version=reading.format_version(view),
                history=view.state.history,
                segments=tuple({**asdict(row.recorded), "alive": row.alive} for row in sealed),
                fields={name: tuple(sorted(types)) for name, types in sorted((view.state.fields or {}).items())},
            )

    def check(self, repair: bool = False, meaning: tuple[str, str] | None = None) -> Report:
        """Verify everything (checking.py); `repair` rebuilds what is derived.

        Args:
            meaning: what the hashes of embedded content were made with besides; None leaves those out.
        """
        return checking.check(self, repair, meaning)

    def backup(self, destination: Path) -> None:
        """Copy the store, as of one commit, while it is read and written; it appears whole or not at all.

        Raises:
            BadInput: something is there already.
        """
        with appearing(destination) as sibling:
            copy_store(self.snapshots, sibling)


def _size(folder: Path) -> int:
    """Bytes of the files below it, while a writer may remove some."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(place) / name).stat().st_size
    return total


def _set_recall(catalog: Catalog, recall: float | None) -> None:
    if recall is None:
        return
    if not 0 < recall <= 1:
        raise BadInput(f"recall {recall} is no share: give a number above 0 and up to 1, such as 0.98")
    catalog.set("recall", str(float(recall)))
