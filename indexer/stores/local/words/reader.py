"""The word index as readers see it: a writer's files in words/, with the changes that the catalog has beyond them.

A reader opens the files through a temporary folder of links, because the engine wants to write a lock even to read.
Passages that were committed since a writer last wrote the index are added there, and dead ones deleted. Only this
reader sees those changes.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from indexer.errors import IndexDamaged, storage_error
from indexer.stores.local.catalog import queries
from indexer.stores.local.catalog.connections import with_descriptors
from indexer.stores.local.catalog.views import CommitState, Lineage, View
from indexer.stores.local.catalog.word_files import WordFiles
from indexer.stores.local.words.files import analysis_of, dead_ids, fill, paths, read_record, verify
from indexer.stores.port import Ids
from indexer.stores.temporary import temporary_folder
from indexer.stores.words.word_ranking import Words

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import Engine


class WordReader:
    """Finds the words that belong to a view. Safe to share among threads.

    The words of a state are kept while a view of the state is open or the state is the newest. Their files are mapped
    into memory and are kept while a state uses them. The files of a replaced folder are released at the next question
    of any kind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process, self._lock = os.getpid(), threading.Lock()
        self._words: WeakKeyDictionary[CommitState, Words] = WeakKeyDictionary()
        self._overlays: WeakKeyDictionary[Lineage, _Overlay] = WeakKeyDictionary()

    def close(self) -> None:
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._after_fork()
        with self._lock:
            self._words.clear()
            for overlay in self._overlays.values():
                overlay.close()
            self._overlays.clear()

    def _after_fork(self) -> None:
        """Let a forked child make an overlay of its own: the parent continues to write to the overlay they shared."""
        self._process, self._lock, self._overlays = os.getpid(), threading.Lock(), WeakKeyDictionary()

    def words_of(self, view: View) -> Words:
        """Return the words of a view: opened at the first question, brought up to date after each commit."""
        state, lineage = view.state, view.state.lineage
        if (words := self._words.get(state)) is not None:
            return words
        if self._process != os.getpid():
            self._after_fork()
        with self._lock:
            if (words := self._words.get(state)) is not None:
                return words
            row, latest = read_record(view), self._overlays.get(lineage)
            overlay = latest
            if overlay is None or not overlay.can_advance_to(view):
                overlay = _Overlay(self._folder, view, row)
            try:
                words = overlay.advance(view)
                if overlay.has_files and not _match_counts(words, view):
                    overlay.close()
                    problem = f"word index {overlay.name}: does not hold the passages of the catalog"
                    overlay = _Overlay(self._folder, view, row, problem)
                    words = overlay.advance(view)
            except BaseException:  # the overlay may hold half of a change
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
            self._words[state] = words
            has_written = overlay.has_written
        if has_written:  # outside the lock, because it may take long and other threads may wait for words
            from indexer.stores.words.tantivy_index import trim_memory

            trim_memory()
        return words


def _match_counts(words: Words, view: View) -> bool:
    """Return whether there are as many documents and passages as in the view."""
    return (words.documents.count, words.passages.count) == (view.state.documents, view.state.passages)


class _Overlay:
    """An index of the reader's own that follows the catalog from one generation to the next."""

    def __init__(self, folder: Path, view: View, row: WordFiles | None, problem: str = "") -> None:
        """`problem`: the reason for not using the writer's files, if there is one."""
        from indexer.stores.words.tantivy_index import open_indexes

        self._generation = -1
        self.name = row.name if row is not None else ""
        self._analysis = analysis_of(view)
        self._links: Path | None = None
        usable = not problem and row is not None and row.analysis == str(self._analysis)
        if row is not None and usable:
            try:
                self._indexes = with_descriptors(lambda: self._open_linked(folder, row))
            except (IndexDamaged, OSError, ValueError) as error:
                self._links, usable = None, False
                if not _was_replaced(folder, row):
                    problem = str(error) if isinstance(error, IndexDamaged) else f"word index {row.name}: {error}"
        note = f"{problem}; answering from the catalog until the next writer rebuilds it"
        self._notes = (note,) if problem else ()
        self._last_file_id = row.last_id if row is not None and usable else 0
        self._has_deletions = bool(usable and row is not None and row.removed)
        self._last_id, self._deleted = self._last_file_id, set[int]()
        self._added: Ids = np.empty(0, np.int64)
        if not usable:
            self._indexes = open_indexes(None, self._analysis)
        self._words: Words | None = None
        self.has_written = False  # when it last advanced

    def _open_linked(self, folder: Path, row: WordFiles) -> list[Engine]:
        """Open the indexes over a writer's files, in a folder of links to them."""
        from indexer.stores.words.tantivy_index import link_indexes, open_indexes

        verify(folder, row)
        links, remove = temporary_folder(self, "likewise-words-")
        try:
            link_indexes(paths(folder.absolute(), row), links, os.symlink)
            self._links, self._remove_links = links, remove
            return open_indexes(links, self._analysis)
        except BaseException:
            self._links = None
            remove()
            raise

    def close(self) -> None:
        if self._links is not None:
            self._remove_links()

    @property
    def has_files(self) -> bool:
        """True if the overlay is built on a word index that a writer wrote."""
        return self._links is not None

    def is_ahead_of(self, view: View) -> bool:
        """Return whether the overlay is newer than a view of the same lineage."""
        return self._generation > view.state.generation

    def can_advance_to(self, view: View) -> bool:
        """Return whether the overlay can be advanced to a view of the same lineage."""
        return not self.is_ahead_of(view) and self._analysis == analysis_of(view)

    def advance(self, view: View) -> Words:
        """Advance to this view and return its words. An earlier view can no longer be reached."""
        from indexer.stores.words.tantivy_index import Postings

        changed = self._apply_changes(view)
        self._generation = view.state.generation
        earlier = self._words
        # Opening an index with deletions also writes: it is padded.
        self.has_written = changed or (earlier is None and self._has_deletions)
        if earlier is None or changed:
            # Opening an index again opens its list of files again.
            documents, passages = with_descriptors(
                lambda: [Postings(index, has_deletions=self._has_deletions) for index in self._indexes]
            )
        else:
            documents, passages = earlier.documents, earlier.passages
        self._words = Words(self._analysis, documents, passages, self._notes)
        return self._words

    def _apply_changes(self, view: View) -> bool:
        """Add new passages and delete removed passages; return whether there were any."""
        alive, _ = queries.live_ids(view, self._last_file_id + 1)
        removed = np.setdiff1d(self._added, alive).tolist()
        if self._last_file_id:
            removed += [id_ for id_ in dead_ids(view) if id_ <= self._last_file_id and id_ not in self._deleted]
        changed = bool(removed) or (len(alive) > 0 and int(alive[-1]) > self._last_id)
        if changed:
            try:
                self._last_id = fill(self._indexes, view, self._analysis, self._last_id, removed)
            except (OSError, ValueError) as error:
                message = f"{tempfile.gettempdir()}: words cannot be written there ({error})"
                raise storage_error(message, error) from error
            self._deleted.update(removed)
            self._has_deletions = self._has_deletions or bool(removed)
        self._added = alive
        return changed


def _was_replaced(folder: Path, row: WordFiles) -> bool:
    """Return whether a writer has replaced the word index since the view began."""
    try:
        with closing(sqlite3.connect(f"{(folder / 'catalog.db').absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT name FROM word_index").fetchall() != [(row.name,)]
    except sqlite3.Error:
        return False
