"""The documents of served indexes: reading many, and writing, with one writer per index at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from indexer import Index
from indexer.errors import IndexLocked
from indexer.filters.limits import FROM_CLIENTS
from indexer.filters.mapping import filter_tree
from indexer.records import Document
from search.searcher import PAGE_CHARACTERS
from search.served import ServedIndex
from search.server.problems import Problem
from search.server.requests import NewDocument

LOCK_DEADLINE_S = 5.0
"""Maximum seconds to wait for another writer. After that, the client is asked to try again."""

_READ_DOCUMENTS = 16
"""Documents that are read at once, because a few may be all that fits into one answer."""

Result = TypeVar("Result")


def list_documents(served: ServedIndex, where: str | None, cursor: str | None) -> dict[str, Any]:
    """Return a page of documents, and the cursor of the next page; None after the last document."""
    condition = filter_tree(where, FROM_CLIENTS)
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


class Writers:
    """The open writers of the served indexes, by name. Each is opened with its first write."""

    def __init__(self) -> None:
        self._open: dict[str, Index] = {}
        self._turns: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def put(self, served: ServedIndex, documents: list[NewDocument]) -> dict[str, Any]:
        """Add or replace documents, durable and searchable when this returns; the members of `Changes`."""
        if served.searcher.recipe is None:
            raise Problem(
                400, "no-model", f"index {served.name!r} holds vectors of its owner's own: add to it in Python"
            )
        given = [Document(new.uri, new.text, new.title, new.metadata) for new in documents]
        changes = self._write(served, lambda index: index.add(given))
        return asdict(changes) | {"notes": [served.without_address(note) for note in changes.notes]}

    def delete(self, served: ServedIndex, uri: str) -> dict[str, int]:
        """Remove a document.

        Raises:
            UnknownUri: no document has this uri.
        """
        return {"removed": self._write(served, lambda index: index.remove([uri]))}

    def close(self) -> None:
        """Close every writer."""
        for index in self._open.values():
            index.close()

    def _write(self, served: ServedIndex, change: Callable[[Index], Result]) -> Result:
        with self._lock:
            turn = self._turns.setdefault(served.name, threading.Lock())
        deadline = time.monotonic() + LOCK_DEADLINE_S
        if not turn.acquire(timeout=LOCK_DEADLINE_S):
            raise IndexLocked("another request is writing")
        try:
            index = self._index(served)
            while True:
                try:
                    with index.lock(wait=False):
                        return change(index)
                except IndexLocked:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
        finally:
            turn.release()

    def _index(self, served: ServedIndex) -> Index:
        """Return the open index. It is opened again if another index has replaced it."""
        index = self._open.get(served.name)
        if index is not None and index.recipe != served.searcher.recipe:
            index.close()
            index = None
        if index is None:
            index = self._open[served.name] = Index.open(served.address)
        return index
