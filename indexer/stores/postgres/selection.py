"""The documents of an index in a database that a filter leaves, and the passages nearest to a question.

The graph finds the passages if there is a graph and the filter leaves enough of them; otherwise brute force does. The
server proposes passages for a question in half precision, because its operators need two values of one type. Each
passage is scored again here from its stored vector.
"""

from __future__ import annotations

import numpy as np
from pgvector import HalfVector

from indexer.filters.tree import Not, Where
from indexer.records import Vector
from indexer.stores.fields.filter_sql import Sql, compile_where
from indexer.stores.port import Ids
from indexer.stores.postgres.filter_sql import PostgresDialect
from indexer.stores.postgres.views import Allowed, View, unpacked
from indexer.stores.reading.view import Nearest
from indexer.stores.vectors import cosines, to_float32

EXACT_PASSAGES = 20_000
"""Maximum passages after a filter for which brute force is faster than the graph: 1 ms for 1,000 passages of 384
dimensions."""

_MAX_SCORE_ERROR = 4e-6
"""Maximum difference between the server's score of a row and ours, without the rounding of the question. The server
sums float32 values in another order, and a row's length is 1 only to about 1e-6 (vectors.py)."""

_MAX_EF_SEARCH = 1000
"""Maximum width that pgvector allows. A scan that needs more continues by itself (hnsw.iterative_scan)."""

_EVERY = Sql("true")


class PostgresSelection:
    """A `Selection` of an index in a database. Numbers and ids are read at the first use of a filter, and kept."""

    def __init__(self, view: View, where: Where | None) -> None:
        self._view, self._where = view, where
        self._counted: Allowed | None = None

    @property
    def documents(self) -> int:
        return self._allowed.documents

    @property
    def passages(self) -> int:
        return self._allowed.passages

    def ids(self) -> Ids:
        return _document_ids(self._view, self._where)

    def other_ids(self) -> Ids:
        return np.empty(0, np.int64) if self._where is None else _document_ids(self._view, Not(self._where))

    def has(self, document: int) -> bool:
        condition = compiled(self._view, self._where)
        select = f"SELECT FROM {{tables}}.document d WHERE d.id = %s AND {condition.text}"
        return bool(self._view.rows(select, document, *condition.parameters))

    @property
    def _allowed(self) -> Allowed:
        row = self._view.state.row
        if self._where is None:
            return Allowed(row.documents, row.passages, None)
        if self._counted is None:  # cached_property would have the questions of other threads wait (before Python 3.12)
            self._counted = self._view.state.allowed.get(self._where, self._count)
        return self._counted

    def _count(self) -> Allowed:
        condition = compiled(self._view, self._where)
        ((documents, passages),) = self._view.rows(
            f"SELECT count(*), coalesce(sum(d.passages), 0)::bigint FROM {{tables}}.document d WHERE {condition.text}",
            *condition.parameters,
        )
        limited = documents != self._view.state.row.documents
        return Allowed(documents, passages, condition if limited else None)

    def nearest(self, vector: Vector, n: int, depth: int | None) -> Nearest:
        if depth is not None and self._view.state.row.ef_search is not None and self.passages > EXACT_PASSAGES:
            nearest = self._nearest(vector, n, by_graph=True)
            if len(nearest.passages) == n:  # otherwise it ended early
                return nearest
        return self._nearest(vector, n, by_graph=False)

    def _nearest(self, vector: Vector, n: int, *, by_graph: bool) -> Nearest:
        view = self._view
        rounded = vector.astype(np.float16)
        distance = "p.vector <#> %s"
        if by_graph:
            # Widen the search so that as many candidates remain after filtering as without a filter.
            width = -(-(view.state.row.ef_search or 0) * view.state.row.passages // self.passages)
            view.search_as_wide_as(min(max(width, n), _MAX_EF_SEARCH))
        else:
            distance = f"({distance}) + 0"  # an expression, which no graph answers
        condition, parameters = self._condition()
        rows = view.rows(
            f"SELECT p.id, p.document_id, p.vector, {distance} AS distance FROM {{tables}}.passage p{condition}"
            f" ORDER BY distance{'' if by_graph else ', p.id'} LIMIT {int(n)}",
            HalfVector(rounded),
            *parameters,
        )
        ids = np.array([row[0] for row in rows], np.int64)
        owners = np.array([row[1] for row in rows], np.int64)
        scores = cosines(to_float32(view.halves([row[2] for row in rows])), vector)
        best = np.lexsort((ids, -scores))  # equal scores in the order the passages were added
        if by_graph:
            return Nearest(ids[best], owners[best], scores[best], -np.inf, exact=False)
        # Two scores differ by no more than the distance between the two questions, as rows have the length 1.
        rounding = float(np.linalg.norm(vector - rounded.astype(np.float32)))
        floor = rounding - float(rows[-1][3]) + _MAX_SCORE_ERROR if rows else -2.0
        return Nearest(ids[best], owners[best], scores[best], floor, exact=True)

    def _condition(self) -> tuple[str, list[object]]:
        """Return the filter as the end of a statement over passages `p`, and its parameters."""
        condition = self._allowed.condition
        if condition is None:
            return "", []
        if self.passages <= EXACT_PASSAGES:
            # The planner cannot know how many documents a filter leaves, and would read all passages for 1 % of them.
            return " WHERE p.document_id = ANY(%s::bigint[])", [self.ids().tolist()]
        inside = f" WHERE p.document_id IN (SELECT d.id FROM {{tables}}.document d WHERE {condition.text})"
        return inside, list(condition.parameters)


def compiled(view: View, where: Where | None) -> Sql:
    """Return a filter as SQL over a row `d` of `document`. Raises FilterError."""
    return _EVERY if where is None else compile_where(where, view.state.fields, PostgresDialect(view.state.field_ids))


def _document_ids(view: View, where: Where | None) -> Ids:
    """Return the ids of the documents that a filter leaves (n,), ascending."""

    def read() -> Ids:
        condition = compiled(view, where)
        return unpacked(
            view.rows(
                f"SELECT string_agg(int8send(d.id), ''::bytea) FROM {{tables}}.document d WHERE {condition.text}",
                *condition.parameters,
            )
        )

    return view.state.ids.get(where, read)
