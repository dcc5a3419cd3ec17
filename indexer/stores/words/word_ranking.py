"""Ranking by BM25 over two word indexes, one of documents and one of passages: documents by all their words.

Scoring whole documents is at least as good as scoring their best passage (docs/decisions.md). A document is shown by
the passage that scores best by itself. Where the indexes are kept, and which filter becomes which restriction, is the
engine's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.stores.fields.filter_cache import FilterCache
from indexer.stores.port import Ids, Ranking, Unit
from indexer.stores.words.analysis import Analysis, Terms

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import Postings, Restriction, WordHits

_PASSAGES_PER_DOCUMENT = 8
"""Passages fetched per document at first: the best passage of each document is usually among them."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one commit, by document and by passage.

    Attributes:
        documents: each under the id of its first passage.
        notes: what every question that uses these words should be told, such as a damaged word index.
        restrictions: None for a filter that leaves all documents.
    """

    analysis: Analysis
    documents: Postings
    passages: Postings
    notes: tuple[str, ...] = ()
    restrictions: FilterCache[Restriction | None] = field(default_factory=FilterCache)

    def rank_units(self, terms: Terms, k: int, restriction: Restriction | None, unit: Unit) -> WordHits:
        """Return the k best documents or passages that hold one of the terms; documents by their first passage."""
        return (self.passages if unit == "passage" else self.documents).search(terms, k, restriction)

    def rank(self, text: str, k: int, restriction: Restriction | None, unit: Unit) -> Ranking:
        """Return the k best documents or passages that hold a word of the text; equal scores in order of addition.

        Raises:
            NoWords: the text has no word, or none but the language's stop words.
        """
        terms = self.analysis.required_terms(text)
        hits = self.rank_units(terms, k, restriction, unit)
        best = hits.ids
        if unit == "document" and len(best) and self.passages.count > self.documents.count:  # some have several
            best = self._best_passages(terms, hits)
        return Ranking(best, hits.documents, hits.scores, hits.matched, exact=True)

    def score(self, terms: Terms, ids: Ids, unit: Unit) -> NDArray[np.float32]:
        """Return the BM25 score (n,) that `rank` gives each document or passage; 0 if it has none of the terms.

        Args:
            ids: of documents, or of passages (n,).
        """
        if unit == "document":
            return self.documents.scores(terms, "document", ids)
        return self.passages.scores(terms, "id", ids)

    def _best_passages(self, terms: Terms, hits: WordHits) -> Ids:
        """Return the best passage of each document (n,).

        If no passage has a word, because the word was cut in two, the result is the first passage.
        """
        from indexer.stores.words.tantivy_index import restrict

        best: dict[int, int] = {}
        documents, fetched = hits.documents.tolist(), _PASSAGES_PER_DOCUMENT * len(hits.documents)
        remaining = documents
        while remaining:
            passage_hits = self.passages.search(terms, fetched, restrict("document", np.unique(remaining)))
            for document, passage in zip(passage_hits.documents.tolist(), passage_hits.ids.tolist(), strict=True):
                best.setdefault(document, passage)
            if fetched >= passage_hits.matched:
                break
            remaining = [document for document in remaining if document not in best]
            fetched *= 4
        return np.array([best.get(*pair) for pair in zip(documents, hits.ids.tolist(), strict=True)], np.int64)
