"""The candidates of hybrid ranking: the best units of both legs, each with its score by cosine and by words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.document_rows import vectors_by_id
from indexer.stores.port import Candidates, Ids, Unit
from indexer.stores.postgres import queries
from indexer.stores.postgres.dense import rank
from indexer.stores.postgres.views import View
from indexer.stores.postgres.words import analysis_of, restriction
from indexer.stores.units import join_legs
from indexer.stores.vectors import cosines
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
        return cosines(vectors_by_id(view, passages), vector)

    def of_documents(documents: Ids) -> tuple[Ids, Ids, NDArray[np.float32]]:
        every, owners, rows = queries.passages_of(view, documents)
        return every, owners, cosines(rows, vector)

    return join_legs(terms, dense, words, hits, unit, of_passages, of_documents)
