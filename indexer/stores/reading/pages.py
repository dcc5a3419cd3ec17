"""The documents of an index in pages, so that a long listing keeps no transaction open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from indexer.deadline import NEVER, Deadline
from indexer.errors import NotAnIndex
from indexer.filters.tree import Where
from indexer.records import Document
from indexer.stores.port import EmbeddedDocument, Hashes, Ids
from indexer.stores.reading.document_rows import documents_after, spans_and_vectors
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.view import View

T = TypeVar("T")

_PAGE_DOCUMENTS = 256
"""Documents read in one transaction."""

_NO_HASHES = Hashes(b"", b"")


class ReadableStore(ABC):
    """The part of a store that reads: snapshots, and documents in pages."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The address to show in messages."""

    @abstractmethod
    def _view(self, deadline: Deadline = NEVER) -> AbstractContextManager[View]:
        """Begin a transaction for the length of a block."""

    @contextmanager
    def snapshot(self, deadline: Deadline = NEVER) -> Iterator[Snapshot]:
        with self._view(deadline) as view:
            yield Snapshot(view)

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        views = _views_of_one_index(self.address, self._view)
        ids = None
        if where is not None:
            with views() as opened:
                ids = opened.select(where).ids()
        yield from _in_pages(views, lambda view, page: [document for _, document in page], ids)

    def export(self) -> Iterator[EmbeddedDocument]:
        return _in_pages(
            _views_of_one_index(self.address, self._view),
            lambda view, page: [
                EmbeddedDocument(document, _NO_HASHES, *spans_and_vectors(view, id_)) for id_, document in page
            ],
        )


def _views_of_one_index(
    address: str, view: Callable[[], AbstractContextManager[View]]
) -> Callable[[], AbstractContextManager[View]]:
    """Return a function that begins views as `view` does, and always of the same index.

    It raises NotAnIndex if another index has replaced the index of the first view, because the other index has other
    ids.
    """
    first: str | None = None

    @contextmanager
    def same() -> Iterator[View]:
        nonlocal first
        with view() as opened:
            first = opened.state.history if first is None else first
            if opened.state.history != first:
                raise NotAnIndex(
                    f"{address}: was replaced by another index while its documents were read; read them again"
                )
            yield opened

    return same


def _in_pages(
    views: Callable[[], AbstractContextManager[View]],
    read: Callable[[View, list[tuple[int, Document]]], list[T]],
    ids: Ids | None = None,
) -> Iterator[T]:
    """Yield what `read` returns for each page of documents with their ids, in the order they were added.

    Args:
        ids: only the documents with these ids (n,), ascending; None for all.
    """
    last = 0
    while True:
        with views() as opened:
            page = documents_after(opened, last, _PAGE_DOCUMENTS, ids)
            items = read(opened, page)
        if not page:
            return
        yield from items
        last = page[-1][0]
