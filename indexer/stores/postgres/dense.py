"""Ranking by cosine: by the graph where there is one and the filter leaves enough, otherwise by brute force.

The server proposes passages by a question rounded to half precision, as its operators need both sides of one type. Each
is scored again here from its stored vector. By brute force, more passages are fetched until none that was left out can
still enter the answer, rounding included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Ids, Ranking, Unit
from indexer.stores.postgres.views import Allowed, View
from indexer.stores.vectors import cosines, to_float32

EXACT_PASSAGES = 20_000
"""Passages that a filter leaves up to which brute force is faster than the graph: 1 ms for 1,000 of 384 dimensions."""

_MAX_SCORE_ERROR = 4e-6
"""Largest difference between the server's score of a row and ours, beside the rounding of the question: float32 sums in
another order, and the row's length is 1 only to about 1e-6 (vectors.py)."""

_SPARE_ROWS = 8
"""Rows fetched beyond those asked for, so that near-ties at the end seldom cost a second search."""

_MAX_PASSAGES_PER_DOCUMENT = 3
"""Passages fetched at first for each document that is asked for."""

_MAX_EF_SEARCH = 1000
"""What pgvector allows; a scan that needs more goes on by itself (hnsw.iterative_scan)."""


def rank(view: View, vector: Vector, k: int, where: Where | None, unit: Unit, exact: bool) -> Ranking:
    """Return the k best documents (each by its best passage) or passages for a unit vector (dimensions,).

    There are min(k, matched) of them: where the graph gives too few, they are found by brute force.
    """
    allowed = view.allowed(where)
    matched = allowed.passages if unit == "passage" else allowed.documents
    wanted = min(k, matched)
    average = -(-allowed.passages // max(1, allowed.documents))
    per_unit = 1 if unit == "passage" else min(_MAX_PASSAGES_PER_DOCUMENT, average)
    fetched = min(per_unit * wanted + _SPARE_ROWS, allowed.passages)
    by_graph = not exact and view.state.row.ef_search is not None and allowed.passages > EXACT_PASSAGES
    while wanted:
        passages, documents, scores, floor = _nearest(view, where, allowed, vector, fetched, by_graph)
        if len(passages) < fetched and by_graph:  # it ended early
            by_graph = False
            continue
        best = _first_of_each(documents, wanted) if unit == "document" else np.arange(min(wanted, len(passages)))
        if fetched >= allowed.passages or (len(best) == wanted and (by_graph or scores[best[-1]] > floor)):
            return Ranking(passages[best], documents[best], scores[best], matched, exact=not by_graph)
        fetched = min(4 * fetched, allowed.passages)
    no_ids = np.empty(0, np.int64)
    return Ranking(no_ids, no_ids, np.empty(0, np.float32), matched, exact=True)


def _nearest(
    view: View, where: Where | None, allowed: Allowed, vector: Vector, n: int, by_graph: bool
) -> tuple[Ids, Ids, NDArray[np.float32], float]:
    """Find the n nearest passages, best first.

    Returns:
        Passages, their documents, their cosines; and a score that no other passage exceeds, if not `by_graph`.
    """
    rounded = vector.astype(np.float16)
    if by_graph:
        # As many as without a filter are to be found among those that it leaves.
        width = -(-(view.state.row.ef_search or 0) * view.state.row.passages // allowed.passages)
        view.search_as_wide_as(min(max(width, n), _MAX_EF_SEARCH))
    distance = "p.vector <#> %s"
    if not by_graph:
        distance = f"({distance}) + 0"  # an expression, which no graph answers
    condition, parameters = _condition(view, where, allowed)
    rows = view.rows(
        f"SELECT p.id, p.document_id, p.vector, {distance} AS distance FROM {{tables}}.passage p{condition}"
        f" ORDER BY distance{'' if by_graph else ', p.id'} LIMIT {int(n)}",
        HalfVector(rounded),
        *parameters,
    )
    ids = np.array([row[0] for row in rows], np.int64)
    owners = np.array([row[1] for row in rows], np.int64)
    scores = cosines(to_float32(view.halves([row[2] for row in rows])), vector)
    # Two scores differ by no more than the distance between the two questions, as rows have the length 1.
    rounding = float(np.linalg.norm(vector - rounded.astype(np.float32)))
    floor = rounding - float(rows[-1][3]) + _MAX_SCORE_ERROR if rows else -2.0
    best = np.lexsort((ids, -scores))  # equal scores in the order the passages were added
    return ids[best], owners[best], scores[best], floor


def _condition(view: View, where: Where | None, allowed: Allowed) -> tuple[str, list[object]]:
    """Return a filter as the end of a statement over passages `p`, and its parameters."""
    if where is None or allowed.condition is None:
        return "", []
    if allowed.passages <= EXACT_PASSAGES:
        # The planner cannot know how many documents a filter leaves, and would read all passages for 1 % of them.
        return " WHERE p.document_id = ANY(%s::bigint[])", [view.document_ids(where).tolist()]
    inside = f" WHERE p.document_id IN (SELECT d.id FROM {{tables}}.document d WHERE {allowed.condition.text})"
    return inside, list(allowed.condition.parameters)


def _first_of_each(documents: Ids, wanted: int) -> NDArray[np.intp]:
    """Return the positions of the first passage of each document, in the order of the ranking."""
    _, first = np.unique(documents, return_index=True)
    return np.sort(first)[:wanted]
