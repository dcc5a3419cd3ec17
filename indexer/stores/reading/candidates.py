"""The candidates of hybrid ranking: the best units of both legs, each with its score by cosine and by words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Candidates, Conditions, Ids, Ranking, Unit
from indexer.stores.reading.units import join_legs
from indexer.stores.reading.view import Selection, View
from indexer.stores.vectors import cosines
from indexer.stores.words.analysis import Terms
from indexer.stores.words.word_ranking import Words

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import Restriction


def restriction(view: View, words: Words, where: Where | None, conditions: Conditions = ()) -> Restriction:
    """Return a filter and conditions as a restriction. That of the filter is kept with the words."""
    from indexer.stores.words.tantivy_index import restrict_to

    of_filter: Restriction = ()
    if where is not None:
        of_filter = words.restrictions.get(where, lambda: _restriction(view.select(where), view.state.documents))
    return (*of_filter, *restrict_to(conditions))


def _restriction(selection: Selection, documents: int) -> Restriction:
    from indexer.stores.words.tantivy_index import restrict

    if selection.documents == documents:
        return ()
    if 2 * selection.documents < documents:
        return restrict("document", selection.ids())
    # The list of excluded documents is shorter.
    return restrict("document", selection.other_ids(), excluded=True)


def join(
    view: View,
    vector: Vector,
    terms: Terms,
    dense: Ranking,
    words: Words | None,
    depth: int,
    where: Where | None,
    unit: Unit,
    conditions: Conditions,
) -> Candidates:
    """Return the best units by cosine and the `depth` best by words, each with both scores.

    Args:
        terms: of the question; without terms only the units by cosine are candidates.
        dense: the best units by cosine.
        words: the words of the view; None if there are no terms.
    """
    hits = None if words is None else words.rank_units(terms, depth, restriction(view, words, where, conditions), unit)

    def of_passages(passages: Ids) -> NDArray[np.float32]:
        return _complete(passages, dense, lambda unknown: cosines(view.vectors_of(passages[unknown]), vector))

    def of_documents(documents: Ids) -> tuple[Ids, Ids, NDArray[np.float32]]:
        passages, owners, read = view.passages_of(documents)
        return passages, owners, _complete(passages, dense, lambda unknown: cosines(read(unknown), vector))

    return join_legs(terms, dense, words, hits, unit, of_passages, of_documents)


def _complete(
    passages: Ids, dense: Ranking, read: Callable[[NDArray[np.bool_]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return the cosines of passages (n,), which are in ascending order.

    Args:
        dense: passages whose cosines are known: they are not computed again.
        read: returns the cosines of the passages for which a flag (n,) is set.
    """
    scores = np.empty(len(passages), np.float32)
    unknown = np.ones(len(passages), np.bool_)
    if len(passages):
        positions = np.minimum(np.searchsorted(passages, dense.passages), len(passages) - 1)
        same = passages[positions] == dense.passages
        scores[positions[same]], unknown[positions[same]] = dense.scores[same], False
    if unknown.any():
        scores[unknown] = read(unknown)
    return scores
