"""The word index as readers see it: what stands in words/, with what the catalog has beyond it.

A reader opens it through a temporary folder of links, as the engine wants to write a lock even to read. Passages
committed since a writer last caught up are added there, and the dead deleted: by its own view, and by nobody else's.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from indexer.errors import IndexDamaged, StorageError
from indexer.stores.analysis import Analysis
from indexer.stores.local import queries
from indexer.stores.local.connections import Identity, with_descriptors
from indexer.stores.local.temporary import temporary
from indexer.stores.local.views import Lineage, State, View
from indexer.stores.local.words.files import UNITS, dead, fill, language, paths, recorded, verify
from indexer.stores.local.words.record import WordFiles

if TYPE_CHECKING:
    from indexer.stores.local.words.tantivy_index import Chosen, Engine, Postings


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one generation of the catalog, by document and by passage.

    Attributes:
        documents: each under the id of its first passage.
        notes: what every question by these words should be told: the word index is damaged, say.
        chosen: filters that were asked for, as questions to the engine; None leaves everything.
    """

    analysis: Analysis
    documents: Postings
    passages: Postings
    notes: tuple[str, ...] = ()
    chosen: dict[str, Chosen | None] = field(default_factory=dict)

    def are_of(self, view: View) -> bool:
        return (self.documents.count, self.passages.count) == (view.state.documents, view.state.passages)


class WordReader:
    """Finds the words that go with a view. Safe to share among threads.

    The words of a state are kept as long as a view of it is open or it is the newest, and the files below them, which
    are mapped, as long as a state has them: those of a replaced folder are let go of at the next question of any kind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process, self._lock = os.getpid(), threading.Lock()
        self._known: WeakKeyDictionary[State, Words] = WeakKeyDictionary()
        self._overlays: WeakKeyDictionary[Lineage, _Overlay] = WeakKeyDictionary()

    def close(self) -> None:
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._after_fork()
        with self._lock:
            self._known.clear()
            for overlay in self._overlays.values():
                overlay.close()
            self._overlays.clear()

    def _after_fork(self) -> None:
        """The child makes a copy of its own when there is something new: its parent goes on writing to the other."""
        self._process, self._lock, self._overlays = os.getpid(), threading.Lock(), WeakKeyDictionary()

    def at(self, view: View) -> Words:
        """The words of a view: opened at its first question, brought up to date after each commit."""
        state, lineage = view.state, view.state.lineage
        if (known := self._known.get(state)) is not None:
            return known
        if self._process != os.getpid():
            self._after_fork()
        with self._lock:
            if (known := self._known.get(state)) is not None:
                return known
            row, latest = recorded(view), self._overlays.get(lineage)
            overlay = latest
            if overlay is None or not overlay.leads_to(view, row):
                overlay = _Overlay(self._folder, view, row)
            try:
                words = overlay.advanced(view)
                if overlay.is_sealed and not words.are_of(view):
                    overlay.close()
                    problem = f"word index {overlay.name}: does not hold the passages of the catalog"
                    overlay = _Overlay(self._folder, view, row, problem)
                    words = overlay.advanced(view)
            except BaseException:  # half of a change may be in it
                if overlay is latest:
                    del self._overlays[lineage]
                overlay.close()
                raise
            if overlay is not latest:
                # This thread may read an earlier commit than the others do.
                if latest is not None and latest.is_ahead_of(view):
                    overlay.close()
                else:
                    self._overlays[lineage] = overlay
                    if latest is not None:
                        latest.close()
            self._known[state] = words
            has_written = overlay.has_written
        if has_written:  # not under the lock: it may take long, and others may wait for words
            from indexer.stores.local.words.tantivy_index import give_memory_back

            give_memory_back()
        return words


def _index_of(view: View) -> tuple[Identity, str]:
    """Which file, and which index in it; its times, which tell of commits where one may not write, are left out."""
    return view.state.catalog[:2], view.state.history


class _Overlay:
    """An index of a reader's own that follows the catalog from one generation to the next."""

    def __init__(self, folder: Path, view: View, row: WordFiles | None, problem: str = "") -> None:
        """`problem`: why the writer's files below are not to be used, if they are not."""
        self._of, self._generation = _index_of(view), -1
        self.name = row.name if row is not None else ""
        self._analysis = language(view)
        self._linked: Path | None = None
        usable = not problem and row is not None and row.analysis == str(self._analysis)
        if row is not None and usable:
            try:
                self._indexes = with_descriptors(lambda: self._opened_with(folder, row))
            except (IndexDamaged, OSError, ValueError) as error:
                self._linked, usable = None, False
                if not _superseded(folder, row):
                    problem = str(error) if isinstance(error, IndexDamaged) else f"word index {row.name}: {error}"
        note = f"{problem}; answering from the catalog until the next writer rebuilds it"
        self._notes = (note,) if problem else ()
        self._sealed = row.last_id if row is not None and usable else 0
        self._worn = bool(usable and row is not None and row.removed)
        self._last, self._dead = self._sealed, set[int]()
        self._tail = np.empty(0, np.int64)
        if not usable:
            self._indexes = self._opened()
        self._words: Words | None = None
        self.has_written = False  # when it last advanced

    def _opened_with(self, folder: Path, row: WordFiles) -> list[Engine]:
        """The indexes on top of a writer's files, in a folder of links to them."""
        verify(folder, row)
        linked, forget = temporary(self, "likewise-words-")
        try:
            _link(folder, row, linked)
            self._linked, self._forget = linked, forget
            return self._opened()
        except BaseException:
            self._linked = None
            forget()
            raise

    def _opened(self) -> list[Engine]:
        from indexer.stores.local.words.tantivy_index import opened

        return [opened(self._linked / unit if self._linked else None, self._analysis) for unit in UNITS]

    def close(self) -> None:
        if self._linked is not None:
            self._forget()

    @property
    def is_sealed(self) -> bool:
        """Whether there is a word index of a writer's below."""
        return self._linked is not None

    def is_ahead_of(self, view: View) -> bool:
        return self._of == _index_of(view) and self._generation > view.state.generation

    def leads_to(self, view: View, row: WordFiles | None) -> bool:
        """Whether it can become that view's: the same word index below it, and no earlier state."""
        name = row.name if row is not None else ""
        same = self._of == _index_of(view) and self.name == name
        return same and self._generation <= view.state.generation and self._analysis == language(view)

    def advanced(self, view: View) -> Words:
        """The words of this view; later ones are made from here."""
        from indexer.stores.local.words.tantivy_index import Postings

        changed = self._change(view)
        self._generation = view.state.generation
        before = self._words
        self.has_written = changed or (before is None and self._worn)  # filler, where units were deleted
        if before is None or changed:
            # Reading an index anew opens its list of files again.
            documents, passages = with_descriptors(
                lambda: [Postings(index, worn=self._worn) for index in self._indexes]
            )
        else:
            documents, passages = before.documents, before.passages
        self._words = Words(self._analysis, documents, passages, self._notes)
        return self._words

    def _change(self, view: View) -> bool:
        """Take in what came and went since; whether there was anything."""
        there, _ = queries.live_ids(view, self._sealed + 1)
        removed = np.setdiff1d(self._tail, there).tolist()
        if self._sealed:
            removed += [id_ for id_ in dead(view) if id_ <= self._sealed and id_ not in self._dead]
        changed = bool(removed) or (len(there) > 0 and int(there[-1]) > self._last)
        if changed:
            try:
                self._last = fill(self._indexes, view, self._analysis, self._last, removed)
            except (OSError, ValueError) as error:
                raise StorageError(f"{tempfile.gettempdir()}: words cannot be written there ({error})") from error
            self._dead.update(removed)
            self._worn = self._worn or bool(removed)
        self._tail = there
        return changed


def _link(folder: Path, row: WordFiles, linked: Path) -> None:
    """Links to the files of a word index; its lists of files are copied, as they change with it."""
    for path in paths(folder.absolute(), row):
        to = linked / path.parent.name / path.name
        to.parent.mkdir(exist_ok=True)
        if path.suffix == ".json":
            shutil.copy(path, to)
        else:
            to.symlink_to(path)


def _superseded(folder: Path, row: WordFiles) -> bool:
    """Whether a writer has replaced it since the view began."""
    try:
        with closing(sqlite3.connect(f"{(folder / 'catalog.db').absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT name FROM word_index").fetchall() != [(row.name,)]
    except sqlite3.Error:
        return False
