"""Passages grouped by the units that a ranking is of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.stores.port import BEST_PASSAGES, Ids


def union(first: Ids, second: Ids) -> Ids:
    """Return the ids that are in either, in ascending order; numpy's union1d takes five times as long for so few."""
    ids = np.sort(np.concatenate([first, second]))
    return ids[np.diff(ids, prepend=-1) > 0]


def best_passages(
    passages: Ids, documents: Ids, cosines: NDArray[np.float32]
) -> tuple[Ids, Ids, NDArray[np.float32], NDArray[np.float64]]:
    """Find the passage of each document that is nearest to the question.

    Args:
        passages, documents, cosines: id, document and cosine of every passage of the documents (passages,).

    Returns:
        Documents in ascending order, the nearest passage of each (the first of equal ones), its cosine, and the mean
        cosine of the BEST_PASSAGES nearest: each (documents,).
    """
    order = np.lexsort((passages, -cosines, documents))
    ordered = documents[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    units, counts = ordered[first], np.diff(first, append=len(order))
    if not len(order):
        return units, passages, cosines, np.empty(0)
    nearest_first = cosines[order].astype(np.float64)
    place = np.arange(len(order)) - np.repeat(first, counts)
    sums = np.add.reduceat(np.where(place < BEST_PASSAGES, nearest_first, 0.0), first)
    return units, passages[order][first], cosines[order][first], sums / np.minimum(counts, BEST_PASSAGES)
