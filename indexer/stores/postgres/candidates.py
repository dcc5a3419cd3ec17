"""The candidates of hybrid ranking: the best units of both legs, each with its score by cosine and by words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Candidates, Ids, Unit
from indexer.stores.postgres import queries
from indexer.stores.postgres.dense import rank
from indexer.stores.postgres.views import View
from indexer.stores.postgres.words import analysis_of, restriction
from indexer.stores.units import best_passages, union
from indexer.stores.vectors import cosines
from indexer.stores.word_ranking import Words

_NO_IDS: Ids = np.empty(0, np.int64)


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
    if unit == "passage":
        units = passages = union(dense.passages, hits.ids if hits else _NO_IDS)
        scores = cosines(queries.vectors_by_id(view, passages), vector)
        means = scores.astype(np.float64)
    else:
        documents = union(dense.documents, hits.documents if hits else _NO_IDS)
        every, owners, rows = queries.passages_of(view, documents)
        units, passages, scores, means = best_passages(every, owners, cosines(rows, vector))
    of_words = np.zeros(len(units), np.float32)
    if words is not None and hits is not None:
        scored = np.searchsorted(units, hits.ids if unit == "passage" else hits.documents)
        of_words[scored] = hits.scores
        others = np.delete(np.arange(len(units)), scored)
        of_words[others] = words.score(terms, units[others], unit)
    complete = dense.exact and len(passages) == dense.matched
    return Candidates(passages, scores, means, of_words, len(terms), dense.matched, complete)
