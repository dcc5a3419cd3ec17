"""The catalog as readers see it: one read transaction a query, and what is kept in memory between queries.

Needs sqlite3 and numpy alone. A commit is noticed by the `generation` setting, a replaced folder by its inode.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged, NewerFormat, NotAnIndex
from indexer.records import Vector
from indexer.stores.fields import Known, known_fields
from indexer.stores.segments import FaissSegment, PlainSegment, SegmentFile
from indexer.stores.vectors import from_blobs

FORMAT_VERSION = 1
"""The newest format this version reads; schema.py writes it."""

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the passages: a segment, or the tail that is in no segment yet.

    Attributes:
        passages, documents: ids by position (n,).
        alive: one flag a position, or None where all are alive.
    """

    segment: FaissSegment | PlainSegment
    passages: Ids
    documents: Ids
    alive: Flags | None = None


@dataclass(slots=True)
class State:
    """What one generation of the catalog looks like in memory; shared by threads, replaced, never changed."""

    generation: int
    history: str
    dimensions: int
    parts: list[Part]
    documents: int
    passages: int
    last_document: int
    fields: Known
    allowed: dict[str, Flags] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """One consistent read: a connection inside its transaction, and the state that goes with it."""

    connection: sqlite3.Connection
    state: State


class Snapshots:
    """Consistent views of an index folder, for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._state: State | None = None
        self._identity = _identity(folder)
        self._idle: list[sqlite3.Connection] = []
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Let go of the folder; a later view opens it again."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle, self._state = [], None
            if self._copy is not None:
                self._copy.cleanup()
                self._copy = None

    @contextmanager
    def view(self) -> Iterator[View]:
        """A read transaction on a connection of its own.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: the folder cannot be read as an index.
        """
        identity = _identity(self.folder)
        if identity != self._identity:
            self.close()
            self._identity = identity
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        try:
            connection.execute("BEGIN")
            yield View(connection, self._current(connection))
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if self._identity == identity:
                self._idle.append(connection)
            else:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        catalog = self.folder / "catalog.db"
        log = self.folder / "catalog.db-wal"
        if os.access(self.folder, os.W_OK):
            return _open(catalog, "mode=ro")
        # A WAL catalog cannot be opened in a folder one may not write, unless it is promised to stand still.
        if not log.exists() or log.stat().st_size == 0:
            return _open(catalog, "mode=ro&immutable=1")
        with self._lock:
            if self._copy is None:
                self._copy = tempfile.TemporaryDirectory(prefix="likewise-")
                for file in (catalog, log):
                    shutil.copy(file, self._copy.name)
        return _open(Path(self._copy.name) / "catalog.db", "mode=ro")

    def _current(self, connection: sqlite3.Connection) -> State:
        try:
            (generation,) = connection.execute("SELECT value FROM setting WHERE name = 'generation'").fetchone()
            state = self._state
            if state is None or state.generation != int(generation):
                # Not under the lock for others' sake: a reader with a known state must not wait for this one.
                state = self._state = _load(self.folder, connection, state)
        except sqlite3.DatabaseError as error:
            raise IndexDamaged(f"{self.folder / 'catalog.db'}: cannot be read ({error})") from error
        return state


def _open(catalog: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{catalog.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        raise IndexDamaged(f"{catalog}: is not a readable catalog ({error})") from error
    if version > FORMAT_VERSION:
        connection.close()
        raise NewerFormat(
            f"{catalog.parent}: has format {version} and this likewise reads up to {FORMAT_VERSION}: upgrade likewise"
        )
    return connection


def _identity(folder: Path) -> tuple[int, int]:
    try:
        status = (folder / "catalog.db").stat()
    except OSError as error:
        what = "has no catalog.db" if folder.is_dir() else "is not there" if not folder.exists() else "is no folder"
        raise NotAnIndex(f"{folder}: is no index, it {what}; make one with: likewise index {folder} SOURCE") from error
    return status.st_dev, status.st_ino


def _load(folder: Path, connection: sqlite3.Connection, before: State | None) -> State:
    """The state of this transaction; open segments and the rows of the tail are taken over from `before`."""
    settings = dict(connection.execute("SELECT name, value FROM setting"))
    dimensions = int(settings["dimensions"])
    same = before is not None and before.history == settings["history"]
    known = {part.passages.tobytes()[-8:]: part for part in (before.parts if before and same else ())}
    dead = np.fromiter((row[0] for row in connection.execute("SELECT passage_id FROM dead ORDER BY 1")), np.int64)
    parts, sealed = [], 0
    for file, kind, count, size, sha256, stamp, last_id, passages, documents in connection.execute(
        "SELECT file, kind, count, size, sha256, stamp, last_id, passages, documents FROM segment ORDER BY last_id"
    ).fetchall():
        ids = np.frombuffer(passages, "<i8")
        earlier = known.get(passages[-8:])
        if earlier is not None and np.array_equal(earlier.passages, ids) and isinstance(earlier.segment, FaissSegment):
            segment: FaissSegment | PlainSegment = earlier.segment
        else:
            segment = _segment(folder, connection, SegmentFile(file, kind, count, size, sha256, stamp), ids, dimensions)
        alive = None if not len(dead) else ~np.isin(ids, dead, assume_unique=True)
        parts.append(Part(segment, ids, np.frombuffer(documents, "<i8"), alive))
        sealed = max(sealed, last_id)
    tail = connection.execute(
        "SELECT id, document_id, vector FROM passage WHERE id > ? ORDER BY id", (sealed,)
    ).fetchall()
    if tail:
        parts.append(
            Part(
                PlainSegment(from_blobs([row[2] for row in tail], dimensions)),
                np.array([row[0] for row in tail], np.int64),
                np.array([row[1] for row in tail], np.int64),
            )
        )
    (documents_,) = connection.execute("SELECT count(*) FROM document").fetchone()
    (last_document,) = connection.execute("SELECT coalesce(max(id), 0) FROM document").fetchone()
    return State(
        generation=int(settings["generation"]),
        history=settings["history"],
        dimensions=dimensions,
        parts=parts,
        documents=documents_,
        passages=sum(len(part.passages) if part.alive is None else int(part.alive.sum()) for part in parts),
        last_document=last_document,
        fields=known_fields(connection),
    )


def _segment(
    folder: Path, connection: sqlite3.Connection, recorded: SegmentFile, ids: Ids, dimensions: int
) -> FaissSegment | PlainSegment:
    try:
        return FaissSegment(folder / "segments" / recorded.file, recorded)
    except IndexDamaged as error:
        warnings.warn(f"{error}; answering from the catalog until the next writer rebuilds it", stacklevel=2)
    rows: Vector = np.zeros((len(ids), dimensions), np.float32)
    found = connection.execute("SELECT id, vector FROM passage WHERE id BETWEEN ? AND ?", (int(ids[0]), int(ids[-1])))
    for id_, blob in found:
        position = int(np.searchsorted(ids, id_))
        if position < len(ids) and ids[position] == id_:
            rows[position] = np.frombuffer(blob, "<f2")
    return PlainSegment(rows)
