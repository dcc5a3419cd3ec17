"""The candidates of hybrid ranking: the best units of both legs, each with its score by cosine and by words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.hashes import MAILS
from indexer.stores.port import BEST_PASSAGES, Candidates, Conditions, Ids, Ranking, Unit
from indexer.stores.reading.view import Selection, View
from indexer.stores.vectors import cosines
from indexer.stores.words.analysis import Terms
from indexer.stores.words.word_ranking import Words

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import Restriction

_NO_IDS: Ids = np.empty(0, np.int64)

_MAIL_HEADINGS = (
    "SELECT p.id, p.heading FROM {tables}.passage p JOIN {tables}.document d ON d.id = p.document_id"
    f" WHERE p.heading <> '' AND d.format IN {MAILS} AND d.id = ANY(%s)"
)


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
    word_passages, word_documents = (hits.ids, hits.documents) if hits is not None else (_NO_IDS, _NO_IDS)
    if unit == "passage":
        units = passages = _union(dense.passages, word_passages)
        documents = np.empty(len(units), np.int64)
        for leg in (dense.passages, dense.documents), (word_passages, word_documents):
            documents[np.searchsorted(units, leg[0])] = leg[1]
        nearest = _complete(units, dense, lambda unknown: cosines(view.vectors_of(units[unknown]), vector))
        means = nearest.astype(np.float64)
    else:
        every, owners, read = view.passages_of(_union(dense.documents, word_documents))
        of_every = _complete(every, dense, lambda unknown: cosines(read(unknown), vector))
        units, passages, nearest, means = best_passages(every, owners, of_every, _parts(view, every, owners))
        documents = units
    of_words = np.zeros(len(units), np.float32)
    if words is not None and hits is not None:
        scored = np.searchsorted(units, word_passages if unit == "passage" else word_documents)
        of_words[scored] = hits.scores
        others = np.delete(np.arange(len(units)), scored)
        of_words[others] = words.score(terms, units[others], unit)
    complete = dense.exact and len(passages) == dense.matched
    return Candidates(passages, documents, nearest, means, of_words, len(terms), dense.matched, complete)


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


def _union(first: Ids, second: Ids) -> Ids:
    """Return the ids that are in either, in ascending order; numpy's union1d takes five times as long for so few."""
    ids = np.sort(np.concatenate([first, second]))
    return ids[np.diff(ids, prepend=-1) > 0]


def _parts(view: View, passages: Ids, documents: Ids) -> Ids:
    """Return a number for the attachment that holds each passage of a mail (passages,); 0 for any other passage."""
    parts = np.zeros(len(passages), np.int64)
    if "attachments" in (view.state.fields or {}):
        units, counts = np.unique(documents, return_counts=True)
        numbers: dict[str, int] = {}
        for passage, heading in view.rows_of(_MAIL_HEADINGS, units[counts > 1].tolist()):
            name = heading.partition(" > ")[0]
            parts[np.searchsorted(passages, passage)] = numbers.setdefault(name, len(numbers) + 1)
    return parts


def best_passages(
    passages: Ids, documents: Ids, cosines: NDArray[np.float32], parts: Ids
) -> tuple[Ids, Ids, NDArray[np.float32], NDArray[np.float64]]:
    """Find the passage of each document that is nearest to the question.

    Args:
        passages, documents, cosines: id, document and cosine of every passage of the documents (passages,).
        parts: number of the part of its document that each belongs to (passages,): a mail is not judged by what is
            attached to it.

    Returns:
        Documents in ascending order, the nearest passage of each (the first of equal ones), its cosine, and the mean
        cosine of the BEST_PASSAGES nearest in the same part: each (documents,).
    """
    order = np.lexsort((passages, -cosines, documents))
    ordered = documents[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    units, counts = ordered[first], np.diff(first, append=len(order))
    if not len(order):
        return units, passages, cosines, np.empty(0)
    same_part = parts[order] == np.repeat(parts[order][first], counts)
    number = np.cumsum(same_part)
    used = same_part & (number - np.repeat(number[first], counts) < BEST_PASSAGES)
    sums = np.add.reduceat(np.where(used, cosines[order].astype(np.float64), 0.0), first)
    return units, passages[order][first], cosines[order][first], sums / np.add.reduceat(used.astype(np.int64), first)
