"""Ranking by BM25 over a snapshot, with a filter: documents by all their words, or passages by their own words.

Scoring whole documents is at least as good as scoring their best passage (docs/decisions.md). A document is shown by
the passage that scores best by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where, render
from indexer.stores.local import queries
from indexer.stores.local.views import View
from indexer.stores.local.words.reader import Words
from indexer.stores.port import Ids, Ranking, Unit

if TYPE_CHECKING:
    from indexer.stores.local.words.tantivy_index import Postings, Restriction, WordHits

_MAX_CACHED_FILTERS = 32

_PASSAGES_PER_DOCUMENT = 8
"""Passages fetched per document at first: the best passage of each document is usually among them."""


def rank(view: View, words: Words, text: str, k: int, where: Where | None, unit: Unit) -> Ranking:
    """Return the k best documents or passages that hold a word of the text; equal scores in order of addition.

    Raises:
        NoWords: the text has no word, or none but the language's stop words.
    """
    terms = words.analysis.question_terms(text)
    hits = rank_units(view, words, terms, k, where, unit)
    best = hits.ids  # of a document, the id of its first passage
    if unit == "document" and len(view.state.passages_of(hits.documents)[0]) > len(best):  # some have several passages
        best = _best_passages(words.passages, terms, hits)
    return Ranking(best, hits.documents, hits.scores, hits.matched, exact=True)


def rank_units(view: View, words: Words, terms: Sequence[str], k: int, where: Where | None, unit: Unit) -> WordHits:
    """Return the same units as `rank` for some terms, without looking for the passage that a document is shown by."""
    postings = words.passages if unit == "passage" else words.documents
    return postings.search(terms, k, _restriction(view, words, where))


def score(words: Words, terms: Sequence[str], ids: Ids, unit: Unit) -> NDArray[np.float32]:
    """Return the BM25 score (n,) that `rank` gives each document or passage; 0 where it holds none of the terms.

    Args:
        ids: of documents, or of passages (n,).
    """
    if unit == "document":
        return words.documents.scores(terms, "document", ids)
    return words.passages.scores(terms, "id", ids)


def _restriction(view: View, words: Words, where: Where | None) -> Restriction | None:
    """Return a filter as a restriction to its documents, kept with the words; None where it leaves all documents."""
    from indexer.stores.local.words.tantivy_index import restrict

    if where is None:
        return None
    key = render(where)
    if (cached := words.restrictions.get(key, words)) is not words:  # None is a filter that leaves all documents
        return cached  # type: ignore[return-value]
    flags = queries.document_flags(view, where)
    matched = int(np.count_nonzero(flags))
    if matched == view.state.documents:
        restriction = None
    elif 2 * matched < len(flags):
        restriction = restrict("document", np.flatnonzero(flags))
    else:  # the list of excluded documents is shorter
        restriction = restrict("document", np.flatnonzero(~flags), excluded=True)
    if len(words.restrictions) >= _MAX_CACHED_FILTERS:  # another thread may clear it at the same time
        words.restrictions.clear()
    words.restrictions[key] = restriction
    return restriction


def _best_passages(passages: Postings, terms: Sequence[str], hits: WordHits) -> Ids:
    """Return the best passage of each document (n,).

    It is the first passage where none holds a word: the word was cut in two.
    """
    from indexer.stores.local.words.tantivy_index import restrict

    best: dict[int, int] = {}
    documents, fetched = hits.documents.tolist(), _PASSAGES_PER_DOCUMENT * len(hits.documents)
    remaining = documents
    while remaining:
        passage_hits = passages.search(terms, fetched, restrict("document", np.unique(remaining)))
        for document, passage in zip(passage_hits.documents.tolist(), passage_hits.ids.tolist(), strict=True):
            best.setdefault(document, passage)
        if fetched >= passage_hits.matched:
            break
        remaining = [document for document in remaining if document not in best]
        fetched *= 4
    return np.array([best.get(*pair) for pair in zip(documents, hits.ids.tolist(), strict=True)], np.int64)
