"""The documents of served indexes: reading many, and writing, with one writer per index at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import asdict, replace
from queue import SimpleQueue
from typing import Any, TypeVar

from indexer import Index
from indexer.errors import IndexLocked, UnknownUri
from indexer.filters.mapping import Filter
from indexer.filters.tree import In, Where
from indexer.lookup import read_removal
from indexer.records import Changes, Document, Section
from likewise.service.http.problems import Problem
from likewise.service.http.requests import DocumentsRequest, NewDocument, RemovalRequest
from likewise.service.served import ServedIndex
from search.searcher import PAGE_CHARACTERS

LOCK_DEADLINE_S = 30.0
"""Maximum seconds to wait for other writers. After that, the client is asked to try again."""
CLOSE_DEADLINE_S = 1.0
"""Maximum seconds to wait for a thread that may be waiting for the lock."""

_READ_DOCUMENTS = 16
"""Documents that are read at once, because a few may be all that fits into one answer."""

Result = TypeVar("Result")


def list_documents(served: ServedIndex, condition: Where | None, cursor: str | None) -> dict[str, Any]:
    """Return a page of documents, and the cursor of the next page; None after the last document."""
    notes = served.filter_notes(condition) if cursor is None else []
    documents, cursor = served.searcher.documents_page(condition, cursor)
    return {"documents": list(map(asdict, documents)), "cursor": cursor, "notes": notes}


def get_documents(served: ServedIndex, uris: list[str]) -> dict[str, Any]:
    """Return the documents of the first uris, without unknown uris, and how many uris do not fit into one answer."""
    documents, left = list[Document](), uris
    while left and sum(len(document.text) for document in documents) < PAGE_CHARACTERS:
        documents += served.searcher.get_many(left[:_READ_DOCUMENTS])
        left = left[_READ_DOCUMENTS:]
    return {"documents": list(map(asdict, documents)), "left": len(left)}


def _document(new: NewDocument) -> Document:
    sections = tuple(Section(**each.model_dump()) for each in new.sections)
    return Document(**new.model_dump(exclude={"sections"}), sections=sections)


class Writers:
    """The writers of the served indexes, by name. Each begins with the first write."""

    def __init__(self) -> None:
        self._writers: dict[str, _Writer] = {}
        self._lock = threading.Lock()

    def put(self, served: ServedIndex, body: DocumentsRequest) -> dict[str, Any]:
        """Add or replace documents, durable and searchable when this returns; the members of `Changes`."""
        own: dict[str, Any] = {"vectors": body.vectors, "spans": body.spans}
        if body.vectors is None and served.searcher.recipe is None:
            raise Problem(
                400, "no-model", f"index {served.name!r} holds vectors of its owner's own: send vectors with documents"
            )
        given = [_document(new) for new in body.documents]

        def change(index: Index) -> Changes:
            # An empty index whose model is open becomes an index of own vectors.
            is_first = body.vectors is not None and index.settings.model_open is not None
            return index.replace_all(given, **own) if body.replace_all or is_first else index.add(given, **own)

        writer, is_embedded = self._of(served), own == {"vectors": None, "spans": None} and not body.replace_all
        changes = writer.add(given) if is_embedded else writer.write(change)
        return asdict(changes) | {"notes": [served.without_address(note) for note in changes.notes]}

    def remove(self, served: ServedIndex, body: RemovalRequest, where: Filter | None) -> dict[str, int]:
        """Remove the documents of some uris, or those that a filter leaves, in one commit.

        Raises:
            BadInput, UnknownUri: as `Index.remove` does.
            Problem: 400, these are more than half of the documents, and the request does not say yes.
        """
        chosen = read_removal(body.uris, where)
        condition = In("uri", tuple(chosen)) if isinstance(chosen, list) else chosen

        def change(index: Index) -> int:
            if not body.yes and 2 * (count := index.count(condition)) > (documents := len(index)):
                removal = f"this would remove {count:,} of {documents:,} documents"
                raise Problem(400, "more-than-half", f'{removal}: send "yes": true if it is meant')
            try:
                return index.remove(body.uris, where=where, missing_ok=body.missing_ok)
            except UnknownUri as error:
                raise Problem(error.http_status, error.slug, served.without_address(str(error))) from error

        return {"removed": self._of(served).write(change)}

    def delete(self, served: ServedIndex, uri: str) -> dict[str, int]:
        """Remove a document.

        Raises:
            UnknownUri: no document has this uri.
        """
        return {"removed": self._of(served).write(lambda index: index.remove([uri]))}

    def close(self) -> None:
        """Close every writer."""
        for writer in self._writers.values():
            writer.close()

    def _of(self, served: ServedIndex) -> _Writer:
        with self._lock:
            if served.name not in self._writers:
                self._writers[served.name] = _Writer(served)
            return self._writers[served.name]


class _Turn(Future[Any]):
    """A change that waits for its turn, then runs, and then has a result."""

    def __init__(self, change: Callable[[Index], Any]) -> None:
        super().__init__()
        self.change: Callable[[Index], Any] | None = change


class _Writer:
    """A thread that changes one index, one change after the other.

    It blocks on the lock of the index: a writer that only asks for the lock again and again gets none beside several
    that block. Its thread ends with the process, although the lock may still be held by another writer.
    """

    def __init__(self, served: ServedIndex) -> None:
        self._served, self._turns = served, SimpleQueue[_Turn | None]()
        self._index: Index | None = None
        self._thread = threading.Thread(target=self._work, name="likewise writer", daemon=True)
        self._thread.start()

    def write(self, change: Callable[[Index], Result]) -> Result:
        """Change the index and return what the change returns.

        Raises:
            IndexLocked: other writers hold the lock for longer than LOCK_DEADLINE_S.
        """
        turn = _Turn(change)
        self._turns.put(turn)
        wait([turn], LOCK_DEADLINE_S)
        if turn.cancel():
            turn.change = None  # its documents are not kept until the lock is free
            raise IndexLocked(f"{self._served.name}: other writers have held it for {LOCK_DEADLINE_S:g} seconds")
        result: Result = turn.result()
        return result

    def add(self, documents: list[Document]) -> Changes:
        """Add documents without vectors. They are embedded before the lock is taken, and compared again under it."""
        with Index.open(self._served.address) as reading:
            changed = [] if reading.settings.model_open is not None else reading.changed(documents)
            embedded = reading.embedder.embed(changed) if changed else []
            notes = reading.embedder.notes if changed else ()
        if not all(each.spans for each in embedded):
            changed = []  # one that cannot be stored: the whole batch is refused under the lock

        def add(index: Index) -> Changes:
            first = Changes()
            if changed and index.recipe is not None and embedded[0].recipe == index.recipe.identity:
                first = Changes(notes=notes) + index.add(changed, embedded=embedded)
            done = {*first.added, *first.replaced, *first.updated}
            rest = index.add(documents)  # it embeds only what has changed since it was compared
            unchanged = tuple(uri for uri in rest.unchanged if uri not in done)
            return replace(first + rest, unchanged=unchanged)

        return self.write(add)

    def close(self) -> None:
        """Close the index, unless the thread still waits for the lock."""
        self._turns.put(None)
        self._thread.join(CLOSE_DEADLINE_S)

    def _work(self) -> None:
        while (turn := self._turns.get()) is not None:
            with suppress(InvalidStateError):  # cancelled at the same moment
                try:
                    index = self._opened()
                    with index.lock():
                        if turn.set_running_or_notify_cancel():
                            assert turn.change is not None
                            turn.set_result(turn.change(index))
                except Exception as error:  # noqa: BLE001 - the thread of the request raises it
                    turn.set_exception(error)
        if self._index is not None:
            self._index.close()

    def _opened(self) -> Index:
        """Return the open index. It is opened again if another index has replaced it."""
        if (index := self._index) is not None and (
            index.recipe != self._served.searcher.recipe or index.dimensions != index.settings.dimensions
        ):
            index.close()
            self._index = None
        if self._index is None:
            self._index = Index.open(self._served.address)
        return self._index
