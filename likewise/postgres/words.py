"""The words of an index in a database: a replica of tantivy's indexes at each reader, kept current by the commits.

Scores equal the scores in a folder, because engine and rules are the same, and the statistics are of the whole
collection. A replica is made from all texts once, kept in the user's cache folder, and shared by the processes of this
user. After that, a reader asks the table `change` which documents later commits have changed, and reads only these
documents. docs/decisions.md has what else was tried.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from indexer.columns import searched_columns
from indexer.deadline import Deadline
from indexer.encoders.machine.user_folders import cache_folder
from indexer.errors import WordsBuilding, storage_error
from indexer.stores.port import Ids
from indexer.stores.temporary import temporary_folder
from indexer.stores.words.analysis import Analysis, stored_analysis
from indexer.stores.words.word_ranking import Words
from likewise.postgres.schema import MAY_IDENTIFY
from likewise.postgres.views import CommitState, View, Views, commit_of

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import Engine, IndexedText

KEPT_PASSAGES = 2000
"""Minimum passages of a replica that is saved to disk. A smaller replica is rebuilt faster than a process starts."""

KEPT_CHANGES = 2000
"""Minimum changed documents before a saved replica is written again."""

WAITED_SECONDS = 1.0
"""Maximum seconds that a question waits for a replica that it begins to build. A saved one is often opened by then."""

ENDED_SECONDS = 10.0
"""Maximum seconds to wait for the end of a replica that nobody needs any longer."""

_UNUSED_SECONDS = 30 * 24 * 3600.0
_UNFINISHED_SECONDS = 24 * 3600.0


def analysis_of(view: View) -> Analysis:
    """Return the analysis that turns text into terms in this index."""
    return stored_analysis(view.state.settings.language)


class WordReplicas:
    """Finds the words that belong to a view. Safe to share among threads.

    The words of a state are kept while a view of the state is open or the state is the newest.
    """

    def __init__(self, views: Views) -> None:
        """Find words of the views of one index."""
        self._views = views
        self._words: WeakKeyDictionary[CommitState, Words] = WeakKeyDictionary()
        self._reset()

    def _reset(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._replica: _Replica | None = None
        self._builder: _Builder | None = None

    @property
    def is_building(self) -> bool:
        """Whether a thread builds a replica for questions that do not wait."""
        return self._builder is not None and self._builder.is_alive()

    def close(self) -> None:
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._reset()
        if (builder := self._builder) is not None:
            builder.end()
        with self._lock:
            self._words.clear()
            self._replica = self._builder = None

    def words_of(self, view: View) -> Words:
        """Return the words of a view: opened at the first question, brought up to date after each commit.

        Raises:
            WordsBuilding: there is no replica of this index yet, and the deadline of the view does not wait for it.
        """
        if (words := self._words.get(view.state)) is not None:
            return words
        if self._process != os.getpid():
            self._reset()
        if not view.connection.deadline.waits:
            self._require_replica(view)
        elif (builder := self._builder) is not None:
            builder.join()
        with self._lock:
            if (words := self._words.get(view.state)) is None:
                words = self._words[view.state] = self._advance(view)
        from indexer.stores.words.tantivy_index import trim_memory

        trim_memory()
        return words

    def are_near(self, view: View) -> bool:
        """Return whether there is a replica of this index, or it is small and a question builds it."""
        replica = self._replica
        return view.state.row.passages < KEPT_PASSAGES or (replica is not None and replica.is_near(view))

    def _advance(self, view: View) -> Words:
        """Return the words of a view from the newest replica, which is built if there is none."""
        replica = self._replica
        if replica is None or not replica.can_advance_to(view):
            replica = _open(view)
        try:
            words = replica.advance(view)
        except BaseException:  # it may hold half of a change
            if replica is self._replica:
                self._replica = None
            raise
        self._keep(replica)
        return words

    def _keep(self, replica: _Replica) -> None:
        """Use a replica from now on, unless it is of an earlier commit: its thread may read another than the others."""
        newest = self._replica
        if newest is None or newest.generation <= replica.generation or not replica.is_of_same_index(newest):
            self._replica = replica

    def _require_replica(self, view: View) -> None:
        """Begin to build a replica in a thread if there is none of this index. Small ones are built by the question.

        Raises:
            WordsBuilding: the replica is not there yet.
            LikewiseError: it could not be built; the next question tries again.
        """
        if self.are_near(view):
            return
        with self._lock:
            builder = self._builder
            if begins := builder is None or not (builder.is_alive() or builder.failure):
                builder = _Builder(self._build)
                builder.start()
                self._builder = builder
        if begins:
            builder.join(WAITED_SECONDS)
        # The next question raises a failure, however soon it came: a service that begins to read words starts.
        if builder.is_alive() or (begins and builder.failure):
            raise WordsBuilding(
                f"{self._views.address.shown}: its words are still being read: ask again later, or ask with the mode "
                '"dense"'
            )
        with self._lock:
            if self._builder is builder:
                self._builder = None
        if builder.failure is not None:
            raise builder.failure

    def _build(self, deadline: Deadline) -> None:
        with self._views.view(deadline) as view:
            replica = _open(view)
            words = replica.advance(view)
            with self._lock:
                self._keep(replica)
                self._words[view.state] = words


class _Builder(threading.Thread):
    """A thread that builds a replica.

    Attributes:
        failure: the error that ended it.
    """

    def __init__(self, build: Callable[[Deadline], None]) -> None:
        super().__init__(name="likewise words", daemon=True)
        self._build, self._deadline = build, Deadline()
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._build(self._deadline)
        except Exception as error:  # noqa: BLE001 - the next question raises it
            self.failure = error

    def end(self) -> None:
        """End the work, and remove what it has written."""
        self._deadline.cancel()
        if self.ident is not None:
            self.join(ENDED_SECONDS)


def _open(view: View) -> _Replica:
    """Return a replica, from the disk or new, whose commit is not later than the view's."""
    if (folder := _folder(view)) is None:
        return _Replica(view, None)
    base, note = _saved(folder, view)
    if base is not None:
        with suppress(OSError, RuntimeError, ValueError):  # removed by another process since, or no room for its copy
            return _Replica(view, base, note)
    return _Replica(view, None, note or f"{folder}: words cannot be read there; they are read each time")


def _folder(view: View) -> Path | None:
    """Return the folder of the saved replicas of an index; None if it is too small for one."""
    if view.state.row.passages < KEPT_PASSAGES:
        return None
    return cache_folder() / "words" / f"{view.state.row.history}-{_identity(view)}"


def _saved(folder: Path, view: View) -> tuple[_Base | None, str]:
    """Return a replica on the disk that is nearly current: the newest, or one made from it or from all texts.

    Also returns why it could not be written; an older one is better than none then.
    """
    base = _newest(folder, view)
    try:
        if base is None or _changes_since(view, base.generation) >= KEPT_CHANGES:
            base = _write(folder, view, base)
    except (OSError, RuntimeError, ValueError) as error:  # the engine raises ValueError for a full disk
        return base, f"{folder}: words cannot be kept there ({error}); they are read from the database each time"
    return base, ""


def _identity(view: View) -> str:
    """Return a value that distinguishes the tables of an index from the tables in a copy of the whole database. Both
    have the same history.

    A database that was restored to an earlier time counts as another database: it continues in a new timeline.
    """
    ((may_identify,),) = view.rows(f"SELECT {MAY_IDENTIFY}")
    if not may_identify:  # the number by chance of each commit remains
        ((table,),) = view.rows("SELECT '{tables}.setting'::regclass::oid")
        return f"{int(table):016x}"
    (row,) = view.rows(
        "SELECT s.system_identifier, c.timeline_id, d.oid, '{tables}.setting'::regclass::oid"
        " FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d WHERE d.datname = current_database()"
    )
    return hashlib.blake2b(repr(tuple(map(int, row))).encode(), digest_size=8).hexdigest()


def _is_part_of(view: View, generation: int, commit: int | None) -> bool:
    """Return whether a commit, given by its number and its random number, is a predecessor of a view.

    It is not if the database was restored to a time before the commit and has had other commits since.
    """
    row = view.state.row
    if commit is None:  # it was not known
        return True
    if generation == row.generation:
        return commit == row.commit
    return commit == commit_of(view.connection, row.tables, generation)


def _changes_since(view: View, generation: int) -> int:
    ((count,),) = view.rows("SELECT count(*) FROM {tables}.change WHERE generation > %s", generation)
    return int(count)


class _Base:
    """A replica on the disk: `GENERATION-NAME/` with both indexes and the ids of the documents in them.

    A saved replica is never changed. Its name ends with `d` if documents were deleted since the replica was made from
    all texts.
    """

    pattern = re.compile(r"(\d+)-[0-9a-f]{8}(d?)")

    def __init__(self, folder: Path) -> None:
        match = self.pattern.fullmatch(folder.name)
        if match is None:
            raise ValueError(f"{folder}: is not the name of a replica")
        self.folder, self.generation, self.has_deletions = folder, int(match[1]), bool(match[2])
        if json.loads((folder / _CHECKSUMS).read_bytes()) != _checksums(folder):
            raise ValueError(f"{folder}: is damaged")
        self.documents: Ids = np.load(folder / "documents.npy", allow_pickle=False)
        self.commit = int((folder / "commit").read_text()) if (folder / "commit").exists() else None

    def files(self) -> list[Path]:
        """Return the files of both indexes."""
        return [path for path in self.folder.glob("*/*") if path.suffix != ".lock"]


_CHECKSUMS = "checksums.json"


def _checksums(folder: Path) -> dict[str, str]:
    """Return the hash of every file of a replica that the engine or we read, by its path in the folder."""
    sums = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _CHECKSUMS and path.suffix != ".lock":
            with path.open("rb") as file:
                sums[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    return sums


def _newest(folder: Path, view: View) -> _Base | None:
    """Return the newest replica on the disk that is not later than the view and has the index's analysis."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # writing one tells
        found = sorted(
            (int(match[1]), path) for path in folder.iterdir() if (match := _Base.pattern.fullmatch(path.name))
        )
        for generation, path in reversed(found):
            if generation > view.state.row.generation:
                continue
            try:
                if (path / "analysis").read_text() != str(analysis_of(view)):
                    continue
                base = _Base(path)
                if not _is_part_of(view, base.generation, base.commit):
                    shutil.rmtree(path, ignore_errors=True)
                    continue
            except FileNotFoundError:  # another process has just removed it
                continue
            except (OSError, ValueError):  # it is damaged
                shutil.rmtree(path, ignore_errors=True)
                continue
            with suppress(OSError):  # a folder that is read-only is never swept either
                os.utime(folder)
            return base
    return None


class _Replica:
    """Two indexes that follow the database from one commit to the next. Only this process sees what it adds."""

    def __init__(self, view: View, base: _Base | None, note: str = "") -> None:
        from indexer.stores.words.tantivy_index import link_indexes, open_indexes

        self._identity, self._analysis = _of(view), analysis_of(view)
        self._notes = (note,) if note else ()
        self._words: Words | None = None
        self.generation = base.generation if base else -1
        self._commit = base.commit if base else None
        self._documents: Ids = base.documents if base else np.empty(0, np.int64)
        self._has_deletions = bool(base and base.has_deletions)
        self._folder: Path | None = None
        if base is not None:
            self._folder, self._remove = temporary_folder(self, "likewise-words-")
            link_indexes(base.files(), self._folder)
        self._indexes = open_indexes(self._folder, self._analysis)

    def is_of_same_index(self, other: _Replica) -> bool:
        return self._identity == other._identity

    def is_near(self, view: View) -> bool:
        """Return whether this replica can advance to a view, or is already at a later commit of the same index."""
        later = self._identity == _of(view) and self.generation > view.state.row.generation
        return later or self.can_advance_to(view)

    def can_advance_to(self, view: View) -> bool:
        return (
            self._identity == _of(view)
            and self.generation <= view.state.row.generation
            and _is_part_of(view, self.generation, self._commit)
        )

    def advance(self, view: View) -> Words:
        """Advance to this view and return its words. An earlier view can no longer be reached."""
        from indexer.stores.words.tantivy_index import Postings

        if self._words is not None and self.generation == view.state.row.generation:
            return self._words
        try:
            self._documents, changed, deleted = _fill(
                self._indexes, view, self._analysis, self.generation, self._documents
            )
        except (OSError, ValueError) as error:
            message = f"{self._folder or 'memory'}: words cannot be written there ({error})"
            raise storage_error(message, error) from error
        self._has_deletions = self._has_deletions or deleted
        self.generation, self._commit = view.state.row.generation, view.state.row.commit
        if self._words is None or changed:
            documents, passages = (Postings(index, has_deletions=self._has_deletions) for index in self._indexes)
            self._words = Words(self._analysis, documents, passages, self._notes)
        else:
            self._words = Words(self._analysis, self._words.documents, self._words.passages, self._notes)
        return self._words


def _of(view: View) -> tuple[object, ...]:
    """Return the key of a replica: the index, and the analysis that turns its texts into terms."""
    return view.state.row.history, analysis_of(view)


def _fill(
    indexes: Sequence[Engine], view: View, analysis: Analysis, generation: int, held: Ids
) -> tuple[Ids, bool, bool]:
    """Bring both indexes from a commit up to a view.

    Args:
        generation: the number of the commit that they are at; -1 where they are empty.
        held: ids of the documents in them (n,), ascending.

    Returns:
        The ids of the documents in them now; whether anything changed, and whether anything was deleted.
    """
    from indexer.stores.words.tantivy_index import update_indexes

    changed: Ids | None = None
    if generation >= 0:
        rows = view.rows("SELECT document_id FROM {tables}.change WHERE generation > %s ORDER BY 1", generation)
        changed = np.array([id_ for (id_,) in rows], np.int64)
        if not len(changed):
            return held, False, False
    stale = np.intersect1d(changed, held) if changed is not None else np.empty(0, np.int64)
    added = update_indexes(indexes, stale.tolist(), _texts(view, analysis, changed), "document")
    documents = np.union1d(np.setdiff1d(held, stale), np.array([id_ for id_, _ in added], np.int64))
    return documents, True, bool(len(stale))


def _texts(view: View, analysis: Analysis, documents: Ids | None) -> Iterator[tuple[IndexedText, list[IndexedText]]]:
    """Yield documents, each under the id of its first passage, with their passages; None for all documents."""
    from indexer.stores.words.tantivy_index import indexed_texts

    condition, parameters = ("", []) if documents is None else (" WHERE d.id = ANY(%s)", [documents.tolist()])
    rows = view.stream(
        "SELECT d.id, d.title, d.format, d.metadata, d.text, d.raw, p.id, p.start, p.stop FROM {tables}.document d"
        f" JOIN {{tables}}.passage p ON p.document_id = d.id{condition} ORDER BY d.id, p.id",
        *parameters,
    )
    for document, grouped in groupby(rows, itemgetter(0)):
        spans = list(grouped)
        _, title, format_, metadata, text, raw, *_ = spans[0]
        text = text if raw is None else raw.decode()
        columns = searched_columns(format_, metadata) if view.state.settings.columns_searched else []
        yield indexed_texts(document, title, columns, text, format_, [span[-3:] for span in spans], analysis)


def _write(folder: Path, view: View, base: _Base | None) -> _Base:
    """Save a replica of a view to disk. It is made from all texts, or from an earlier replica and the changes since."""
    from indexer.stores.words.tantivy_index import link_indexes, open_indexes

    analysis = analysis_of(view)
    temporary = folder / f"{secrets.token_hex(8)}.tmp"
    try:
        temporary.mkdir(parents=True)
        if base is not None:
            link_indexes(base.files(), temporary)
        indexes = open_indexes(temporary, analysis)
        held = base.documents if base else np.empty(0, np.int64)
        documents, _, deleted = _fill(indexes, view, analysis, base.generation if base else -1, held)
        np.save(temporary / "documents.npy", documents, allow_pickle=False)
        (temporary / "analysis").write_text(str(analysis))
        if view.state.row.commit is not None:
            (temporary / "commit").write_text(str(view.state.row.commit))
        (temporary / _CHECKSUMS).write_text(json.dumps(_checksums(temporary)))
        suffix = "d" if deleted or (base is not None and base.has_deletions) else ""
        target = folder / f"{view.state.row.generation}-{secrets.token_hex(4)}{suffix}"
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sweep(folder, target)
    return _Base(target)


def _sweep(folder: Path, kept: Path) -> None:
    """Remove all but the two newest replicas of an index, what a killed process left, and indexes long unused.

    Args:
        kept: the replica just written, which is never removed.
    """
    names = sorted((int(match[1]), path) for path in folder.iterdir() if (match := _Base.pattern.fullmatch(path.name)))
    stale = [path for _, path in names[:-2] if path != kept]
    now = time.time()
    for path, seconds in (
        *((path, _UNFINISHED_SECONDS) for path in folder.glob("*.tmp")),
        *((path, _UNUSED_SECONDS) for path in folder.parent.iterdir() if path != folder),
    ):
        with suppress(OSError):
            if now - path.stat().st_mtime > seconds:
                stale.append(path)
    for path in stale:
        shutil.rmtree(path, ignore_errors=True)
