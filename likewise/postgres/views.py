"""One consistent read of an index: a transaction on a connection, and what is kept in memory for its commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import errors, sql

from indexer.deadline import NEVER, Deadline
from indexer.errors import IndexDamaged, Message, NotAnIndex, in_shell
from indexer.filters.tree import Type
from indexer.settings import Settings
from indexer.stores.commits import settings_of
from indexer.stores.fields.filter_cache import FilterCache
from indexer.stores.port import Ids
from indexer.stores.vectors import damage
from likewise.postgres import citus, schema
from likewise.postgres.address import Address
from likewise.postgres.connections import Connections, DeadlineConnection
from likewise.postgres.filter_sql import FieldIds, read_field_types
from likewise.postgres.leftovers import index_names, note_of, unfinished
from likewise.postgres.vectors import blob_of, halves

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS = ("SET LOCAL hnsw.iterative_scan = strict_order", "SET LOCAL hnsw.max_scan_tuples = 200000")
"""Begins a transaction for reading. A misspelt setting would only cause a warning, so tests/parts/postgres/
read the settings back."""

_KEEP_TABLES = "LOCK TABLE {tables}.setting IN ACCESS SHARE MODE"
"""Keeps the tables of an index from being dropped while they are read, if another index replaces this index."""

_TRIES = 5

_STREAMS = count()


@dataclass(frozen=True, slots=True)
class Allowed:
    """The numbers of documents and passages that a filter leaves, and whether these are fewer than all."""

    documents: int
    passages: int
    limited: bool


@dataclass(frozen=True, eq=False)
class CommitState:
    """What is kept in memory for one commit.

    Attributes:
        row: its row in the registry.
        distributed: whether its tables are on several nodes.
        fields: the types of each field; None if there is no document.
        field_ids: the id of each field, by its name and type.
        allowed: filters that were counted.
        ids: the documents that a filter leaves (n,), ascending.
    """

    row: schema.Row
    settings: Settings
    distributed: bool = False
    fields: dict[str, frozenset[Type]] | None = None
    field_ids: FieldIds = field(default_factory=dict)
    allowed: FilterCache[Allowed] = field(default_factory=FilterCache)
    ids: FilterCache[Ids] = field(default_factory=FilterCache)

    @property
    def documents(self) -> int:
        return self.row.documents

    @property
    def passages(self) -> int:
        return self.row.passages

    @property
    def history(self) -> str:
        return self.row.history

    @property
    def version(self) -> tuple[str, int, int | None]:
        return self.row.history, self.row.generation, self.row.commit


@dataclass(frozen=True, slots=True)
class View:
    """One consistent read of `Rows`: a connection inside its transaction, and the state of the same commit."""

    connection: DeadlineConnection
    state: CommitState

    def rows(self, text: str, *parameters: Any) -> list[Any]:
        cursor = self.connection.cursor(binary=True)
        return cursor.execute(schema.statement(text, self.state.row.tables), parameters or None).fetchall()

    def rows_of(self, text: str, values: Sequence[Any]) -> list[Any]:
        return self.rows(text, list(values)) if len(values) else []

    def stream(self, text: str, *parameters: Any) -> Iterator[Any]:
        with self.connection.cursor(f"stream {next(_STREAMS)}", binary=True) as cursor:
            cursor.itersize = 500
            cursor.execute(schema.statement(text, self.state.row.tables), parameters or None)
            yield from cursor

    def key_of(self, uri: str) -> bytes:
        return schema.key_of(uri)

    def blob_of(self, vector: bytes) -> bytes:
        return blob_of(vector)

    def halves(self, vectors: Sequence[bytes]) -> NDArray[np.float16]:
        return halves(vectors, self.state.settings.dimensions)

    def damage(self, problem: str) -> IndexDamaged:
        return damage(problem)

    def require_ranked_by(self, passages: Ids, vectors: Sequence[bytes]) -> None:
        """Do nothing: the server ranks by the stored vectors."""

    def passage_ids(self) -> Ids:
        return unpacked(self.rows("SELECT string_agg(int8send(id), ''::bytea) FROM {tables}.passage"))

    def search_as_wide_as(self, ef_search: int) -> None:
        """Set the width of the graph search for the rest of the transaction."""
        if self.connection.ef_search == ef_search:
            return
        self.connection.execute(f"SET LOCAL hnsw.ef_search = {int(ef_search)}")
        self.connection.ef_search = ef_search


def unpacked(rows: list[Any]) -> Ids:
    """Return ids (n,), ascending, that were read as one value. One row per id would take ten times as long."""
    ((packed,),) = rows
    return np.sort(np.frombuffer(packed or b"", ">i8").astype(np.int64))


class Views:
    """Consistent views of an index, for any number of threads."""

    def __init__(self, address: Address, connections: Connections) -> None:
        self.address, self.connections = address, connections
        self._state: CommitState | None = None
        self._distributed: dict[str, bool] = {}

    @contextmanager
    def view(self, deadline: Deadline = NEVER) -> Iterator[View]:
        """Read in one transaction.

        Raises:
            DeadlinePassed: the time of the question is over.
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: there is no index that can be read.
            IndexUnavailable: the server cannot be asked.
        """
        deadline.check()
        with self.connections.begun(lambda connection: self._begin(connection, deadline)) as (connection, state):
            connection.deadline = deadline
            yield View(connection, state)
            connection.deadline = NEVER
            connection.execute("COMMIT")

    def is_distributed(self, connection: DeadlineConnection, tables: str) -> bool:
        """Return whether the tables of an index are on several nodes, which never changes."""
        if tables not in self._distributed:
            self._distributed[tables] = citus.is_distributed(connection, tables)
        return self._distributed[tables]

    def _begin(self, connection: DeadlineConnection, deadline: Deadline) -> CommitState:
        """Begin the transaction of a view, in one round trip if the index has not changed since the last view."""
        replaced, since = 0, time.monotonic()
        last: object = None
        while True:
            try:
                state, seen = self._current_state(connection, self._state)
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                # The index was replaced, and its tables dropped, since this process or this transaction last saw it.
                connection.rollback()
                self._state = None
                replaced += 1
                if replaced == _TRIES:
                    raise
                continue
            if state is not None:
                return state
            connection.rollback()  # a commit was being completed on the nodes
            deadline.check()
            if seen != last:
                last, since = seen, time.monotonic()
            elif time.monotonic() > since + citus.STUCK_SECONDS:
                raise citus.unfinished_commit(self.address)
            else:
                time.sleep(schema.POLL_SECONDS)

    def _current_state(
        self, connection: DeadlineConnection, known: CommitState | None
    ) -> tuple[CommitState | None, object]:
        """Begin a transaction; return its state, or None if a node does not show the commit of the registry yet.

        Also returns the number of the commit that the registry and each shard show.
        """
        tables = None if known is None else known.row.tables
        distributed = tables is not None and self.is_distributed(connection, tables)
        texts = (_BEGIN, *(citus.BEGIN if distributed else ()), *_SETTINGS)
        begin: list[sql.SQL | sql.Composed] = [sql.SQL(text) for text in texts]
        if known is not None:
            begin.append(schema.statement(_KEEP_TABLES, known.row.tables))
            if known.row.ef_search is not None:
                begin.append(sql.SQL(f"SET LOCAL hnsw.ef_search = {int(known.row.ef_search)}"))
        connection.ef_search = None if known is None else known.row.ef_search
        row, marks = _read(connection, self.address, begin, tables, distributed=distributed)
        if tables != row.tables:
            connection.execute(schema.statement(_KEEP_TABLES, row.tables))
            row = replace(row, commit=commit_of(connection, row.tables, row.generation))
            if self.is_distributed(connection, row.tables):
                for text in (*citus.BEGIN, *_SETTINGS):
                    connection.execute(sql.SQL(text))
                connection.ef_search = None
                marks = connection.execute(schema.statement(citus.MARKS, row.tables)).fetchall()
        if any(mark != row.generation for (mark,) in marks):
            return None, (row.generation, sorted(marks))
        return self._state_of(connection, row), None

    def _state_of(self, connection: DeadlineConnection, row: schema.Row) -> CommitState:
        state = self._state
        if state is not None and state.row == row:
            return state
        schema.require_all_rows(connection, self.address, row.tables)
        rows = dict(
            connection.execute(schema.statement("SELECT name, value FROM {tables}.setting", row.tables)).fetchall()
        )
        schema.require_format(row, self.address, rows)
        settings = settings_of(self.address.shown, rows)
        loaded = CommitState(row, settings, self.is_distributed(connection, row.tables))
        if row.documents:
            fields, ids = read_field_types(View(connection, loaded).rows, distributed=loaded.distributed)
            loaded = replace(loaded, fields=fields, field_ids=ids)
        newest = self._state
        if newest is None or newest.row.history != row.history or newest.row.generation <= row.generation:
            self._state = loaded
        return loaded


def commit_of(connection: DeadlineConnection, tables: str, generation: int) -> int | None:
    """Return the random number that distinguishes a commit from others of its number; None if it is unknown."""
    query = schema.statement(f"SELECT {schema.COMMIT_OF}", tables, generation=sql.Literal(generation))
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def read_row(connection: DeadlineConnection, address: Address) -> schema.Row:
    """Return the index's row in the registry. Raises NotAnIndex if there is no row."""
    return _read(connection, address)[0]


def _read(
    connection: DeadlineConnection,
    address: Address,
    begin: Sequence[sql.SQL | sql.Composed] = (),
    tables: str | None = None,
    *,
    distributed: bool = False,
) -> tuple[schema.Row, list[tuple[int]]]:
    """Return the index's row in the registry, and the number of the commit that each of its shards shows.

    Args:
        begin: statements to be run before, in the same round trip.
        tables: the schema whose commit is read too, if the index still has it.
        distributed: whether `tables` are on several nodes; otherwise no shard is read.

    Raises:
        NotAnIndex: there is no row.
    """
    commit: sql.Composable = sql.SQL("NULL")
    if tables is not None:
        commit = schema.statement(schema.COMMIT_OF, tables, generation=sql.SQL("i.generation"))
    query = sql.SQL(schema.READ_ROW).format(commit, sql.Literal(address.index))
    marks = []
    try:
        if distributed and tables is not None:  # Citus would send a string of several statements to the nodes
            with connection.pipeline():
                for each in begin:
                    connection.execute(each)
                cursor = connection.execute(query)
                shards = connection.execute(schema.statement(citus.MARKS, tables))
            marks = shards.fetchall()
        else:
            cursor = connection.execute(sql.SQL("; ").join([*begin, query]))
            while cursor.nextset():
                pass  # the row is in the last of the results
        found = cursor.fetchone()
        left, names = ([], []) if found else (unfinished(connection, address.index), index_names(connection))
    except errors.UndefinedTable as error:
        if "likewise.index" not in str(error):
            raise  # the tables of the index
        found, left, names = None, [], []
    if found is None:
        notes = "".join(f"; {in_shell(note_of(copy, address))}" for copy in left)
        others = f"; its database has {', '.join(names)}" if names else ""
        raise NotAnIndex(
            Message(f"{address.shown}: is not an index{others}", f"; likewise index creates one there{notes}")
        )
    return schema.Row(*found), marks
