"""What hybrid chooses from: the best of both legs, with the score that each lacks of the other's computed."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores import vectors
from indexer.stores.local import queries
from indexer.stores.local.dense import rank
from indexer.stores.local.views import View
from indexer.stores.local.words import rank as word_rank
from indexer.stores.local.words.files import language
from indexer.stores.local.words.reader import Words
from indexer.stores.port import BEST_PASSAGES, Candidates, Ids, Ranking, Unit

Scored = tuple[Ids, NDArray[np.float32]]
"""Ids of units and the score of each."""


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
    """The `depth` best units by cosine and by words; a text without words leaves the dense leg alone.

    Args:
        open_words: returns the words of the view; called only where the text has words.
    """
    terms = language(view).terms(text)
    near = rank(view, vector, depth, where, unit, exact)
    worded: Scored | None = None
    if unit == "passage":
        if terms:
            ranked = word_rank.rank(view, open_words(), text, depth, where, unit)
            worded = ranked.passages, ranked.scores
        units = passages = np.union1d(near.passages, worded[0] if worded else ()).astype(np.int64)
        cosines = _cosines(view, vector, passages, near)
        means = cosines.astype(np.float64)
    else:
        if terms:
            found = word_rank.documents(view, open_words(), text, depth, where)
            worded = found.documents, found.scores
        documents = np.union1d(near.documents, worded[0] if worded else ()).astype(np.int64)
        ids, owners, every = _passages_of(view, vector, documents, near)
        units, passages, cosines, means = best_passages(ids, owners, every)
    words = _words(open_words(), text, units, unit, worded) if worded else np.zeros(len(units), np.float32)
    complete = near.exact and len(passages) == near.matched
    return Candidates(passages, cosines, means, words, len(terms), near.matched, complete)


def best_passages(
    passages: Ids, documents: Ids, cosines: NDArray[np.float32]
) -> tuple[Ids, Ids, NDArray[np.float32], NDArray[np.float64]]:
    """The nearest passage of each document.

    Args:
        passages, documents, cosines: of every passage of the documents (passages,).

    Returns:
        Documents ascending, the nearest passage of each (of equal ones the first), its cosine, and the mean cosine of
        the BEST_PASSAGES nearest: each (documents,).
    """
    order = np.lexsort((passages, -cosines, documents))
    units, first, counts = np.unique(documents[order], return_index=True, return_counts=True)
    if not len(order):
        return units, passages, cosines, np.empty(0)
    nearest_first = cosines[order].astype(np.float64)
    place = np.arange(len(order)) - np.repeat(first, counts)
    sums = np.add.reduceat(np.where(place < BEST_PASSAGES, nearest_first, 0.0), first)
    return units, passages[order][first], cosines[order][first], sums / np.minimum(counts, BEST_PASSAGES)


def _passages_of(view: View, vector: Vector, documents: Ids, near: Ranking) -> tuple[Ids, Ids, NDArray[np.float32]]:
    """Every passage of the documents (passages,), by id: its id, its document, its cosine."""
    rows = view.connection.execute(
        "SELECT id, document_id FROM passage WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(documents.tolist()),),
    ).fetchall()
    ids, owners = np.array(rows, np.int64).reshape(-1, 2).T
    return ids, owners, _cosines(view, vector, ids, near)


def _cosines(view: View, vector: Vector, passages: Ids, near: Ranking) -> NDArray[np.float32]:
    """Cosines of passages (n,), which ascend.

    Args:
        near: passages whose cosines with this vector are known: their vectors are not read again.
    """
    cosines = np.empty(len(passages), np.float32)
    unknown = np.ones(len(passages), np.bool_)
    if len(passages):
        places = np.minimum(np.searchsorted(passages, near.passages), len(passages) - 1)
        same = passages[places] == near.passages
        cosines[places[same]], unknown[places[same]] = near.scores[same], False
    cosines[unknown] = vectors.cosines(queries.rows(view, passages[unknown])[1], vector)
    return cosines


def _words(words: Words, text: str, units: Ids, unit: Unit, worded: Scored) -> NDArray[np.float32]:
    """BM25 of units (n,), ascending: known of those that the words leg found, computed for the rest."""
    scores = np.zeros(len(units), np.float32)
    known = np.isin(units, worded[0])
    scores[known] = worded[1][np.argsort(worded[0])]
    scores[~known] = word_rank.scores(words, text, units[~known], unit)
    return scores
