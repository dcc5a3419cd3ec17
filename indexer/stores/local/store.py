"""The index in a folder as a `Store`: its snapshots and its one writer.

The answers of a snapshot are in view.py and in stores/reading/snapshot.py, the changes of a writer in writer.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.deadline import NEVER, Deadline
from indexer.errors import NotAnIndex, OlderFormat
from indexer.listener import SILENT, Listener
from indexer.stores.local import slots
from indexer.stores.local.catalog import generation
from indexer.stores.local.catalog.connections import has_catalog
from indexer.stores.local.catalog.views import Views
from indexer.stores.local.disk.drafts import address_of
from indexer.stores.local.disk.lock import WriterLock
from indexer.stores.local.view import LocalView
from indexer.stores.local.words.reader import WordReader
from indexer.stores.reading.store import Engine, Store

if TYPE_CHECKING:
    from indexer.stores.local.writer import LocalWriter


class LocalStore(Store):
    """A `Store` in a folder. Reads are safe from any thread; writes take the writer lock."""

    is_building_words = False

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.address, self.engine = str(folder), engine
        self._folder = folder
        self._views = Views(folder)
        self._words = WordReader(folder)
        self._lock = WriterLock(folder)
        self._process, self._inherited = os.getpid(), list[object]()
        self._writer: LocalWriter | None = None
        self._depth = 0

    def committed_at(self) -> float | None:
        try:
            return (self._folder / generation.NAME).stat().st_mtime  # every commit writes it
        except OSError:  # no writer has made it yet
            return None

    def artifacts(self) -> Path:
        return self._folder / "encoder"

    def derived(self) -> Path:
        return self._folder / "derived"

    def close(self) -> None:
        self._views.close()
        self._words.close()

    @contextmanager
    def _view(self, deadline: Deadline = NEVER) -> Iterator[LocalView]:
        with self._views.view(deadline) as view:
            yield LocalView(view.connection, view.state, view.lost, self._folder, self._words)

    @contextmanager
    def locked(self, wait: bool, listener: Listener) -> Iterator[None]:
        """Hold the writer lock without a writer, which needs a catalog that can be read. Errors are those of
        `writer`."""
        if not has_catalog(self._folder):
            raise NotAnIndex(f"{self._folder}: is no longer an index")
        if self._process != os.getpid():
            self._after_fork()
        with self._lock.hold(wait=wait, listener=listener):
            if self._writer is None:
                slots.complete(self._folder.resolve())
            yield

    @contextmanager
    def writer(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[LocalWriter]:
        from indexer.stores.local.writer import LocalWriter  # only writers need it

        with self.locked(wait, listener):
            if self._writer is None:
                self._writer = LocalWriter(self._folder, self._views)
            self._depth, process = self._depth + 1, self._process
            try:
                yield self._writer
            finally:
                if process == os.getpid():  # a child that was forked inside the block leaves it too, and closes nothing
                    self._depth -= 1
                    if self._depth == 0:
                        self.end_writing()

    def end_writing(self) -> None:
        """Close the open writer. Its block makes no further change."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _after_fork(self) -> None:
        """Start again in a forked child: its parent's connections must be neither used nor closed."""
        self._inherited.append(self._writer)
        self._process, self._writer, self._depth = os.getpid(), None, 0

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self._folder).free

    def duplicate(self, draft: Store) -> tuple[str, ...] | None:
        if not isinstance(draft, LocalStore):
            return None
        from indexer.stores.local.copies import copy_store

        draft.close()
        folder = Path(draft.address)
        with slots.making(address_of(folder)):
            return copy_store(self._views, folder)

    def lost_commits(self) -> int:
        """Return how many acknowledged commits are missing; 0 in an index that is of no format that can be read."""
        with suppress(OlderFormat), self._views.view() as view:
            return view.lost
        return 0
