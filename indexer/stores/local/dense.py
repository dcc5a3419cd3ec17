"""Ranking by cosine over every part of a snapshot, with a filter, by document or by passage.

FAISS proposes, the catalog's own vectors decide: candidates are scored again from their BLOBs, and a row that is not
the same in both is damage, not an answer. Where every part was
searched exactly, more are fetched until no passage that was left out could still enter the answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.local import queries
from indexer.stores.local.masks import Allowed
from indexer.stores.local.views import View
from indexer.stores.port import Ranking, Unit
from indexer.stores.vectors import cosines

_SLACK = 2e-6
"""How far FAISS's score of a row may lie from ours: float32 sums in another order, its length (vectors.py)."""

_DAMAGE = 1e-4
"""Further apart they are not of the same row."""

_SPARE = 8
"""Rows fetched beyond those asked for, so that ties and near-ties at the end seldom cost a second search."""


def rank(view: View, vector: Vector, k: int, where: Where | None, unit: Unit, exact: bool) -> Ranking:
    """The k best documents (each by its best passage) or passages for a unit vector (dimensions,).

    As many as there are up to k, whatever the filter and the kind of the segments: an answer that comes back short
    is widened, in the end to everything that is allowed.
    """
    allowed = queries.allowed(view, where)
    matched = allowed.passages if unit == "passage" else allowed.documents
    wanted = min(k, matched)
    several = 1 if unit == "passage" else min(3, -(-allowed.passages // max(1, allowed.documents)))
    fetched = several * wanted + _SPARE
    while wanted:
        depth = None if exact or fetched >= allowed.passages else wanted
        passages, documents, scores, floor, provable = _nearest(view, allowed, vector, fetched, depth)
        best = _first_of_each(documents, wanted) if unit == "document" else np.arange(min(wanted, len(passages)))
        if fetched >= allowed.passages or (len(best) == wanted and scores[best[-1]] > floor + _SLACK):
            return Ranking(passages[best], documents[best], scores[best], matched, provable)
        fetched *= 4
    nothing = np.empty(0, np.int64)
    return Ranking(nothing, nothing, np.empty(0, np.float32), matched, exact=True)


def _nearest(
    view: View, allowed: Allowed, vector: Vector, n: int, depth: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], float, bool]:
    """The n nearest passages with their documents and cosines, best first; what no other passage proposed exceeds;
    and whether that holds for every passage there is.
    """
    passages, documents, scores, provable = [], [], [], True
    for part, mask in zip(view.state.parts, allowed.masks, strict=True):
        found, at, sure = part.segment.search(vector, n, mask, depth)
        scores.append(found)
        passages.append(part.positions.passages[at])
        documents.append(part.positions.documents[at])
        provable = provable and sure
    near = np.concatenate(scores)
    order = np.argsort(-near, kind="stable")[:n]
    floor = float(near[order[-1]]) if len(order) == n else -2.0
    ids, owners = np.concatenate(passages)[order], np.concatenate(documents)[order]
    exist, rows = queries.rows(view, ids)
    stored = cosines(rows, vector)
    if not exist.all() or np.abs(stored - near[order]).max(initial=0) > _DAMAGE:
        raise IndexDamaged("catalog.db: does not agree with its segments; likewise check says what is damaged")
    # Equal scores in the order the passages were added, so that answers do not depend on how they are stored.
    order = np.lexsort((ids, -stored))
    return ids[order], owners[order], stored[order], floor, provable


def _first_of_each(documents: NDArray[np.int64], wanted: int) -> NDArray[np.intp]:
    """Positions of the first passage of each document, in the order of the ranking."""
    _, first = np.unique(documents, return_index=True)
    return np.sort(first)[:wanted]
