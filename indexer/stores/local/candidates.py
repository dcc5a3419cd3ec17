"""The candidates of hybrid ranking: the best units of both legs, each with its score by cosine and by words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores import vectors
from indexer.stores.local.dense import rank
from indexer.stores.local.views import View
from indexer.stores.local.words.files import analysis_of
from indexer.stores.local.words.rank import restriction
from indexer.stores.port import Candidates, Ids, Ranking, Unit
from indexer.stores.units import join_legs
from indexer.stores.word_ranking import Words


def candidates(
    view: View,
    open_words: Callable[[], Words],
    vector: Vector,
    text: str,
    depth: int,
    where: Where | None,
    unit: Unit,
    exact: bool,
) -> Candidates:
    """Return the `depth` best units by cosine and by words. Without words in the text only the dense leg is asked.

    Args:
        open_words: returns the words of the view; called only where the text has words.
        vector: unit vector (dimensions,).
    """
    terms = analysis_of(view).terms(text)
    dense = rank(view, vector, depth, where, unit, exact)
    words = open_words() if terms else None
    hits = None if words is None else words.rank_units(terms, depth, restriction(view, words, where), unit)

    def of_passages(passages: Ids) -> NDArray[np.float32]:
        return _cosines(view, vector, passages, dense)

    def of_documents(documents: Ids) -> tuple[Ids, Ids, NDArray[np.float32]]:
        every, owners = view.state.passages_of(documents)
        return every, owners, of_passages(every)

    return join_legs(terms, dense, words, hits, unit, of_passages, of_documents)


def _cosines(view: View, vector: Vector, passages: Ids, dense: Ranking) -> NDArray[np.float32]:
    """Return the cosines of passages (n,), which are in ascending order.

    Args:
        dense: passages whose cosines with this vector are known: they are not computed again.
    """
    cosines = np.empty(len(passages), np.float32)
    unknown = np.ones(len(passages), np.bool_)
    if len(passages):
        positions = np.minimum(np.searchsorted(passages, dense.passages), len(passages) - 1)
        same = passages[positions] == dense.passages
        cosines[positions[same]], unknown[positions[same]] = dense.scores[same], False
    cosines[unknown] = vectors.cosines(view.state.vectors_of(passages[unknown]), vector)
    return cosines
