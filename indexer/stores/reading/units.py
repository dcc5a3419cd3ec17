"""Passages grouped by the units that a ranking is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.stores.port import BEST_PASSAGES, Candidates, Ids, Ranking, Unit
from indexer.stores.words.analysis import Terms
from indexer.stores.words.word_ranking import Words

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import WordHits

Cosines = NDArray[np.float32]

_NO_IDS: Ids = np.empty(0, np.int64)


def join_legs(
    terms: Terms,
    dense: Ranking,
    words: Words | None,
    hits: WordHits | None,
    unit: Unit,
    of_passages: Callable[[Ids], Cosines],
    of_documents: Callable[[Ids], tuple[Ids, Ids, Cosines]],
) -> Candidates:
    """Return the units of both legs of hybrid ranking together, each with its score by cosine and by words.

    Args:
        words, hits: the words of the snapshot and what they found; None where the question has no term.
        of_passages: returns the cosines of passages (n,), ascending.
        of_documents: returns id, document and cosine of every passage of these documents.
    """
    if unit == "passage":
        units = passages = _union(dense.passages, hits.ids if hits else _NO_IDS)
        documents = np.empty(len(units), np.int64)
        for leg in (dense.passages, dense.documents), (hits.ids, hits.documents) if hits else (_NO_IDS, _NO_IDS):
            documents[np.searchsorted(units, leg[0])] = leg[1]
        cosines = of_passages(passages)
        means = cosines.astype(np.float64)
    else:
        documents = _union(dense.documents, hits.documents if hits else _NO_IDS)
        units, passages, cosines, means = best_passages(*of_documents(documents))
        documents = units
    of_words = np.zeros(len(units), np.float32)
    if words is not None and hits is not None:
        scored = np.searchsorted(units, hits.ids if unit == "passage" else hits.documents)
        of_words[scored] = hits.scores
        others = np.delete(np.arange(len(units)), scored)
        of_words[others] = words.score(terms, units[others], unit)
    complete = dense.exact and len(passages) == dense.matched
    return Candidates(passages, documents, cosines, means, of_words, len(terms), dense.matched, complete)


def _union(first: Ids, second: Ids) -> Ids:
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
