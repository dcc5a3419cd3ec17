"""The interface between likewise and the engines that store its passages: three protocols.

A `Store` gives consistent snapshots to read, which snapshot.py reads through the views of any engine, and a writer to
change it. Documents are listed in pages, so that a long listing keeps no transaction open. Nothing here names a folder,
a database or a library: open.py turns an address into a store, and each engine has a folder of its own.
tests/engine/stores/suite/ holds every engine to this file, by comparison with a store made of a dict and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from indexer.deadline import NEVER, Deadline
from indexer.errors import NotAnIndex
from indexer.filters.tree import Where
from indexer.listener import SILENT, Listener
from indexer.records import Changes, Document
from indexer.settings import Meaning, Settings
from indexer.stores.port import Batch, CheckReport, EmbeddedDocument, Hashes, Kind, RunOutcome, Slot
from indexer.stores.reading.document_rows import documents_after, spans_and_vectors
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.view import View

T = TypeVar("T")

_PAGE_DOCUMENTS = 256
"""Documents read in one transaction."""

_NO_HASHES = Hashes(b"", b"")


class Writer(Protocol):
    """Changes an index. A change is durable and visible when its method returns.

    Each method is one transaction, except `settle`, `compact` and `repair`, which do not change any document.

    Raises:
        StorageError: the disk refuses; what was committed before is kept.
    """

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about the commits since this writer was opened, such as a derived file that could not be written."""

    def put(self, batch: Batch) -> Changes:
        """Remove, add, replace and update documents, and write the ledger, in one transaction.

        Raises:
            BadInput: metadata that no filter can hold, vectors whose shape does not fit the passages or the index, or
                an update of an unknown uri; nothing is written.
        """

    def remove(self, uris: Iterable[str]) -> int:
        """Remove documents and their ledger rows. Ledger rows of uris that are not documents stay, unless their reason
        is that only the index with the other model has the document (`Reason.is_left_out`).

        Returns:
            How many documents were removed.
        """

    def change(self, update: Callable[[Settings], Settings]) -> Settings:
        """Change the stored settings.

        Args:
            update: called with the stored settings, returns the new settings.

        Returns:
            The new settings.
        """

    def move(self, old: str, new: str) -> int:
        """Record that what was at a path, or below it, is at another path now: documents, files and sources.

        Args:
            old, new: absolute paths of a folder, or of a file.

        Returns:
            How many documents were moved. Nothing else of them has changed.

        Raises:
            BadInput: nothing is recorded there, a document has a new address already, or the engine cannot do it.
        """

    def begin_run(self) -> int:
        """Return the number of a new indexing run. Until it ends, `check` notes that it has not finished."""

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        """Mark entries as gone if the run read their file and did not meet them. Mark skipped files as unchanged.

        Entries that were skipped or failed are removed instead, unless their uri is a document.

        Returns:
            Number of files to read again. They also hold a document whose recorded file no longer holds it.
        """

    def settle(self, recall: float | None = None) -> None:
        """Improve the derived indexes after an indexing run, if the improvement is worth the time.

        Args:
            recall: the recall that approximate segments are tuned to from now on, above 0 and at most 1.

        Raises:
            BadInput: a recall out of range.
        """

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        """Rewrite everything derived without the removed documents, and give free space back to the disk.

        Args:
            kind: the kind of segment to write; "auto" decides by the number of passages.
            recall: see `settle`.

        Raises:
            BadInput: an unknown kind, or a recall out of range.
        """

    def repair(self, meaning: Meaning | None) -> CheckReport:
        """Check, rebuild what is derived, and make the next run embed damaged documents again.

        Args:
            meaning: see `Snapshot.check`.

        Returns:
            The problems that are left, and notes that also name the repairs.
        """


class Store(Protocol):
    """The place where one index is stored. Safe to share among threads, and usable after a fork."""

    engine: Engine
    """The engine of this index's address, where this index is the live one."""

    address: str
    """The address to show in messages: a path, or a DSN without its password."""

    def _view(self, deadline: Deadline = NEVER) -> AbstractContextManager[View]:
        """Begin a transaction for the length of a block."""

    @contextmanager
    def snapshot(self, deadline: Deadline = NEVER) -> Iterator[Snapshot]:
        """Read the newest commit for the length of the block.

        Args:
            deadline: after it, or when it is cancelled, reading ends with DeadlinePassed.

        The block may hold a transaction open. Embed a question inside it, so that question and answer see the same
        index, but never a collection. Iterators that the snapshot returns are valid only inside the block.

        Raises:
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: there is no index that can be read.
        """
        with self._view(deadline) as view:
            yield Snapshot(view)

    def writer(self, *, wait: bool = True, listener: Listener = SILENT) -> AbstractContextManager[Writer]:
        """Hold the right to write for the length of the block. A thread that holds it gets the same writer again.

        The engine decides what its lock covers: a folder has one writer.

        Args:
            wait: wait for another holder; otherwise raise at once.
            listener: its `waiting` is called once before waiting for another process.

        Raises:
            NotAnIndex: there is no longer an index.
            IndexLocked: another process or thread is writing and `wait` is False.
        """

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        """Yield documents in the order they were added, read in pages. No transaction is open between two pages.

        A filter selects documents as of the beginning of the iteration. Without a filter, documents that are added
        during the iteration may be included.

        Raises:
            NotAnIndex: another index has replaced this index during the reading. Its documents have other ids.
        """
        return _in_pages(self, lambda _, page: [document for _, document in page], where)

    def export(self, where: Where | None = None) -> Iterator[EmbeddedDocument]:
        """Yield documents with their passages and vectors in the order they were added, read in pages as by `iterate`.

        Their hashes and prefixes are empty, and the first passage of each has the tokens of the whole document.

        Raises:
            NotAnIndex: as `iterate` does.
        """
        return _in_pages(
            self,
            lambda view, page: [
                EmbeddedDocument(document, _NO_HASHES, *spans_and_vectors(view, id_)) for id_, document in page
            ],
            where,
        )

    @property
    def is_building_words(self) -> bool:
        """Whether a thread of this process reads the words of the index for questions that do not wait for them."""

    def committed_at(self) -> float | None:
        """Return the time of the last commit in seconds since 1970; None if it is unknown."""

    def free_bytes(self) -> int | None:
        """Return how many bytes could still be stored; None if this is unknown."""

    def artifacts(self) -> Path:
        """Return the folder on this machine for the compiled encoder of this index. It may not exist yet."""

    def derived(self) -> Path:
        """Return the folder on this machine for files that were computed from this index and can be computed again."""

    def duplicate(self, draft: Store) -> tuple[str, ...] | None:
        """Fill an empty draft with this index as of one commit. Only a folder does this, for a draft in a folder.

        The index may be read and written during that time.
        The draft gets the same ids and a history of its own. The indexes at "next" and "previous" are left out.

        Returns:
            Facts about the copy that the caller should know, such as a damaged file that was copied as it is. None: the
            draft is still empty, and its documents have to be copied.

        Raises:
            StorageError: the disk refuses.
        """
        return None

    def close(self) -> None:
        """Release connections and memory. A later call opens what it needs again."""


class Engine(Protocol):
    """One address, where an index is made, opened, replaced and removed: a folder, or a name in a database.

    An index is in a `Slot`. life_cycle.py has everything that is made of these verbs, such as a copy and a rebuild.
    """

    address: str
    """The address to show in messages: a path, or a DSN without its password."""

    def exists(self, slot: Slot = "live") -> bool:
        """Return whether there is an index in a slot. It may be damaged.

        Raises:
            StorageError: this user may not look into the folder, or the database cannot be asked.
        """

    def make(self, slot: Slot, settings: Settings) -> Store:
        """Make an empty index in a slot. It appears complete or not at all.

        A draft may be made at an address that has a live index only inside of `exclusive`. An index at "next" is made
        under the writer of the live index.

        Raises:
            BadInput: the slot is taken, or there is no stemmer for the language.
            IndexLocked: another process is filling the unfinished index.
            StorageError: the disk or the database refuses.
        """

    def open(self, slot: Slot = "live") -> Store:
        """Open the index in a slot. Everybody who opens it through this engine shares one store, and so its lock.

        Raises:
            NotAnIndex: there is none.
            IndexLocked: another process is filling the unfinished index.
        """

    def exclusive(self, *, wait: bool = True, listener: Listener = SILENT) -> AbstractContextManager[None]:
        """Keep everybody from writing to the live index for the length of the block. The arguments are those of
        `writer`.

        The block must not write to the live index either: in a database the write would wait for the block.

        Raises:
            NotAnIndex, IndexLocked: as in `Store.writer`.
        """

    def publish(self, slot: Slot) -> None:
        """Make the index in a slot the live index, in one commit. After a kill the next writer completes or undoes the
        change.

        If there is a live index, call this inside of `exclusive` and of the writer of the other index. Both blocks end
        after the call without another change. Open snapshots still read the old index; later snapshots read the new
        index.

        The index that was live moves to "previous" if the slot is "next" or "previous". If it is "draft" or
        "unfinished", the index that was live is removed, and the index at "next" with it.

        Raises:
            BadInput: the slot is empty; there is a live index that this engine does not hold; or there is an index at
                "previous" already, and it is not the index that becomes live.
            StorageError: the disk or the database refuses, and nothing has changed.
        """

    def discard(self, slot: Slot) -> int:
        """Remove the index in a slot other than "live"; return its size in bytes.

        For "next" and "previous", the caller holds the writer of the live index, and also the writer of the removed
        index unless that index is damaged. Both blocks end after the call.

        Raises:
            BadInput: the slot is empty.
            IndexLocked: another process is filling the index.
        """

    def leftovers(self) -> tuple[str, ...]:
        """Return a note on everything that killed commands have left here, with its size and how to remove it.

        For a folder, these are the drafts of its index. For a database, they are the drafts of all its indexes.
        """

    def sweep(self) -> int:
        """Remove the drafts that killed commands have left at this address; return their size in bytes."""

    def close(self) -> None:
        """Release the connections and the memory of all stores. A later call opens what it needs again."""


def _in_pages(
    store: Store, read: Callable[[View, list[tuple[int, Document]]], list[T]], where: Where | None
) -> Iterator[T]:
    """Yield what `read` returns for each page of the documents that a filter leaves, with their ids, in the order they
    were added.

    Raises:
        NotAnIndex: another index has replaced the index of the first page. It has other ids.
    """
    history, ids, last = "", None, 0
    while True:
        with store._view() as opened:
            if not history:
                history, ids = opened.state.history, None if where is None else opened.select(where).ids()
            if opened.state.history != history:
                raise NotAnIndex(
                    f"{store.address}: was replaced by another index while its documents were read; read them again"
                )
            page = documents_after(opened, last, _PAGE_DOCUMENTS, ids)
            items = read(opened, page)
        if not page:
            return
        yield from items
        last = page[-1][0]
