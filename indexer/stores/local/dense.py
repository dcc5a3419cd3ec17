"""Ranking by cosine over every part of a snapshot, with a filter, by document or by passage.

FAISS proposes passages, and each is scored again from its vector, so that its score does not depend on the part that
holds it. Where every part was searched exactly, more passages are fetched until none that was left out could still
enter the answer. Vectors are read from the parts; a passage is shown only if the catalog has the same vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.local import queries
from indexer.stores.local.masks import AllowedRows
from indexer.stores.local.views import View
from indexer.stores.port import Ids, Ranking, Unit
from indexer.stores.vectors import cosines

_MAX_SCORE_ERROR = 2e-6
"""Largest difference between FAISS's score of a row and ours: float32 sums in another order, and the row's length is 1
only to about 1e-6 (vectors.py)."""

_SPARE_ROWS = 8
"""Rows fetched beyond those asked for, so that ties and near-ties at the end seldom cost a second search."""

_MAX_PASSAGES_PER_DOCUMENT = 3
"""Passages fetched at first for each document that is asked for."""


def rank(view: View, vector: Vector, k: int, where: Where | None, unit: Unit, exact: bool) -> Ranking:
    """Return the k best documents (each by its best passage) or passages for a unit vector (dimensions,).

    There are min(k, matched) of them, whatever the filter and the kind of the segments: if a search returns too few,
    it is repeated with more, up to everything that is allowed.
    """
    allowed = queries.allowed_rows(view, where)
    matched = allowed.passages if unit == "passage" else allowed.documents
    wanted = min(k, matched)
    average = -(-allowed.passages // max(1, allowed.documents))
    per_unit = 1 if unit == "passage" else min(_MAX_PASSAGES_PER_DOCUMENT, average)
    fetched = per_unit * wanted + _SPARE_ROWS
    while wanted:
        depth = None if exact or fetched >= allowed.passages else wanted
        passages, documents, scores, floor, provable = _nearest(view, allowed, vector, fetched, depth)
        best = _first_of_each(documents, wanted) if unit == "document" else np.arange(min(wanted, len(passages)))
        if fetched >= allowed.passages or (len(best) == wanted and scores[best[-1]] > floor + _MAX_SCORE_ERROR):
            return Ranking(passages[best], documents[best], scores[best], matched, provable)
        fetched *= 4
    no_ids = np.empty(0, np.int64)
    return Ranking(no_ids, no_ids, np.empty(0, np.float32), matched, exact=True)


def _nearest(
    view: View, allowed: AllowedRows, vector: Vector, n: int, depth: int | None
) -> tuple[Ids, Ids, NDArray[np.float32], float, bool]:
    """Find the n nearest passages, best first.

    Returns:
        Passages, their documents, their cosines; a score that no other proposed passage exceeds; and whether it holds
        for every passage there is.
    """
    passages, documents, scores, provable = [], [], [], True
    for part, mask in zip(view.state.parts, allowed.masks, strict=True):
        part_scores, positions, part_provable = part.segment.search(vector, n, mask, depth)
        scores.append(part_scores)
        passages.append(part.positions.passages[positions])
        documents.append(part.positions.documents[positions])
        provable = provable and part_provable
    proposed = np.concatenate(scores)
    order = np.argsort(-proposed, kind="stable")[:n]
    floor = float(proposed[order[-1]]) if len(order) == n else -2.0
    ids, document_ids = np.concatenate(passages)[order], np.concatenate(documents)[order]
    stored = cosines(view.state.vectors_of(ids), vector)
    # Equal scores in the order the passages were added, so that answers do not depend on how they are stored.
    order = np.lexsort((ids, -stored))
    return ids[order], document_ids[order], stored[order], floor, provable


def _first_of_each(documents: Ids, wanted: int) -> NDArray[np.intp]:
    """Return the positions of the first passage of each document, in the order of the ranking."""
    _, first = np.unique(documents, return_index=True)
    return np.sort(first)[:wanted]
