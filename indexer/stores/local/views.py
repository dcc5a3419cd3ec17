"""The catalog as readers see it: one read transaction a query, and what is kept in memory between queries.

Needs sqlite3 and numpy alone. A commit is noticed by the `generation` setting, a replaced folder by its inode.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged, StorageError
from indexer.settings import Settings
from indexer.stores.field_types import Known
from indexer.stores.local.connections import (
    Identity,
    IdleConnections,
    copied,
    identity_of,
    opened,
    unreadable,
    with_descriptors,
)
from indexer.stores.local.filter_sql import known_fields
from indexer.stores.local.masks import Allowed
from indexer.stores.local.segments.faiss_segment import FaissSegment, PlainSegment
from indexer.stores.local.segments.files import Positions, SegmentFile
from indexer.stores.setting_rows import from_rows
from indexer.stores.vectors import from_blobs

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

_NO_IDS: Ids = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the passages: a segment, or the tail that is in no segment yet.

    Attributes:
        dead: positions (m,) whose passage exists no more.
        file: the segment's name; empty for the tail, and for what is served from the catalog in a segment's place.
    """

    segment: FaissSegment | PlainSegment
    dead: Ids
    file: str = ""

    @property
    def positions(self) -> Positions:
        return self.segment.positions


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Lineage:
    """The states of a catalog that have the same word index below them. What readers keep of that index goes with it.

    Attributes:
        catalog: device and inode.
        words: the name of the word index; empty where there is none yet.
    """

    catalog: Identity
    history: str
    words: str


@dataclass(slots=True, weakref_slot=True, eq=False)
class State:
    """What one generation of the catalog looks like in memory; shared by threads, replaced, never changed.

    Attributes:
        catalog: which file it was read from (device, inode): a copy that was put back counts on from where it stood.
        parts: the segments in order of their ids, then the tail.
        sealed: the highest passage id that a segment may hold.
        damaged: a segment cannot be used, and its rows are served from the catalog.
        notes: one sentence per damaged segment, for every question that this state answers.
    """

    catalog: Identity
    generation: int
    history: str
    dimensions: int
    parts: tuple[Part, ...]
    tail: PlainSegment | None
    sealed: int
    damaged: bool
    settings: Settings
    documents: int
    passages: int
    last_document: int  # the highest id ever given
    fields: Known
    lineage: Lineage
    notes: tuple[str, ...] = ()
    allowed: dict[str, Allowed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """One consistent read: a connection inside its transaction, and the state that goes with it."""

    connection: sqlite3.Connection
    state: State


class Snapshots:
    """Consistent views of an index folder, for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process, self._lock = os.getpid(), threading.Lock()
        self._state: State | None = None
        self._lineage: Lineage | None = None
        self._identity = identity_of(folder)
        self._idle = IdleConnections()  # another one as soon as those that are lent may not be used again
        self._inherited: list[sqlite3.Connection] = []
        self._copy: tuple[Path, Callable[[], object]] | None = None

    def close(self) -> None:
        """Let go of the folder; a later view opens it again."""
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._after_fork()
        with self._lock:
            self._forget()
            self._lineage = None

    def _forget(self) -> None:
        self._idle.close()
        self._idle, self._state = IdleConnections(), None
        if self._copy is not None:
            self._copy[1]()
            self._copy = None

    @contextmanager
    def view(self) -> Iterator[View]:
        """A read transaction on a connection of its own.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: the folder cannot be read as an index.
        """
        if self._process != os.getpid():
            self._after_fork()
        process = os.getpid()
        connection, identity, idle = self._leased()
        try:
            connection.execute("BEGIN")
            yield View(connection, self._current(connection, identity))
            if process != os.getpid():  # a forked child leaves the block too, with its parent's connection
                self._inherited.append(connection)
                return
            connection.execute("ROLLBACK")
        except BaseException as error:
            if process != os.getpid():
                self._inherited.append(connection)
                raise
            connection.close()
            idle.lost()
            if isinstance(error, sqlite3.DatabaseError):
                raise unreadable(self.folder / "catalog.db", error) from error
            raise
        idle.take_back(connection)

    def _leased(self) -> tuple[sqlite3.Connection, Identity, IdleConnections]:
        """A connection to the catalog that is there now, which that is, and where to bring it back."""
        while True:
            with self._lock:
                identity = identity_of(self.folder)
                if identity != self._identity:
                    self._forget()
                    if identity[:2] != self._identity[:2]:
                        self._lineage = None
                    self._identity = identity
                idle = self._idle
                connection = idle.lend()
            if connection is not None:
                return connection, identity, idle
            try:
                connection = with_descriptors(self._connect)
                if identity_of(self.folder)[:2] == identity[:2]:  # no other has taken its place meanwhile
                    return connection, identity, idle
            except BaseException:
                if connection is not None:
                    connection.close()
                idle.lost()
                raise
            connection.close()
            idle.lost()

    def _after_fork(self) -> None:
        """The child keeps the state; of its parent's connections, those that wait were taken away (connections.py)."""
        self._process, self._lock = os.getpid(), threading.Lock()

    def _connect(self) -> sqlite3.Connection:
        catalog = self.folder / "catalog.db"
        log = self.folder / "catalog.db-wal"
        if os.access(self.folder, os.W_OK):
            return opened(catalog, "mode=ro")
        # A WAL catalog cannot be opened in a folder one may not write, unless it is promised to stand still: what
        # becomes of it is seen by its times (_identity), and it is opened anew.
        if not log.exists() or log.stat().st_size == 0:
            return opened(catalog, "mode=ro&immutable=1")
        with suppress(IndexDamaged, StorageError):  # with a writer at work its shared memory is there to be read
            return opened(catalog, "mode=ro")
        with self._lock:
            if self._copy is None:
                self._copy = copied(self, self.folder)
        return opened(self._copy[0] / "catalog.db", "mode=ro")

    def _current(self, connection: sqlite3.Connection, identity: Identity) -> State:
        try:
            key, state = (identity, *_generation(connection)), self._state
            if state is not None and (state.catalog, state.generation, state.history) == key:
                return state
            # Not under the lock for others' sake: a reader with a known state must not wait for this one.
            lineage = self._lineage
            try:
                loaded = with_descriptors(lambda: _load(self.folder, connection, identity, state, lineage))
            except IndexDamaged:
                connection.execute("ROLLBACK")
                connection.execute("BEGIN")
                if (identity, *_generation(connection)) != key:  # a writer had put another segment in its place
                    return self._current(connection, identity)
                loaded = _load(self.folder, connection, identity, state, lineage, stand_in=True)
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(self.folder / "catalog.db", error) from error
        with self._lock:
            newest = self._state
            ahead = newest and (newest.catalog, newest.history) == (identity, loaded.history)
            # That of a replaced folder would never be asked for again; and another thread may be further.
            if identity == self._identity and not (ahead and newest and newest.generation > loaded.generation):
                self._state, self._lineage = loaded, loaded.lineage
        return loaded


def _generation(connection: sqlite3.Connection) -> tuple[int, str]:
    """The commit that is read, and of which index: two that are made alike count alike."""
    names = "SELECT value FROM setting WHERE name IN ('generation', 'history') ORDER BY name"
    (generation,), (history,) = connection.execute(names)
    return int(generation), history


def _lineage(connection: sqlite3.Connection, catalog: Identity, history: str, known: Lineage | None) -> Lineage:
    """The lineage of this transaction: the known one where it is still the same."""
    try:
        row = connection.execute("SELECT name FROM word_index").fetchone()
    except sqlite3.OperationalError:  # an index that no writer has met since there are word indexes
        row = None
    words = row[0] if row else ""
    if known is not None and (known.catalog, known.history, known.words) == (catalog, history, words):
        return known
    return Lineage(catalog, history, words)


def _load(
    folder: Path,
    connection: sqlite3.Connection,
    identity: Identity,
    before: State | None,
    lineage: Lineage | None,
    *,
    stand_in: bool = False,
) -> State:
    """The state of this transaction; open segments and the rows of the tail are taken over from `before`.

    Raises:
        IndexDamaged: a segment cannot be used, and the rows of the catalog are not to stand in for it.
    """
    rows = dict(connection.execute("SELECT name, value FROM setting"))
    settings = from_rows(rows)
    dimensions, generation, history = settings.dimensions, int(rows["generation"]), rows["history"]
    if before and (before.catalog, before.history) != (identity, history):
        before = None
    open_ = {part.file: part for part in before.parts} if before else {}
    parts, notes, sealed = list[Part](), list[str](), 0
    for *recorded, first_id, last_id in connection.execute(
        "SELECT file, kind, count, size, sha256, stamp, parameters, first_id, last_id FROM segment ORDER BY first_id"
    ).fetchall():
        earlier = open_.get(recorded[0])
        file, ids = SegmentFile(*recorded), (first_id, last_id)
        try:
            parts.append(_part(folder, connection, file, ids, earlier))
        except IndexDamaged as error:
            if not stand_in:
                raise
            notes.append(f"{error}; answering from the catalog until the next writer rebuilds it")
            parts.append(Part(_plain(connection, "id BETWEEN ? AND ?", ids, dimensions), _NO_IDS))
        sealed = last_id
    # Another thread may have gone ahead: its tail is not all in this transaction.
    known = before.tail if before and before.sealed == sealed and before.generation <= generation else None
    tail = _tail(connection, sealed, known, dimensions)
    if len(tail.rows):
        parts.append(Part(tail, _NO_IDS))
    # Ever given, not alive: segments still hold the rows of documents that were removed.
    (last_document,) = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'document'"
    ).fetchone()
    return State(
        catalog=identity,
        generation=generation,
        history=history,
        dimensions=dimensions,
        parts=tuple(parts),
        tail=tail if len(tail.rows) else None,
        sealed=sealed,
        damaged=bool(notes),
        settings=settings,
        documents=int(rows["documents"]),
        passages=sum(len(part.positions.passages) - len(part.dead) for part in parts),
        last_document=last_document,
        fields=known_fields(connection),
        lineage=_lineage(connection, identity[:2], history, lineage),
        notes=tuple(notes),
    )


def _part(
    folder: Path,
    connection: sqlite3.Connection,
    recorded: SegmentFile,
    ids: tuple[int, int],
    earlier: Part | None,
) -> Part:
    """Return an open segment with the positions of its dead passages. Raises IndexDamaged."""
    dead = np.array(
        connection.execute("SELECT passage_id FROM dead WHERE passage_id BETWEEN ? AND ? ORDER BY 1", ids).fetchall(),
        np.int64,
    ).reshape(-1)
    if earlier is not None and len(dead) == len(earlier.dead):
        return earlier
    segment = FaissSegment(folder / "segments", recorded) if earlier is None else earlier.segment
    return Part(segment, np.searchsorted(segment.positions.passages, dead), recorded.file)


def _tail(connection: sqlite3.Connection, sealed: int, before: PlainSegment | None, dimensions: int) -> PlainSegment:
    """The rows after the last sealed id: those known before that are still there, and the new ones."""
    if before is None:
        return _plain(connection, "id > ?", (sealed,), dimensions)
    known = before.positions.passages
    last = int(known[-1])
    new = _plain(connection, "id > ?", (last,), dimensions)
    there = connection.execute("SELECT id FROM passage WHERE id > ? AND id <= ? ORDER BY id", (sealed, last)).fetchall()
    if len(there) < len(known):
        kept = np.searchsorted(known, np.array(there, np.int64).reshape(-1))
        before = PlainSegment(before.rows[kept], Positions(known[kept], before.positions.documents[kept], None))
    if not len(new.rows):
        return before
    passages = np.concatenate([before.positions.passages, new.positions.passages])
    documents = np.concatenate([before.positions.documents, new.positions.documents])
    return PlainSegment(np.concatenate([before.rows, new.rows]), Positions(passages, documents, None))


def _plain(
    connection: sqlite3.Connection, condition: str, parameters: tuple[int, ...], dimensions: int
) -> PlainSegment:
    found = connection.execute(
        f"SELECT id, document_id, vector FROM passage WHERE {condition} ORDER BY id", parameters
    ).fetchall()
    ids = np.array([row[:2] for row in found], np.int64).reshape(-1, 2)
    rows = from_blobs([row[2] for row in found], dimensions)
    return PlainSegment(rows, Positions(ids[:, 0].copy(), ids[:, 1].copy(), None))
