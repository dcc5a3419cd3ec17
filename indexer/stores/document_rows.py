"""Documents as engines store them: whether a row is sound, and all of them in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from indexer.errors import IndexDamaged, NotAnIndex
from indexer.records import Document
from indexer.settings import Meaning
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.port import Ids

T = TypeVar("T")
V = TypeVar("V")

PAGE_DOCUMENTS = 256
"""Documents read in one transaction: a long listing keeps no transaction open."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document as it is stored, with its recorded hashes; `document` is None where it cannot be read."""

    id: int
    uri: str
    tokens: int
    content_hash: bytes
    row_hash: bytes
    document: Document | None

    def is_sound(self, meaning: Meaning | None) -> bool:
        """Return whether the row matches its hash, and if it was embedded with this meaning, title and text theirs."""
        document = self.document
        try:
            if document is None or row_hash(document) != self.row_hash:
                return False
            return not (meaning and self.tokens) or content_hash(document, meaning) == self.content_hash
        except (AttributeError, TypeError, ValueError):  # a value of another type than its column has
            return False


def damage_of(uri: str) -> IndexDamaged:
    """Return the error that names a damaged document."""
    return IndexDamaged(
        f"{uri}: its stored row, text or vector is damaged; likewise check --repair, then index its "
        "source again (without --rebuild), or likewise remove it"
    )


def views_of_one_index(
    address: str, view: Callable[[], AbstractContextManager[V]], history: Callable[[V], str]
) -> Callable[[], AbstractContextManager[V]]:
    """Return a function that begins views as `view` does, all of the index that the first one was of.

    It raises NotAnIndex where another index has taken that one's place, because it has other ids.
    """
    first: str | None = None

    @contextmanager
    def same() -> Iterator[V]:
        nonlocal first
        with view() as opened:
            first = history(opened) if first is None else first
            if history(opened) != first:
                raise NotAnIndex(
                    f"{address}: was replaced by another index while its documents were read; read them again"
                )
            yield opened

    return same


def until_damage(documents: Iterable[tuple[int, Document]]) -> list[tuple[int, Document]]:
    """Return documents up to the first damaged one. Raises IndexDamaged where that is the first of all."""
    sound: list[tuple[int, Document]] = []
    try:
        for numbered in documents:
            sound.append(numbered)
    except IndexDamaged:
        if not sound:
            raise
    return sound


def in_pages(
    view: Callable[[], AbstractContextManager[V]],
    after: Callable[[V, int, int], list[tuple[int, Document]]],
    read: Callable[[V, list[tuple[int, Document]]], list[T]],
) -> Iterator[T]:
    """Yield what `read` returns for each page of documents, in the order they were added.

    Args:
        view: begins a transaction for the length of a block.
        after: returns the next documents after an id, with their ids, at most as many as it is told.
    """
    last = 0
    while True:
        with view() as opened:
            page = after(opened, last, PAGE_DOCUMENTS)
            items = read(opened, page)
        if not page:
            return
        yield from items
        last = page[-1][0]


def chosen_in_pages(
    view: Callable[[], AbstractContextManager[V]], ids: Ids, read: Callable[[V, Ids], list[Document]]
) -> Iterator[Document]:
    """Yield the documents of these ids (n,), a page in each transaction."""
    for start in range(0, len(ids), PAGE_DOCUMENTS):
        with view() as opened:
            documents = read(opened, ids[start : start + PAGE_DOCUMENTS])
        yield from documents
