"""A folder as a store: its address, its snapshots and its one writer, and how another store takes its place.

The answers of a snapshot are in snapshot.py, the changes of a writer in writer.py.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from indexer.errors import BadInput, NotAnIndex
from indexer.filters.tree import Where
from indexer.records import Document
from indexer.settings import Settings
from indexer.stores.analysis import code
from indexer.stores.document_rows import chosen_in_pages, in_pages, views_of_one_index
from indexer.stores.local import beside, queries
from indexer.stores.local.connections import has_catalog
from indexer.stores.local.lock import WriterLock
from indexer.stores.local.snapshot import LocalSnapshot
from indexer.stores.local.views import View, Views
from indexer.stores.local.words.reader import WordReader
from indexer.stores.port import PLACES, EmbeddedDocument, Hashes, Place

if TYPE_CHECKING:
    from indexer.stores.local.writer import LocalWriter

T = TypeVar("T")

_NO_HASHES = Hashes(b"", b"")


class LocalStore:
    """A `Store` in a folder. Reads are safe from any thread; writes take the writer lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder = folder.absolute()  # the process may change its working folder later
        self._views = Views(folder)
        self._words = WordReader(folder)
        self._lock = WriterLock(folder)
        self._process, self._inherited = os.getpid(), list[object]()
        self._writer: LocalWriter | None = None
        self._depth = 0
        self._beside: dict[Place, LocalStore] = {}  # kept, as a lock is re-entrant in one object alone

    @classmethod
    def create(cls, folder: Path, settings: Settings) -> LocalStore:
        """Make an empty store. It appears complete or not at all.

        Raises:
            BadInput: something exists there already, or there is no stemmer for the language.
            StorageError: the disk refuses.
        """
        from indexer.stores.local.swap import new_folder  # readers do not need it

        settings = replace(settings, language=code(settings.language))
        with new_folder(folder) as sibling:
            _initialise(sibling, settings)
        return cls(folder)

    @classmethod
    @contextmanager
    def draft(cls, folder: Path, settings: Settings) -> Iterator[LocalStore]:
        """Make an empty store that appears in its folder when the block ends well. Errors are those of `create`."""
        from indexer.stores.local.swap import new_folder

        settings = replace(settings, language=code(settings.language))
        with new_folder(folder) as sibling:
            _initialise(sibling, settings)
            store = cls(sibling)
            try:
                yield store
            finally:
                store.close()

    @classmethod
    @contextmanager
    def kept_draft(cls, folder: Path, settings: Settings) -> Iterator[LocalStore]:
        """As `draft`, but what a block that failed has written is kept beside the folder, for the next one.

        It is thrown away if it was made with another model or other passages.
        """
        from indexer.stores.local.swap import new_folder

        with new_folder(folder) as sibling:
            kept = sibling.with_suffix(".unfinished")
            if cls.exists(kept) and _kind(kept) != settings.kind:
                shutil.rmtree(kept)
            store = cls(kept) if cls.exists(kept) else cls.create(kept, settings)
            try:
                yield store
            finally:
                store.close()
            sibling.rmdir()
            kept.rename(sibling)

    @classmethod
    def drop_unfinished(cls, folder: Path) -> int:
        """Remove what `kept_draft` keeps beside a folder; return its size in bytes.

        Raises:
            BadInput: there is no such thing.
            IndexLocked: another process is filling it.
        """
        kept = folder.absolute().with_name(f".{folder.absolute().name}.unfinished")
        if not cls.exists(kept):
            raise BadInput(f"{folder}: no unfinished copy is there")
        with closing(cls(kept)) as store, store.writer(wait=False):
            size = sum(file.stat().st_size for file in kept.rglob("*") if file.is_file())
            shutil.rmtree(kept)
        return size

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether there is a store in a folder. It may be damaged.

        Raises:
            StorageError: this user may not look into the folder.
        """
        return has_catalog(folder)

    @property
    def address(self) -> str:
        return str(self._folder)

    def artifacts(self) -> Path:
        return self._folder / "encoder"

    def derived(self) -> Path:
        return self._folder / "derived"

    def close(self) -> None:
        self._views.close()
        self._words.close()
        for other in list(self._beside.values()):
            other.close()

    @contextmanager
    def snapshot(self) -> Iterator[LocalSnapshot]:
        with self._views.view() as view:
            yield LocalSnapshot(view, self._folder, self._words)

    @contextmanager
    def writer(self, *, wait: bool = True, on_wait: Callable[[str], None] | None = None) -> Iterator[LocalWriter]:
        from indexer.stores.local.writer import LocalWriter  # only writers need sqlite-utils

        if not has_catalog(self._folder):
            raise NotAnIndex(f"{self._folder}: is no longer an index")
        if self._process != os.getpid():
            self._after_fork()
        with self._lock.hold(wait=wait, on_wait=on_wait):
            if self._writer is None:
                beside.complete(self._folder.resolve())
                self._writer = LocalWriter(self._folder, self._views)
            self._depth, process = self._depth + 1, self._process
            try:
                yield self._writer
            finally:
                if process == os.getpid():  # a child that was forked inside the block leaves it too, and closes nothing
                    self._depth -= 1
                    if self._depth == 0:
                        self._end_writing()

    def _end_writing(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _after_fork(self) -> None:
        """Start again in a forked child: its parent's connections must be neither used nor closed."""
        self._inherited.append(self._writer)
        self._process, self._writer, self._depth = os.getpid(), None, 0

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        views = self._views_of_one_index()
        if where is None:
            yield from in_pages(views, queries.documents_after, lambda view, page: [document for _, document in page])
            return
        with views() as view:
            ids = np.flatnonzero(queries.document_flags(view, where))
        yield from chosen_in_pages(views, ids, queries.documents_of)

    def export(self) -> Iterator[EmbeddedDocument]:
        return in_pages(
            self._views_of_one_index(),
            queries.documents_after,
            lambda view, page: [
                EmbeddedDocument(document, _NO_HASHES, *queries.spans_and_vectors(view, id_)) for id_, document in page
            ],
        )

    def _views_of_one_index(self) -> Callable[[], AbstractContextManager[View]]:
        return views_of_one_index(self.address, self._views.view, lambda view: view.state.history)

    @contextmanager
    def successor(self, settings: Settings) -> Iterator[LocalStore]:
        from indexer.stores.local.swap import new_folder, swap

        folder = self._folder.resolve()
        sibling = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
        _sweep_successors(folder)
        with self._views.view() as view:
            lost = view.lost
        try:
            with new_folder(sibling) as draft:
                _initialise(draft, replace(settings, language=code(settings.language)), lost)
            store = LocalStore(sibling)
            try:
                yield store
            finally:
                store.close()
            swap(folder, sibling)
        finally:
            shutil.rmtree(sibling, ignore_errors=True)

    def beside(self, place: Place) -> LocalStore | None:
        folder = self._folder / place
        if not has_catalog(folder):
            return None
        if place not in self._beside:
            self._beside.setdefault(place, LocalStore(folder))
        return self._beside[place]

    def make_beside(self, settings: Settings) -> LocalStore:
        if any(has_catalog(self._folder / place) for place in PLACES):
            raise BadInput(f"{self._folder}: an index stands beside it already: remove that first")
        settings = replace(settings, language=code(settings.language))
        beside.make(self._folder.resolve(), lambda draft: _initialise(draft, settings))
        made = self.beside("next")
        assert made is not None
        return made

    @contextmanager
    def exchange(self, place: Place) -> Iterator[None]:
        other = self._required(place)
        if place == "next" and has_catalog(self._folder / "previous"):
            raise BadInput(f"{self._folder}: the index before this one is kept beside it: remove that first")
        yield
        self._leave(other)
        beside.exchange(self._folder.resolve(), place)

    def drop(self, place: Place) -> None:
        self._leave(self._required(place))
        beside.drop(self._folder.resolve(), place)

    def _required(self, place: Place) -> LocalStore:
        other = self.beside(place)
        if other is None:
            raise BadInput(f"{self._folder / place}: there is no index")
        return other

    def _leave(self, other: LocalStore) -> None:
        """Close everything of an index that is about to get another name, and the writer of this one."""
        self._end_writing()
        other._end_writing()
        other.close()
        self._beside.clear()

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self._folder).free

    def backup(self, destination: str) -> tuple[str, ...]:
        from indexer.stores.local.copies import copy_store
        from indexer.stores.local.swap import new_folder

        with new_folder(Path(destination)) as sibling:
            return copy_store(self._views, sibling)


def _kind(folder: Path) -> object:
    store = LocalStore(folder)
    with closing(store), store.snapshot() as snapshot:
        return snapshot.settings.kind


def _initialise(folder: Path, settings: Settings, lost: int = 0) -> None:
    """Fill an empty folder with a store that holds no document.

    Args:
        lost: how many commits are missing in the store that this one will replace.
    """
    from indexer.stores.local.catalog import Catalog  # only writers need sqlite-utils

    (folder / "segments").mkdir()
    (folder / "LOCK").touch()
    catalog = Catalog(folder / "catalog.db")
    catalog.initialise(settings)
    if lost:
        catalog.set("lost", str(lost))
    catalog.close()


def _sweep_successors(folder: Path) -> None:
    """Remove successors that killed processes left: while this process has the writer lock, nobody else makes one."""
    names = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{8}}")
    for path in folder.parent.iterdir():
        if names.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
