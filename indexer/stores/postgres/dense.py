"""Ranking by cosine: by the graph where there is one and the filter leaves enough, otherwise by brute force.

The server proposes passages by a question rounded to half precision, as its operators need both sides of one type. Each
is scored again here from its stored vector. By brute force, more passages are fetched until none that was left out can
still enter the answer, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Ids, Ranking, Unit
from indexer.stores.postgres.queries import rows_as_vectors
from indexer.stores.postgres.views import Allowed, View
from indexer.stores.vectors import cosines

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

_MAX_ROWS_OF_SHARD = 2000
"""Nearest passages of a shard among which those of a filter are looked for; for more, brute force is faster."""


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
    if view.state.row.shards and by_graph and allowed.condition is not None:
        by_graph = _rows_of_shard(view, allowed, fetched) <= _MAX_ROWS_OF_SHARD
    while wanted:
        passages, documents, scores, floor = _nearest(view, allowed, vector, fetched, by_graph)
        if len(passages) < fetched and by_graph:  # it ended early
            by_graph = False
            continue
        if len(passages) < fetched:  # a shard has just lost some: there is no snapshot of several servers
            fetched = allowed.passages
        best = _first_of_each(documents, wanted) if unit == "document" else np.arange(min(wanted, len(passages)))
        if fetched >= allowed.passages or (len(best) == wanted and (by_graph or scores[best[-1]] > floor)):
            return Ranking(passages[best], documents[best], scores[best], matched, exact=not by_graph)
        fetched = min(4 * fetched, allowed.passages)
    no_ids = np.empty(0, np.int64)
    return Ranking(no_ids, no_ids, np.empty(0, np.float32), matched, exact=True)


def _nearest(
    view: View, allowed: Allowed, vector: Vector, n: int, by_graph: bool
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
    question = HalfVector(rounded)
    if not view.state.row.shards:
        condition, parameters = _condition(view, allowed)
        rows = view.rows(_select("passage", condition, by_graph, n), question, *parameters, binary=True)
    elif by_graph and allowed.condition is not None:
        rows = _filtered_of_shards(view, allowed, question, n)
    else:
        rows = _nearest_of_shards(view, allowed, question, by_graph, n)
    ids = np.array([row[0] for row in rows], np.int64)
    owners = np.array([row[1] for row in rows], np.int64)
    scores = cosines(rows_as_vectors([row[2] for row in rows], view.state.settings.dimensions), vector)
    # Two scores differ by no more than the distance between the two questions, as rows have the length 1.
    rounding = float(np.linalg.norm(vector - rounded.astype(np.float32)))
    floor = rounding - float(rows[-1][3]) + _MAX_SCORE_ERROR if rows else -2.0
    best = np.lexsort((ids, -scores))  # equal scores in the order the passages were added
    return ids[best], owners[best], scores[best], floor


def _select(table: str, condition: str, by_graph: bool, n: int) -> str:
    """Return the statement that finds the n nearest passages of a table: id, document, vector, distance, table."""
    distance = "p.vector <#> %s"
    if not by_graph:
        distance = f"({distance}) + 0"  # an expression, which no graph answers
    return (
        f"SELECT p.id, p.document_id, p.vector, {distance} AS distance, p.tableoid FROM {{tables}}.{table} p{condition}"
        f" ORDER BY distance{'' if by_graph else ', p.id'} LIMIT {int(n)}"
    )


def _condition(view: View, allowed: Allowed) -> tuple[str, list[object]]:
    if allowed.condition is None:
        return "", []
    if view.state.row.shards or allowed.passages <= EXACT_PASSAGES:
        # The planner cannot know how many documents a filter leaves, and would read all passages for 1 % of them.
        # To a shard it would send no filter at all, but fetch every passage.
        return " WHERE p.document_id = ANY(%s::bigint[])", [allowed.ids(view).tolist()]
    inside = f" WHERE p.document_id IN (SELECT d.id FROM {{tables}}.document d WHERE {allowed.condition.text})"
    return inside, list(allowed.condition.parameters)


def _of_shards(view: View, allowed: Allowed, question: HalfVector, by_graph: bool, n: int) -> list[Any]:
    """Return the n nearest passages of each shard.

    A limit over all partitions would stay at the coordinator, which would then fetch more rows than it needs. The
    shards are asked at the same time, as nothing is computed of a part that is not in its columns.
    """
    condition, parameters = _condition(view, allowed)
    parts = [f"({_select(f'passage_{number}', condition, by_graph, n)})" for number in view.reachable]
    return view.rows(" UNION ALL ".join(parts), *[question, *parameters] * len(parts), binary=True)


def _nearest_of_shards(view: View, allowed: Allowed, question: HalfVector, by_graph: bool, n: int) -> list[Any]:
    """Return the n nearest passages. Each shard is asked for as many of them as it probably holds.

    Vectors come from a shard as text, so that each row costs more than the search for it.
    """
    share = n / len(view.reachable)
    count = min(n, int(share + 4 * math.sqrt(share)) + 1)
    while True:
        rows = _of_shards(view, allowed, question, by_graph, count)
        nearest = _nearest_of(rows, n)
        if count == n or (len(nearest) == n and nearest[-1][3] < _complete_to(rows, count)):
            return nearest
        count = n


def _rows_of_shard(view: View, allowed: Allowed, n: int) -> int:
    """Return how many nearest passages of each shard probably hold the n nearest of all that a filter leaves."""
    share = n * view.state.row.passages / (allowed.passages * len(view.reachable))
    return int(1.5 * share) + _SPARE_ROWS


def _filtered_of_shards(view: View, allowed: Allowed, question: HalfVector, n: int) -> list[Any]:
    """Return the n nearest passages that a filter leaves, found by the graphs of the shards.

    The filter is applied here, to more of the nearest than are asked for: joined to it, the planner would fetch every
    passage. There are fewer than n where the nearest `_MAX_ROWS_OF_SHARD` do not suffice.
    """
    everything, ids = replace(allowed, condition=None), allowed.ids(view)
    count = _rows_of_shard(view, allowed, n)
    while True:
        rows = _of_shards(view, everything, question, True, count)
        last = _complete_to(rows, count)
        kept = _nearest_of([row for row in rows if row[3] <= last and _contains(ids, row[1])], n)
        if len(kept) == n or count >= _MAX_ROWS_OF_SHARD:
            return kept
        count = min(4 * count, _MAX_ROWS_OF_SHARD)


def _complete_to(rows: list[Any], count: int) -> float:
    """Return the distance up to which the rows of shards, at most `count` of each, leave no passage out."""
    return min((of_shard[-1][3] for of_shard in _by_shard(rows) if len(of_shard) == count), default=math.inf)


def _by_shard(rows: list[Any]) -> Iterator[list[Any]]:
    """Yield the rows of each shard, the nearest first."""
    for _, of_shard in groupby(sorted(rows, key=itemgetter(4, 3)), itemgetter(4)):
        yield list(of_shard)


def _contains(ids: Ids, id_: int) -> bool:
    """Return whether an id is among ids in ascending order (n,)."""
    place = int(np.searchsorted(ids, id_))
    return place < len(ids) and int(ids[place]) == id_


def _nearest_of(rows: list[Any], n: int) -> list[Any]:
    return sorted(rows, key=itemgetter(3, 0))[:n]


def _first_of_each(documents: Ids, wanted: int) -> NDArray[np.intp]:
    """Return the positions of the first passage of each document, in the order of the ranking."""
    _, first = np.unique(documents, return_index=True)
    return np.sort(first)[:wanted]
