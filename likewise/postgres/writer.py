"""The changes of an index in a database: each method is one transaction, and several writers may work at once.

Writers of different documents wait for each other only while the number of their commit is counted. All of them take
their locks in one order: documents by key, then files by key, then the row in the registry, so that two writers never
wait for each other. If the server aborts a transaction, the whole transaction is run again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

from psycopg import errors

from indexer.errors import BadInput
from indexer.records import Changes
from indexer.settings import Meaning, Settings
from indexer.stores.commits import require_kind, with_recall
from indexer.stores.port import Batch, CheckReport, Kind, RunOutcome
from indexer.stores.reading.checks import Findings
from likewise.postgres import check, graph
from likewise.postgres.commit import Commit
from likewise.postgres.connections import ANSWER_SECONDS, WORK_SECONDS, DeadlineConnection
from likewise.postgres.schema import KEPT_COMMITS, MAX_GRAPH_DIMENSIONS, statement
from likewise.postgres.tables import sweep
from likewise.postgres.views import Views, read_row

T = TypeVar("T")

GRAPH_PASSAGES = 10_000
"""Minimum passages for a graph. Brute force over fewer passages takes a few milliseconds."""

_BROKEN_OFF = (errors.DeadlockDetected, errors.SerializationFailure, errors.IdleInTransactionSessionTimeout)


class PostgresWriter:
    """A `Writer` of an index in a database."""

    def __init__(self, views: Views, tables: str = "") -> None:
        """Write to the index whose tables have this name, and never to an index that replaces it during the write."""
        self._views, self._tables = views, tables
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def _transact(self, change: Callable[[Commit], T]) -> T:
        """Run a change in a transaction, and run it again if the server aborts the transaction.

        Each time, another writer has made its change, so this writer gets its turn in the end.
        """
        end = time.monotonic() + ANSWER_SECONDS
        for attempt in count():
            with self._views.connections.connection() as connection:
                try:
                    with connection.transaction():
                        _set_limits(connection)
                        commit = Commit.begin(connection, self._views, self._tables)
                        result = change(commit)
                        commit.finish()
                    return result
                except _BROKEN_OFF:
                    if attempt and time.monotonic() > end:
                        raise
            time.sleep(random.uniform(0.02, 0.08) * 2 ** min(attempt, 4))  # two that met must not meet again
        raise AssertionError("unreachable")

    def put(self, batch: Batch) -> Changes:
        return self._transact(lambda commit: commit.put(batch))

    def remove(self, uris: Iterable[str]) -> int:
        given = list(uris)
        return self._transact(lambda commit: commit.remove(given))

    def change(self, update: Callable[[Settings], Settings]) -> Settings:
        return self._transact(lambda commit: commit.change(update))

    def move(self, old: str, new: str) -> int:
        return self._transact(lambda commit: commit.move(old, new))

    def begin_run(self) -> int:
        return self._transact(lambda commit: commit.begin_run())

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        return self._transact(lambda commit: commit.end_run(run, outcome))

    def settle(self, recall: float | None = None) -> None:
        self._tune_to(recall)
        with self._views.view() as view:
            row, dimensions = view.state.row, view.state.settings.dimensions
        graph_pays = row.passages >= GRAPH_PASSAGES and dimensions <= MAX_GRAPH_DIMENSIONS
        if graph_pays and (row.ef_search is None or recall is not None):
            self._build_graph(dimensions, again=False)

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        require_kind(kind)
        self.remove(())  # begins a commit, which migrates an index of an earlier format
        self._tune_to(recall)
        with self._views.view() as view:
            row, dimensions = view.state.row, view.state.settings.dimensions
        wanted = kind == "approximate" or (kind == "auto" and row.passages >= GRAPH_PASSAGES)
        if wanted and dimensions > MAX_GRAPH_DIMENSIONS:
            if kind == "approximate":
                raise BadInput(f"vectors of {dimensions} dimensions have no graph: up to {MAX_GRAPH_DIMENSIONS}")
            wanted = False
        if wanted and row.passages:
            self._build_graph(dimensions, again=True)
        else:
            self._drop_graph()
        with self._views.connections.connection() as connection:
            connection.seconds = WORK_SECONDS
            sweep(connection)
            connection.execute(
                statement("DELETE FROM {tables}.change WHERE document_id < 0 AND document_id > %s", row.tables),
                (KEPT_COMMITS - row.generation,),
            )
            for table in ("document", "passage", "field_value", "ledger", "change", "file"):
                connection.execute(statement(f"VACUUM (ANALYZE) {{tables}}.{table}", row.tables))

    def repair(self, meaning: Meaning | None) -> CheckReport:
        def find() -> Findings:
            with self._views.view() as view:
                return check.find(view, meaning, self._views.address)

        findings = find()
        damaged, fields = findings.damaged, findings.wrong_fields
        counts, broken_graph = findings.last["counts"], findings.last["graph"]
        if damaged or fields or counts:
            self._transact(lambda commit: commit.repair(damaged, fields))
        if broken_graph:
            with self._views.view() as view:
                dimensions = view.state.settings.dimensions
            self._build_graph(dimensions, again=True)
        repairs = {
            "counted the documents, passages and tokens": counts,
            "built the graph of the passages again": broken_graph,
        }
        return findings.repaired(repairs, find)

    def _tune_to(self, recall: float | None) -> None:
        if recall is not None:
            self.change(with_recall(recall))

    def _build_graph(self, dimensions: int, *, again: bool) -> None:
        """Build the graph while others read and write, and choose the width of its search.

        Args:
            again: build the graph even if there is one.
        """
        with self._views.connections.connection() as connection:
            connection.seconds = WORK_SECONDS
            row = read_row(connection, self._views.address)
            if (again or row.ef_search is None) and not graph.build(connection, row, dimensions):
                return
        self._transact(lambda commit: commit.set_ef_search(graph.WIDTH_UNTUNED))
        width = graph.narrowest(self._views)  # it takes long, and no transaction waits for it
        self._transact(lambda commit: commit.set_ef_search(width))

    def _drop_graph(self) -> None:
        self._transact(lambda commit: commit.set_ef_search(None))
        with self._views.connections.connection() as connection:
            connection.seconds = WORK_SECONDS
            graph.drop(connection, read_row(connection, self._views.address))


def _set_limits(connection: DeadlineConnection) -> None:
    """Let the server end this transaction if its client has stopped, so that others do not wait for its locks."""
    connection.execute(
        f"SET LOCAL idle_in_transaction_session_timeout = {round(1000 * ANSWER_SECONDS)};"
        f"SET LOCAL lock_timeout = {round(900 * ANSWER_SECONDS)}"
    )
