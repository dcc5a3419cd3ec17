"""The candidates of hybrid ranking: the best units of both legs, each with its score by cosine and by words."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores import vectors
from indexer.stores.local.dense import rank
from indexer.stores.local.views import View
from indexer.stores.local.words import rank as word_rank
from indexer.stores.local.words.files import analysis_of
from indexer.stores.local.words.reader import Words
from indexer.stores.port import BEST_PASSAGES, Candidates, Ids, Ranking, Unit

ScoredUnits = tuple[Ids, NDArray[np.float32]]
"""Ids of units (n,) and the BM25 score of each (n,)."""


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
    by_words: ScoredUnits | None = None
    if unit == "passage":
        if terms:
            ranking = word_rank.rank(view, open_words(), text, depth, where, unit)
            by_words = ranking.passages, ranking.scores
        units = passages = np.union1d(dense.passages, by_words[0] if by_words else ()).astype(np.int64)
        cosines = _cosines(view, vector, passages, dense)
        means = cosines.astype(np.float64)
    else:
        if terms:
            hits = word_rank.rank_documents(view, open_words(), text, depth, where)
            by_words = hits.documents, hits.scores
        documents = np.union1d(dense.documents, by_words[0] if by_words else ()).astype(np.int64)
        units, passages, cosines, means = best_passages(*_score_passages(view, vector, documents, dense))
    words = _word_scores(open_words(), text, units, unit, by_words) if by_words else np.zeros(len(units), np.float32)
    complete = dense.exact and len(passages) == dense.matched
    return Candidates(passages, cosines, means, words, len(terms), dense.matched, complete)


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
    units, first, counts = np.unique(documents[order], return_index=True, return_counts=True)
    if not len(order):
        return units, passages, cosines, np.empty(0)
    nearest_first = cosines[order].astype(np.float64)
    place = np.arange(len(order)) - np.repeat(first, counts)
    sums = np.add.reduceat(np.where(place < BEST_PASSAGES, nearest_first, 0.0), first)
    return units, passages[order][first], cosines[order][first], sums / np.minimum(counts, BEST_PASSAGES)


def _score_passages(view: View, vector: Vector, documents: Ids, dense: Ranking) -> tuple[Ids, Ids, NDArray[np.float32]]:
    """Return id, document and cosine of every passage of the documents, in order of the ids: each (passages,)."""
    rows = view.connection.execute(
        "SELECT id, document_id FROM passage WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(documents.tolist()),),
    ).fetchall()
    passages, passage_documents = np.array(rows, np.int64).reshape(-1, 2).T
    return passages, passage_documents, _cosines(view, vector, passages, dense)


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


def _word_scores(words: Words, text: str, units: Ids, unit: Unit, by_words: ScoredUnits) -> NDArray[np.float32]:
    """Return the BM25 score of units (n,), which are in ascending order; only those that the leg lacks are computed."""
    scores = np.zeros(len(units), np.float32)
    scored = np.isin(units, by_words[0])
    scores[scored] = by_words[1][np.argsort(by_words[0])]
    scores[~scored] = word_rank.score(words, text, units[~scored], unit)
    return scores
