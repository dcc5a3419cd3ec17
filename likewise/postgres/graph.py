"""The graph over the passages of an index: a new graph is built while the old one is used, and the search is as narrow
as the recall allows.

Questions and writers continue during the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from psycopg import errors, sql

from indexer.records import Vector
from indexer.settings import DEFAULT_RECALL
from indexer.stores.port import Ranking
from indexer.stores.reading.dense import rank
from indexer.stores.reading.document_rows import vectors_by_id
from indexer.stores.reading.recall import NEIGHBOURS, measure_recall
from likewise.postgres.connections import DeadlineConnection
from likewise.postgres.schema import Row, statement
from likewise.postgres.selection import PostgresSelection
from likewise.postgres.views import View, Views

_WIDTHS = (40, 60, 80, 100, 125, 150, 175, 200, 225, 250, 300, 400, 600, 800, 1000)
"""Widths of the search (ef_search). The first width that reaches the wanted recall is used."""

WIDTH_UNTUNED = 100
"""Width of the search before a width is chosen."""

_EF_CONSTRUCTION = 128
"""Twice pgvector's default. Building takes twice as long, but each question needs only two thirds of the width for the
same recall (100,000 passages: 200 instead of 300)."""

_TUNING_QUESTIONS = 200
_BUILD_MEMORY_KB = 2_000_000
"""Maximum memory for building a graph if the server's own limit is lower. A graph that does not fit is built many times
slower (pgvector's own advice)."""

_GRAPHS = ("passage_graph", "passage_graph_new", "passage_graph_old")


def build(connection: DeadlineConnection, row: Row, dimensions: int) -> bool:
    """Build the graph again; return False if another process is building it."""
    with _alone(connection, row.tables) as free:
        if free:
            _build(connection, row.tables, row.passages, dimensions)
    return free


def drop(connection: DeadlineConnection, row: Row) -> None:
    """Drop the graph, unless another process is building it."""
    with _alone(connection, row.tables) as free:
        for name in _GRAPHS if free else ():
            connection.execute(_drop(name, row.tables))


def narrowest(views: Views) -> int:
    """Return the narrowest width that reaches the wanted recall."""
    right: dict[bytes, Ranking] = {}
    with views.view() as view:
        wanted = view.state.settings.recall or DEFAULT_RECALL
        rows = _some_vectors(view, 3 * _TUNING_QUESTIONS)
        for ef_search in _WIDTHS:
            narrowed = replace(view, state=replace(view.state, row=replace(view.state.row, ef_search=ef_search)))

            def ask(vector: Vector, exact: bool, narrowed: View = narrowed) -> Ranking:
                if not exact:
                    return rank(PostgresSelection(narrowed, None), vector, NEIGHBOURS, "passage", False)
                key = vector.tobytes()  # every width is asked the same
                if key not in right:
                    right[key] = rank(PostgresSelection(view, None), vector, NEIGHBOURS, "passage", True)
                return right[key]

            if measure_recall(rows, ask, _TUNING_QUESTIONS).recall >= wanted:
                return ef_search
    return _WIDTHS[-1]


@contextmanager
def _alone(connection: DeadlineConnection, tables: str) -> Iterator[bool]:
    """Hold the lock of the processes that build the graph."""
    key = (0x67726170, tables)  # "grap"
    row = connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", key).fetchone()
    try:
        yield row == (True,)
    finally:
        if row == (True,) and not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", key)


def _build(connection: DeadlineConnection, tables: str, passages: int, dimensions: int) -> None:
    memory = min(_BUILD_MEMORY_KB, 64_000 + passages * (2 * dimensions + 2000) // 1000)
    connection.execute(
        "SELECT set_config('maintenance_work_mem',"
        " greatest(%s, pg_size_bytes(current_setting('maintenance_work_mem')) / 1024) || 'kB', false)",
        (memory,),
    )
    try:
        _replace(connection, tables)
    finally:
        if not connection.closed:
            connection.execute("RESET maintenance_work_mem")
    connection.execute(statement("ANALYZE {tables}.passage", tables))


def _replace(connection: DeadlineConnection, tables: str) -> None:
    """Build a new graph and replace the graph in use. No question and no writer waits for this."""
    connection.execute(_drop("passage_graph_new", tables))  # what a killed process left
    connection.execute(_drop("passage_graph_old", tables))
    create = statement(
        "CREATE INDEX CONCURRENTLY passage_graph_new ON {tables}.passage USING hnsw (vector halfvec_ip_ops)"
        f" WITH (ef_construction = {_EF_CONSTRUCTION})",
        tables,
    )
    try:
        connection.execute(create)
    except errors.DiskFull:
        # Parallel builds need shared memory, and containers have only 64 MB by default. A single process needs none.
        connection.execute(_drop("passage_graph_new", tables))
        connection.execute("SET max_parallel_maintenance_workers = 0")
        try:
            connection.execute(create)
        finally:
            if not connection.closed:
                connection.execute("RESET max_parallel_maintenance_workers")
    with connection.transaction():
        connection.execute(
            statement("ALTER INDEX IF EXISTS {tables}.passage_graph RENAME TO passage_graph_old", tables)
        )
        connection.execute(statement("ALTER INDEX {tables}.passage_graph_new RENAME TO passage_graph", tables))
    connection.execute(_drop("passage_graph_old", tables))


def _drop(name: str, tables: str) -> sql.Composed:
    """Return the statement that drops an index."""
    # Without CONCURRENTLY it would wait for the longest reader, and every question behind it.
    return statement(f"DROP INDEX CONCURRENTLY IF EXISTS {{tables}}.{name}", tables)


def _some_vectors(view: View, count: int) -> Vector:
    ids = view.passage_ids()
    chosen = np.random.default_rng(2).choice(ids, min(count, len(ids)), replace=False)
    return vectors_by_id(view, chosen)
