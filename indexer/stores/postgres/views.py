"""One consistent read of an index: a transaction on a connection, and what is kept in memory for its commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import errors, sql

from indexer.errors import IndexDamaged, NotAnIndex
from indexer.filters.tree import Type, Where, render
from indexer.settings import Settings
from indexer.stores.filter_sql import Sql, compile_where
from indexer.stores.port import Ids
from indexer.stores.postgres.address import Address
from indexer.stores.postgres.connections import Connections, DeadlineConnection
from indexer.stores.postgres.filter_sql import FieldIds, PostgresDialect, read_field_types
from indexer.stores.postgres.leftovers import index_names, note_of, unfinished
from indexer.stores.postgres.schema import (
    COMMIT_OF,
    READ_ROW,
    Row,
    key_of,
    require_all_rows,
    require_format,
    require_one_server,
    statement,
)
from indexer.stores.postgres.vectors import blob_of, halves
from indexer.stores.setting_rows import from_rows

_MAX_CACHED_FILTERS = 32

_BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    " SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = 200000;"
)
"""The misspelt name of a setting would only be a warning: tests/indexer/stores/postgres/ reads them back."""

_KEEP_TABLES = "LOCK TABLE {tables}.setting IN ACCESS SHARE MODE;"
"""Keeps the tables of an index from being dropped while they are read, should another index take its place."""

_TRIES = 5

_STREAMS = count()

_NOTHING = sql.SQL("")


@dataclass(frozen=True, slots=True)
class Allowed:
    """How many documents and passages a filter leaves, and as a condition over a row `d` of `document`."""

    documents: int
    passages: int
    condition: Sql | None


@dataclass(frozen=True, eq=False)
class State:
    """What is kept in memory for one commit.

    Attributes:
        row: its row in the registry.
        fields: the types of each field; None where there is no document.
        field_ids: the id of each field, by its name and type.
        allowed: filters that were counted, by their text.
        ids: the documents that a filter leaves (n,), ascending, by its text.
    """

    row: Row
    settings: Settings
    fields: dict[str, frozenset[Type]] | None = None
    field_ids: FieldIds = field(default_factory=dict)
    allowed: dict[str, Allowed] = field(default_factory=dict)
    ids: dict[str, Ids] = field(default_factory=dict)

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
    state: State

    def rows(self, text: str, *parameters: Any) -> list[Any]:
        cursor = self.connection.cursor(binary=True)
        return cursor.execute(statement(text, self.state.row.tables), parameters or None).fetchall()

    def rows_of(self, text: str, values: Sequence[Any]) -> list[Any]:
        return self.rows(text, list(values)) if len(values) else []

    def stream(self, text: str, *parameters: Any, size: int = 1000) -> Iterator[Any]:
        with self.connection.cursor(f"stream {next(_STREAMS)}", binary=True) as cursor:
            cursor.itersize = size
            cursor.execute(statement(text, self.state.row.tables), parameters or None)
            yield from cursor

    def key_of(self, uri: str) -> bytes:
        return key_of(uri)

    def blob_of(self, vector: bytes) -> bytes:
        return blob_of(vector)

    def halves(self, vectors: Sequence[bytes]) -> NDArray[np.float16]:
        return halves(vectors, self.state.settings.dimensions)

    def damage(self, problem: str) -> IndexDamaged:
        return IndexDamaged(problem)

    def require_ranked_by(self, passages: Ids, vectors: Sequence[bytes]) -> None:
        """Do nothing: the stored vectors are those that the server ranks by."""

    def search_as_wide_as(self, ef_search: int) -> None:
        """Set how many neighbours a search of the graph keeps in view, for the rest of the transaction."""
        if self.connection.ef_search == ef_search:
            return
        self.connection.execute(f"SET LOCAL hnsw.ef_search = {int(ef_search)}")
        self.connection.ef_search = ef_search

    def compile(self, where: Where) -> Sql:
        return compile_where(where, self.state.fields, PostgresDialect(self.state.field_ids))

    def allowed(self, where: Where | None) -> Allowed:
        """Return what a filter leaves, counted at its first use in this state."""
        if where is None:
            return Allowed(self.state.row.documents, self.state.row.passages, None)
        key = render(where)  # trees as keys would not tell `draft = 1` from `draft = true`
        if (known := self.state.allowed.get(key)) is not None:
            return known
        condition = self.compile(where)
        ((documents, passages),) = self.rows(
            f"SELECT count(*), coalesce(sum(d.passages), 0)::bigint FROM {{tables}}.document d WHERE {condition.text}",
            *condition.parameters,
        )
        limited = documents != self.state.row.documents
        allowed = Allowed(documents, passages, condition if limited else None)
        _keep(self.state.allowed, key, allowed)
        return allowed

    def document_ids(self, where: Where) -> Ids:
        """Return the ids of the documents that a filter leaves (n,), ascending."""
        key = render(where)
        if (known := self.state.ids.get(key)) is not None:
            return known
        condition = self.compile(where)
        ((packed,),) = self.rows(  # one value in binary: a row for each id would take ten times as long
            f"SELECT string_agg(int8send(d.id), ''::bytea) FROM {{tables}}.document d WHERE {condition.text}",
            *condition.parameters,
        )
        ids = np.sort(np.frombuffer(packed or b"", ">i8").astype(np.int64))
        _keep(self.state.ids, key, ids)
        return ids


def _keep(cache: dict[str, Any], key: str, value: Any) -> None:
    if len(cache) >= _MAX_CACHED_FILTERS:  # another thread may clear it at the same time
        cache.clear()
    cache[key] = value


class Views:
    """Consistent views of an index, for any number of threads."""

    def __init__(self, address: Address, connections: Connections) -> None:
        self.address, self.connections = address, connections
        self._state: State | None = None

    @contextmanager
    def view(self) -> Iterator[View]:
        """Read in one transaction.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
            StorageError: the server cannot be asked.
        """
        with self.connections.begun(self._begin) as (connection, state):
            yield View(connection, state)
            connection.execute("COMMIT")

    def _begin(self, connection: DeadlineConnection) -> State:
        """Begin the transaction of a view, in one round trip where the index is as it was at the last."""
        for attempt in range(_TRIES):
            known = self._state
            statements = [sql.SQL(_BEGIN)]
            if known is not None:
                statements.append(statement(_KEEP_TABLES, known.row.tables))  # type: ignore[arg-type]
                if known.row.ef_search is not None:
                    statements.append(sql.SQL(f"SET LOCAL hnsw.ef_search = {int(known.row.ef_search)};"))
            connection.ef_search = None if known is None else known.row.ef_search
            try:
                return self._current_state(connection, sql.Composed(statements), known)
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                # The index was replaced, and its tables dropped, since this process or this transaction last saw it.
                connection.rollback()
                self._state = None
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def _current_state(self, connection: DeadlineConnection, begin: sql.Composed, known: State | None) -> State:
        tables = None if known is None else known.row.tables
        row = read_row(connection, self.address, begin, tables)
        if tables != row.tables:
            connection.execute(statement(_KEEP_TABLES, row.tables))
            require_one_server(connection, self.address, row.tables)
            row = replace(row, commit=commit_of(connection, row.tables, row.generation))
        state = self._state
        if state is not None and state.row == row:
            return state
        require_format(row)
        require_all_rows(connection, self.address, row.tables)
        rows = dict(connection.execute(statement("SELECT name, value FROM {tables}.setting", row.tables)).fetchall())
        try:
            settings = from_rows(rows)
        except (KeyError, TypeError, ValueError) as error:
            raise IndexDamaged(f"{self.address.shown}: its settings are damaged ({error}); restore a backup") from error
        loaded = State(row, settings)
        if row.documents:
            fields, ids = read_field_types(View(connection, loaded).rows)
            loaded = replace(loaded, fields=fields, field_ids=ids)
        newest = self._state
        if newest is None or newest.row.history != row.history or newest.row.generation <= row.generation:
            self._state = loaded
        return loaded


def commit_of(connection: DeadlineConnection, tables: str, generation: int) -> int | None:
    """Return what tells a commit from others of its number; None where that is not known."""
    query = statement(f"SELECT {COMMIT_OF}", tables, generation=sql.Literal(generation))
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def read_row(
    connection: DeadlineConnection, address: Address, begin: sql.Composable = _NOTHING, tables: str | None = None
) -> Row:
    """Return the index's row in the registry. Raises NotAnIndex where there is none.

    Args:
        begin: statements to be run before, in the same round trip.
        tables: the schema whose commit is read too, if the index still has it.
    """
    commit: sql.Composable = sql.SQL("NULL")
    if tables is not None:
        commit = statement(COMMIT_OF, tables, generation=sql.SQL("i.generation"))
    try:
        cursor = connection.execute(begin + sql.SQL(READ_ROW).format(commit, sql.Literal(address.index)))
        while cursor.nextset():
            pass  # the row is in the last of the results
        found = cursor.fetchone()
        left, names = ([], []) if found else (unfinished(connection, address.index), index_names(connection))
    except errors.UndefinedTable as error:
        if "likewise.index" not in str(error):
            raise  # the tables of the index
        found, left, names = None, [], []
    if found is None:
        notes = "".join(f"; {note_of(copy, address)}" for copy in left)
        others = f"; its database has {', '.join(names)}" if names else ""
        raise NotAnIndex(f"{address.shown}: is not an index; likewise index creates one there{others}{notes}")
    return Row(*found)
