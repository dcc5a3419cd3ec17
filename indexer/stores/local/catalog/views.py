"""The catalog as readers see it: one read transaction per question, and what is kept in memory between questions.

It needs only sqlite3 and numpy. A commit is noticed by the setting `generation`, a replaced folder by its inode.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.deadline import NEVER, Deadline
from indexer.errors import IndexDamaged, StorageError
from indexer.records import Vector
from indexer.settings import Settings
from indexer.stores.fields.field_types import FieldTypes
from indexer.stores.fields.filter_cache import FilterCache
from indexer.stores.local.catalog.connections import (
    CatalogConnection,
    Identity,
    IdleConnections,
    copy_catalog,
    identity_of,
    open_catalog,
    read_error,
    with_descriptors,
)
from indexer.stores.local.catalog.filter_sql import read_field_types
from indexer.stores.local.catalog.generation import Generation, read_generation
from indexer.stores.local.catalog.moves import recorded_home
from indexer.stores.local.segments.faiss_segment import FaissSegment, PlainSegment
from indexer.stores.local.segments.files import Positions, SegmentFile
from indexer.stores.local.segments.masks import AllowedRows
from indexer.stores.port import Ids
from indexer.stores.setting_rows import from_rows
from indexer.stores.vectors import damage, from_blobs, half_rows, to_float32

_BOUND_VALUES = 500
"""Maximum values in one statement. SQLite takes more, but is not faster with more."""

_NO_IDS: Ids = np.empty(0, np.int64)


class Part(NamedTuple):
    """Some of the passages: the passages of a segment, or of the tail, whose passages are in no segment yet.

    Attributes:
        dead: positions (m,) whose passage no longer exists.
        file: the segment's name; empty for the tail, and for rows of the catalog that replace a damaged segment.
    """

    segment: FaissSegment | PlainSegment
    dead: Ids
    file: str = ""

    @property
    def positions(self) -> Positions:
        return self.segment.positions


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Lineage:
    """The states of a catalog that are built on the same word index. What readers keep of that index is tied to it.

    Attributes:
        catalog: device and inode.
        words: the name of the word index; empty if there is no word index yet.
    """

    catalog: Identity
    history: str
    words: str


@dataclass(slots=True, weakref_slot=True, eq=False)
class CommitState:
    """One generation of the catalog in memory. It is shared by threads, and replaced instead of being changed.

    Attributes:
        catalog: the file that it was read from (device, inode), because a restored copy has the same generations.
        parts: the segments in order of their ids, then the tail.
        sealed: the highest passage id that a segment may hold.
        damaged: a segment cannot be used, and its rows are read from the catalog.
        last_document: the highest document id ever given.
        lost: number of acknowledged commits that a writer has found missing and no repair has confirmed.
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
    last_document: int
    fields: FieldTypes
    lineage: Lineage
    lost: int = 0
    notes: tuple[str, ...] = ()
    allowed: FilterCache[AllowedRows] = field(default_factory=FilterCache)

    @property
    def version(self) -> tuple[Identity, str, int]:
        return self.catalog, self.history, self.generation

    def passages_of(self, documents: Ids) -> tuple[Ids, Ids]:
        """Return every passage of these documents (n,), in order of the ids, and the document of each (n,)."""
        passages, owners = [_NO_IDS], [_NO_IDS]
        for part in self.parts:
            positions = np.sort(part.positions.of_documents(documents))
            if len(part.dead):
                positions = np.setdiff1d(positions, part.dead, assume_unique=True)
            passages.append(part.positions.passages[positions])
            owners.append(part.positions.documents[positions])
        return np.concatenate(passages), np.concatenate(owners)

    def vectors_of(self, passages: Ids) -> Vector:
        """Return the vectors of passages (n, dimensions), float32, in the order of their ids (n,).

        Raises:
            IndexDamaged: a passage is in none of the parts.
        """
        rows, held = np.empty((len(passages), self.dimensions), np.float32), 0
        for part in self.parts:
            ids = part.positions.passages
            positions = np.minimum(ids.searchsorted(passages), len(ids) - 1)
            of_part = ids[positions] == passages
            if of_part.all():
                return part.segment.rows(positions)
            rows[of_part] = part.segment.rows(positions[of_part])
            held += int(np.count_nonzero(of_part))
        if held < len(passages):
            raise damage("catalog.db: does not agree with its segments")
        return rows


@dataclass(frozen=True, slots=True)
class View:
    """One consistent read of `Rows`: a connection inside its transaction, and the state of the same commit.

    Attributes:
        lost: how many acknowledged commits are missing, because the catalog's log was damaged or removed.
    """

    connection: CatalogConnection
    state: CommitState
    lost: int

    def rows(self, statement: str, *parameters: Any) -> list[Any]:
        bound = [json.dumps(each) if isinstance(each, list) else each for each in parameters]
        return self.connection.execute(self._statement(statement), bound).fetchall()

    def rows_of(self, statement: str, values: Sequence[Any]) -> list[Any]:
        batches = (values[start : start + _BOUND_VALUES] for start in range(0, len(values), _BOUND_VALUES))
        return [
            row
            for batch in batches
            for row in self.connection.execute(self._statement(statement, len(batch)), list(batch))
        ]

    def stream(self, statement: str, *parameters: Any) -> Iterator[Any]:
        yield from self.connection.execute(self._statement(statement), parameters)

    def _statement(self, statement: str, values: int = 0) -> str:
        return in_sqlite(statement, values, "uri" if self.connection.move is None else "stored")

    def key_of(self, uri: str) -> str | None:
        return uri if self.connection.move is None else self.connection.move.stored(uri)

    def blob_of(self, vector: bytes) -> bytes:
        return vector

    def halves(self, vectors: Sequence[bytes]) -> NDArray[np.float16]:
        return half_rows(vectors, self.state.dimensions)

    def damage(self, problem: str) -> IndexDamaged:
        return damage(f"catalog.db: {problem}")

    def require_ranked_by(self, passages: Ids, vectors: Sequence[bytes]) -> None:
        if not np.array_equal(self.state.vectors_of(passages), to_float32(self.halves(vectors))):
            raise self.damage("does not agree with its segments")


_TEXTS = " JOIN document_text t ON t.document_id = d.id"


@lru_cache(512)
def in_sqlite(statement: str, values: int, key: str) -> str:
    """Return a statement as SQLite reads it.

    Args:
        statement: in the form of `indexer.stores.reading.view`.
        values: number of values for ` = ANY(%s)`.
        key: the column by which a uri is found.
    """
    marks = ",".join("?" * values)
    statement = statement.replace(" = ANY(%s)", f" IN ({marks})")
    statement = statement.replace(" = SOME(%s)", " IN (SELECT value FROM json_each(?))").replace("%s", "?")
    statement = statement.replace("{tables}.", "")  # a temporary view may have the name of a table (moves.py)
    return statement.format(key=key, number="value", text="value", floor="", t="t", texts=_TEXTS)


class Views:
    """Consistent views of an index folder, for any number of threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process, self._lock = os.getpid(), threading.Lock()
        self._state: CommitState | None = None
        self._lineage: Lineage | None = None
        self._identity = identity_of(folder)
        self._idle = IdleConnections()  # replaced when the connections that are lent may not be used again
        self._inherited: list[CatalogConnection] = []
        self._copy: tuple[Path, Callable[[], object]] | None = None

    def close(self) -> None:
        """Release the folder; a later view opens it again."""
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
    def view(self, deadline: Deadline = NEVER) -> Iterator[View]:
        """Read in one transaction, on a connection that nothing else uses during the call.

        Raises:
            DeadlinePassed: the time of the question is over.
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: the folder cannot be read as an index.
        """
        deadline.check()
        if self._process != os.getpid():
            self._after_fork()
        process = os.getpid()
        while True:
            connection, identity, idle = self._lease()
            try:
                # Before the transaction: a commit between the two must not look as if it were missing.
                acknowledged = read_generation(self.folder)
                connection.execute("BEGIN")
                if recorded_home(connection) == connection.home:  # otherwise it translates what is not so stored
                    state = self._current_state(connection, identity)
                    if not state.damaged or identity_of(self.folder)[:2] == identity[:2]:
                        break
            except BaseException as error:
                connection.close()
                idle.take_back(None)
                if isinstance(error, sqlite3.DatabaseError):
                    raise read_error(self.folder / "catalog.db", error) from error
                raise
            # Another folder has just replaced this folder, and the replaced files have another path now; or a writer
            # has recorded where the index is now.
            connection.close()
            idle.take_back(None)
        try:
            connection.deadline = deadline
            yield View(connection, state, state.lost + self._missing_commits(acknowledged, state))
            connection.deadline = NEVER
            if (
                process != os.getpid()
            ):  # a forked child leaves the block with its parent's connection, which is not its to use
                self._inherited.append(connection)
                return
            connection.execute("ROLLBACK")
        except BaseException as error:
            if process != os.getpid():
                self._inherited.append(connection)
                raise
            connection.close()
            idle.take_back(None)
            if isinstance(error, sqlite3.DatabaseError):
                deadline.check()  # SQLite says that it was interrupted
                raise read_error(self.folder / "catalog.db", error) from error
            raise
        idle.take_back(connection)

    def _missing_commits(self, acknowledged: Generation | None, state: CommitState) -> int:
        """Return how many commits were acknowledged before this transaction began and are not in it."""
        if acknowledged is None or acknowledged.history != state.history or acknowledged.number <= state.generation:
            return 0
        # The file may belong to a folder that has just replaced this folder; in a read-only folder, the connection may
        # be of the files before the last commit.
        return acknowledged.number - state.generation if identity_of(self.folder) == state.catalog else 0

    def _lease(self) -> tuple[CatalogConnection, Identity, IdleConnections]:
        """Return a connection to the present catalog, the catalog's identity, and where to return the connection."""
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
                if identity_of(self.folder)[:2] == identity[:2]:  # it was not replaced in between
                    return connection, identity, idle
            except BaseException:
                if connection is not None:
                    connection.close()
                idle.take_back(None)
                raise
            connection.close()
            idle.take_back(None)

    def _after_fork(self) -> None:
        """Keep the state in a forked child. Its parent's idle connections were taken away (connections.py)."""
        self._process, self._lock = os.getpid(), threading.Lock()

    def _connect(self) -> CatalogConnection:
        catalog = self.folder / "catalog.db"
        log = self.folder / "catalog.db-wal"
        if os.access(self.folder, os.W_OK):
            return open_catalog(catalog, "mode=ro", self.folder)
        # SQLite opens a WAL catalog in a read-only folder only on the promise that it does not change. Changes are
        # seen by its times (`identity_of`), and it is opened again.
        if not log.exists() or log.stat().st_size == 0:
            return open_catalog(catalog, "mode=ro&immutable=1", self.folder)
        with suppress(IndexDamaged, StorageError):  # while a writer works, its shared memory can be read
            return open_catalog(catalog, "mode=ro", self.folder)
        with self._lock:
            if self._copy is None:
                self._copy = copy_catalog(self, self.folder)
        return open_catalog(self._copy[0] / "catalog.db", "mode=ro", self.folder)

    def _current_state(self, connection: sqlite3.Connection, identity: Identity) -> CommitState:
        try:
            key, state = (identity, *_generation(connection)), self._state
            if state is not None and (state.catalog, state.generation, state.history) == key:
                return state
            # Outside the lock: a reader whose state is loaded must not wait for the loading thread.
            lineage = self._lineage
            try:
                loaded = with_descriptors(lambda: _load(self.folder, connection, identity, state, lineage))
            except IndexDamaged:
                connection.execute("ROLLBACK")
                connection.execute("BEGIN")
                if (identity, *_generation(connection)) != key:  # a writer had replaced the segment
                    return self._current_state(connection, identity)
                loaded = _load(self.folder, connection, identity, state, lineage, replace_damaged=True)
        except (KeyError, TypeError, ValueError) as error:
            raise read_error(self.folder / "catalog.db", error) from error
        with self._lock:
            newest = self._state
            same_index = newest and (newest.catalog, newest.history) == (identity, loaded.history)
            # The state of a replaced folder would never be asked for again, and another thread may have a later one.
            if identity == self._identity and not (same_index and newest and newest.generation > loaded.generation):
                self._state, self._lineage = loaded, loaded.lineage
        return loaded


def _generation(connection: sqlite3.Connection) -> tuple[int, str]:
    """Return the commit that is read, and the identity of its index: two indexes may have the same number of
    commits."""
    names = "SELECT value FROM setting WHERE name IN ('generation', 'history') ORDER BY name"
    (generation,), (history,) = connection.execute(names)
    return int(generation), history


def _lineage(connection: sqlite3.Connection, catalog: Identity, history: str, earlier: Lineage | None) -> Lineage:
    """Return the lineage of this transaction: the earlier object if the lineage is still the same."""
    row = connection.execute("SELECT name FROM word_index").fetchone()
    words = row[0] if row else ""
    if earlier is not None and (earlier.catalog, earlier.history, earlier.words) == (catalog, history, words):
        return earlier
    return Lineage(catalog, history, words)


def _load(
    folder: Path,
    connection: sqlite3.Connection,
    identity: Identity,
    earlier: CommitState | None,
    lineage: Lineage | None,
    *,
    replace_damaged: bool = False,
) -> CommitState:
    """Return the state of this transaction. Open segments and rows of the tail are taken over from `earlier`.

    Args:
        replace_damaged: read the rows of a damaged segment from the catalog.

    Raises:
        IndexDamaged: a segment cannot be used, and `replace_damaged` is not set.
    """
    rows = dict(connection.execute("SELECT name, value FROM setting"))
    settings = from_rows(rows)
    dimensions, generation, history = settings.dimensions, int(rows["generation"]), rows["history"]
    if earlier and (earlier.catalog, earlier.history) != (identity, history):
        earlier = None
    open_parts = {part.file: part for part in earlier.parts} if earlier else {}
    parts, notes, sealed = list[Part](), list[str](), 0
    for *recorded, first_id, last_id in connection.execute(
        "SELECT file, kind, count, size, sha256, stamp, parameters, first_id, last_id FROM segment ORDER BY first_id"
    ).fetchall():
        file, ids = SegmentFile(*recorded), (first_id, last_id)
        try:
            parts.append(_part(folder, connection, file, ids, open_parts.get(file.file)))
        except IndexDamaged as error:
            if not replace_damaged:
                raise
            notes.append(f"{error}; answering from the catalog until the next writer rebuilds it")
            parts.append(Part(_read_rows(connection, "id BETWEEN ? AND ?", ids, dimensions), _NO_IDS))
        sealed = last_id
    # Another thread may be at a later commit: its tail may hold rows that this transaction does not have.
    is_past = earlier is not None and earlier.sealed == sealed and earlier.generation <= generation
    tail = _tail(connection, sealed, earlier.tail if earlier and is_past else None, dimensions)
    if len(tail.vectors):
        parts.append(Part(tail, _NO_IDS))
    # The highest id ever given, not the highest one alive: segments still hold rows of removed documents.
    (last_document,) = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'document'"
    ).fetchone()
    return CommitState(
        catalog=identity,
        generation=generation,
        history=history,
        dimensions=dimensions,
        parts=tuple(parts),
        tail=tail if len(tail.vectors) else None,
        sealed=sealed,
        damaged=bool(notes),
        settings=settings,
        documents=int(rows["documents"]),
        passages=sum(len(part.positions.passages) - len(part.dead) for part in parts),
        last_document=last_document,
        fields=read_field_types(connection),
        lineage=_lineage(connection, identity[:2], history, lineage),
        lost=int(rows.get("lost", 0)),
        notes=tuple(notes),
    )


def _part(
    folder: Path, connection: sqlite3.Connection, recorded: SegmentFile, ids: tuple[int, int], earlier: Part | None
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


def _tail(connection: sqlite3.Connection, sealed: int, earlier: PlainSegment | None, dimensions: int) -> PlainSegment:
    """Return the rows after the last sealed id: the remaining rows of the earlier tail, and the new rows."""
    if earlier is None:
        return _read_rows(connection, "id > ?", (sealed,), dimensions)
    ids = earlier.positions.passages
    last = int(ids[-1])
    new = _read_rows(connection, "id > ?", (last,), dimensions)
    alive = connection.execute("SELECT id FROM passage WHERE id > ? AND id <= ? ORDER BY id", (sealed, last)).fetchall()
    if len(alive) < len(ids):
        kept = np.searchsorted(ids, np.array(alive, np.int64).reshape(-1))
        earlier = PlainSegment(earlier.vectors[kept], Positions(ids[kept], earlier.positions.documents[kept], None))
    if not len(new.vectors):
        return earlier
    passages = np.concatenate([earlier.positions.passages, new.positions.passages])
    documents = np.concatenate([earlier.positions.documents, new.positions.documents])
    return PlainSegment(np.concatenate([earlier.vectors, new.vectors]), Positions(passages, documents, None))


def _read_rows(
    connection: sqlite3.Connection, condition: str, parameters: tuple[int, ...], dimensions: int
) -> PlainSegment:
    rows = connection.execute(
        f"SELECT id, document_id, vector FROM passage WHERE {condition} ORDER BY id", parameters
    ).fetchall()
    ids = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
    vectors = from_blobs([row[2] for row in rows], dimensions)
    return PlainSegment(vectors, Positions(ids[:, 0].copy(), ids[:, 1].copy(), None))
