"""Ranking by BM25 over a snapshot, with a filter: documents by all their words, or passages by theirs.

Scoring whole documents is at least as good as their best passage (docs/decisions.md); a document is shown by the
passage that scores best by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where, render
from indexer.stores.local import queries
from indexer.stores.local.views import Ids, View
from indexer.stores.local.words.reader import Words
from indexer.stores.port import Ranking, Unit

if TYPE_CHECKING:
    from indexer.stores.local.words.tantivy_index import Chosen, Found, Postings

_KEPT_FILTERS = 32
_PASSAGES = 8
"""Passages fetched a document, in the hope that the best of each is among them."""


def rank(view: View, words: Words, text: str, k: int, where: Where | None, unit: Unit) -> Ranking:
    """The k best documents or passages that hold a word of the text; equal ones in the order they were added.

    Raises:
        NoWords: the text has no word, or none but the language's stop words.
    """
    terms = words.analysis.asked_terms(text)
    only = _filter(view, words, where)
    if unit == "passage":
        found = words.passages.search(terms, k, only)
        return Ranking(found.ids, found.documents, found.scores, found.matched, exact=True)
    found = words.documents.search(terms, k, only)
    best = _best(words.passages, terms, found)
    return Ranking(best, found.documents, found.scores, found.matched, exact=True)


def documents(view: View, words: Words, text: str, k: int, where: Where | None) -> Found:
    """As `rank` has the documents, without looking for the passage to show of each."""
    terms = words.analysis.asked_terms(text)
    return words.documents.search(terms, k, _filter(view, words, where))


def scores(words: Words, text: str, ids: Ids, unit: Unit) -> NDArray[np.float32]:
    """BM25 of documents or passages by their ids (n,), as `rank` has it; 0 where none holds a word of the text."""
    terms = words.analysis.terms(text)
    if unit == "document":
        return words.documents.scores(terms, "document", ids)
    return words.passages.scores(terms, "id", ids)


def _filter(view: View, words: Words, where: Where | None) -> Chosen | None:
    """The documents that a filter leaves, as a question; None where that is all of them. Kept with the words."""
    from indexer.stores.local.words.tantivy_index import chosen

    if where is None:
        return None
    key = render(where)
    if (kept := words.chosen.get(key, words)) is not words:  # None is a filter that leaves all
        return kept  # type: ignore[return-value]
    flags = queries.document_flags(view, where)
    allowed = int(np.count_nonzero(flags))
    if allowed == view.state.documents:
        only = None
    elif 2 * allowed < len(flags):
        only = chosen("document", np.flatnonzero(flags))
    else:  # the shorter list of the two
        only = chosen("document", np.flatnonzero(~flags), excluded=True)
    if len(words.chosen) >= _KEPT_FILTERS:  # other threads may be clearing it too
        words.chosen.clear()
    words.chosen[key] = only
    return only


def _best(passages: Postings, terms: Sequence[str], found: Found) -> Ids:
    """The best passage of each document; its first where no passage holds a word, as that was cut in two."""
    from indexer.stores.local.words.tantivy_index import chosen

    best: dict[int, int] = {}
    documents, fetched = found.documents.tolist(), _PASSAGES * len(found.documents)
    left = documents
    while left:
        near = passages.search(terms, fetched, chosen("document", np.unique(left)))
        for document, passage in zip(near.documents.tolist(), near.ids.tolist(), strict=True):
            best.setdefault(document, passage)
        if fetched >= near.matched:
            break
        left = [document for document in left if document not in best]
        fetched *= 4
    return np.array([best.get(*pair) for pair in zip(documents, found.ids.tolist(), strict=True)], np.int64)
