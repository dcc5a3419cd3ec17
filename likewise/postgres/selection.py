"""The documents of an index in a database that a filter leaves, and the passages nearest to a question.

The graph finds the passages if it is faster and the filter leaves enough of them. Otherwise brute force does, over the
documents whose ids are read once for each filter and commit. The server proposes passages for a question in half
precision, because its operators need two values of one type. Each passage is scored again here from its stored vector.
"""

from __future__ import annotations

import numpy as np
from pgvector import HalfVector

from indexer.filters.tree import Not, Where
from indexer.records import Vector
from indexer.stores.fields.filter_sql import Sql, compile_where
from indexer.stores.port import Ids
from indexer.stores.reading.view import Nearest
from indexer.stores.vectors import cosines, to_float32
from indexer.stores.words.word_ranking import Limit
from likewise.postgres.filter_sql import PostgresDialect
from likewise.postgres.vectors import IdArray
from likewise.postgres.views import Allowed, View, unpacked

PASSAGES_PER_NEIGHBOUR = 12
"""Number of passages of known ids that brute force scores in the time in which a search of the graph visits one
neighbour (100,000 passages of 384 dimensions: 1.5 and 18 µs)."""

_NEIGHBOURS_PER_PASSAGE = 2
"""Width of a search for each wanted passage, among those that the filter leaves (100,000 passages, filter 10 %: recall
.99)."""

_SENT_PASSAGES = 20_000
"""Maximum passages after a filter for which the ids of their documents are sent with a question."""

_PLANNED_IDS = 100
"""Maximum ids of documents that the planner sees. Citus takes 0.9 ms less to plan them, and asks only their shards."""

_MAX_SCORE_ERROR = 4e-6
"""Maximum difference between the server's score of a row and ours, without the rounding of the question. The server
sums float32 values in another order, and a row's length is 1 only to about 1e-6 (vectors.py)."""

_MAX_EF_SEARCH = 1000
"""Maximum width that pgvector allows. A scan that needs more continues by itself (hnsw.iterative_scan)."""

_EVERY = Sql("true")


class PostgresSelection:
    """A `Selection` of an index in a database. Numbers and ids are read at the first use of a filter, and kept."""

    def __init__(self, view: View, where: Where | None, limit: Limit | None = None) -> None:
        self._view, self._where, self._limit = view, where, limit
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
        if self._limit is not None:
            if self._counted is None:
                self._counted = self._count_limited(self._limit)
            return self._counted
        if self._where is None:
            return Allowed(row.documents, row.passages, limited=False)
        if self._counted is None:  # cached_property would have the questions of other threads wait (before Python 3.12)
            self._counted = self._view.state.allowed.get(self._where, self._count)
        return self._counted

    def _count(self) -> Allowed:
        condition = compiled(self._view, self._where)
        ((documents, passages),) = self._view.rows(
            f"SELECT count(*), coalesce(sum(d.passages), 0)::bigint FROM {{tables}}.document d WHERE {condition.text}",
            *condition.parameters,
        )
        return Allowed(documents, passages, limited=documents != self._view.state.row.documents)

    def _count_limited(self, limit: Limit) -> Allowed:
        row = self._view.state.row
        if self._where is None and row.documents == row.passages:  # to count takes as long as to rank
            count = limit.count(row.passages)
            return Allowed(count, count, limited=True)
        condition, of_document = compiled(self._view, self._where), limit.unit == "document"
        inside, parameters = _limited("d.id" if of_document else "p.id", limit)
        passages = "" if of_document else " JOIN {tables}.passage p ON p.document_id = d.id"
        counted = "count(*), coalesce(sum(d.passages), 0)" if of_document else "count(DISTINCT d.id), count(*)"
        ((documents, passage_count),) = self._view.rows(
            f"SELECT {counted} FROM {{tables}}.document d{passages} WHERE {condition.text} AND {inside}",
            *condition.parameters,
            *parameters,
        )
        return Allowed(documents, int(passage_count), limited=True)

    def nearest(self, vector: Vector, n: int, depth: int | None) -> Nearest:
        tuned, total = self._view.state.row.ef_search, self._view.state.row.passages
        if depth is not None and tuned is not None:
            width = max(tuned, _NEIGHBOURS_PER_PASSAGE * n * total // max(1, self.passages))
            if self.passages > PASSAGES_PER_NEIGHBOUR * width:
                nearest = self._nearest(vector, n, width)
                if len(nearest.passages) == n:  # otherwise it ended early
                    return nearest
        return self._nearest(vector, n)

    def _nearest(self, vector: Vector, n: int, width: int | None = None) -> Nearest:
        """Return the n nearest passages, by a search of the graph that is this wide; None for brute force."""
        view, by_graph = self._view, width is not None
        rounded = vector.astype(np.float16)
        distance = "p.vector <#> %s"
        if width is not None:
            view.search_as_wide_as(min(width, _MAX_EF_SEARCH))
        else:
            distance = f"({distance}) + 0"  # an expression, which no graph answers
        condition, parameters = self._condition(by_graph)
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

    def _condition(self, by_graph: bool = False) -> tuple[str, list[object]]:
        """Return the filter as the end of a statement over passages `p`, and its parameters."""
        limit, parts, parameters = self._limit, list[str](), list[object]()
        if limit is not None:
            part, parameters = _limited("p.document_id" if limit.unit == "document" else "p.id", limit)
            parts.append(part)
        if self._allowed.limited and self._where is not None:
            if not by_graph and self.passages <= _SENT_PASSAGES:
                ids = self.ids()
                parts.append("p.document_id = ANY(%s)" if len(ids) <= _PLANNED_IDS else _any_of("p.document_id"))
                parameters.append(IdArray.of(ids))
            else:
                condition = compiled(self._view, self._where, by_row=by_graph)
                parts.append(
                    # A value of each row, because the planner would join the tables and sort all passages.
                    f"(SELECT {condition.text} FROM {{tables}}.document d WHERE d.id = p.document_id)"
                    if by_graph
                    else f"p.document_id IN (SELECT d.id FROM {{tables}}.document d WHERE {condition.text})"
                )
                parameters += condition.parameters
        return f" WHERE {' AND '.join(parts)}" if parts else "", parameters


def _any_of(column: str) -> str:
    """Return the condition that a column has one of the ids of an `IdArray`.

    The planner must not see many: it would compare each with its statistics, and read all passages for 1 % of them.
    """
    return f"{column} = ANY(ARRAY(SELECT unnest(%s)))"


def _limited(column: str, limit: Limit) -> tuple[str, list[object]]:
    """Return the conditions of a question as SQL over a column of ids, and its parameters."""
    condition = f"{column} <> ALL(%s)" if limit.excluded else _any_of(column)
    return condition, [IdArray.of(limit.ids)]


def compiled(view: View, where: Where | None, *, by_row: bool = False) -> Sql:
    """Return a filter as SQL over a row `d` of `document`. Raises FilterError."""
    dialect = PostgresDialect(view.state.field_ids, by_row)
    return _EVERY if where is None else compile_where(where, view.state.fields, dialect)


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
