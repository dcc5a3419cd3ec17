"""Ranking by cosine, with a filter, by document or by passage.

An engine proposes passages, each with its score from the stored vector. If all of them were searched, more passages are
fetched until none that was left out could still enter the answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector
from indexer.stores.port import Ids, Ranking, Unit
from indexer.stores.reading.view import Selection

_SPARE_ROWS = 8
"""Number of extra rows that are fetched, so that ties and near-ties at the end seldom cost a second search."""

_MAX_PASSAGES_PER_DOCUMENT = 3
"""Number of passages that the first search fetches for each requested document."""


def rank(selection: Selection, vector: Vector, k: int, unit: Unit, exact: bool) -> Ranking:
    """Return the k best documents (each by its best passage) or passages for a unit vector (dimensions,).

    There are min(k, matched) of them, whatever the filter and the engine: if a search returns too few, it is repeated
    with more, up to everything that is allowed.
    """
    matched = selection.passages if unit == "passage" else selection.documents
    wanted = min(k, matched)
    average = -(-selection.passages // max(1, selection.documents))
    per_unit = 1 if unit == "passage" else min(_MAX_PASSAGES_PER_DOCUMENT, average)
    fetched = per_unit * wanted + _SPARE_ROWS
    while wanted:
        fetched = min(fetched, selection.passages)
        everything = fetched == selection.passages
        nearest = selection.nearest(vector, fetched, None if exact or everything else wanted)
        best = np.arange(min(wanted, len(nearest.passages)))
        if unit == "document":
            best = _first_of_each(nearest.documents, wanted)
        if everything or (len(best) == wanted and nearest.scores[best[-1]] > nearest.floor):
            return Ranking(
                nearest.passages[best], nearest.documents[best], nearest.scores[best], matched, nearest.exact
            )
        exact, fetched = exact or nearest.exact, 4 * fetched
    no_ids = np.empty(0, np.int64)
    return Ranking(no_ids, no_ids, np.empty(0, np.float32), matched, exact=True)


def _first_of_each(documents: Ids, wanted: int) -> NDArray[np.intp]:
    """Return the positions of the first passage of each document, in the order of the ranking."""
    _, first = np.unique(documents, return_index=True)
    return np.sort(first)[:wanted]
