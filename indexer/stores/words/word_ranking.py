"""Ranking by BM25 over two word indexes, one of documents and one of passages: documents by all their words.

Scoring whole documents is at least as good as scoring their best passage (docs/decisions.md). A document is shown by
the passage that scores best by itself. Where the indexes are kept, and which filter becomes which restriction, is the
engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.stores.fields.filter_cache import FilterCache
from indexer.stores.port import Conditions, Ids, Ranking, Unit, WordStatistics
from indexer.stores.words.analysis import Analysis, Terms, characters, without_unspaced

if TYPE_CHECKING:
    from indexer.stores.words.tantivy_index import Postings, Restriction, WordHits

_PASSAGES_PER_DOCUMENT = 8
"""Passages fetched per document at first: the best passage of each document is usually among them."""


class Limit(NamedTuple):
    """The units that the conditions of a question leave: whichever is shorter of the list of them and of the others.

    Attributes:
        ids: ids of documents or passages (n,), ascending.
        excluded: whether these are left out, and all others left.
    """

    unit: Unit
    ids: Ids
    excluded: bool

    def count(self, units: int) -> int:
        """Return how many units are left of this many in all."""
        return units - len(self.ids) if self.excluded else len(self.ids)

    def flags(self, ids: Ids) -> NDArray[np.bool_]:
        """Return one flag per id (n,), ids ascending: whether the conditions leave this document or passage."""
        flags = np.zeros(len(ids), np.bool_)
        positions = np.searchsorted(ids, self.ids)
        inside = positions < len(ids)
        positions, own = positions[inside], self.ids[inside]
        flags[positions[ids[positions] == own]] = True
        return ~flags if self.excluded else flags


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one commit, by document and by passage.

    Attributes:
        documents: each under the id of its first passage.
        notes: what every question that uses these words should be told, such as a damaged word index.
        restrictions: empty for a filter that leaves all documents.
    """

    analysis: Analysis
    documents: Postings
    passages: Postings
    notes: tuple[str, ...] = ()
    restrictions: FilterCache[Restriction] = field(default_factory=FilterCache)

    def of(self, unit: Unit) -> Postings:
        """Return the texts of the units."""
        return self.passages if unit == "passage" else self.documents

    def statistics(self, terms: Terms) -> WordStatistics:
        """Return the statistics of the terms of a question."""
        return WordStatistics(self.documents.statistics(terms), self.passages.statistics(terms))

    def known_share(self, question: str) -> float:
        """Return the share of a question's terms, and of its characters that can be a word, that some text has; 1 if
        the question has none."""
        occurring_once = [f"{character}1" for character in characters(question)]  # as tantivy_index.py writes it
        terms = self.analysis.terms(without_unspaced(question)) + occurring_once
        return 1 - sum(self.passages.lacks([term]) for term in terms) / (len(terms) or 1)

    def weighed_by(self, statistics: WordStatistics) -> Words:
        """Return these words for a question whose BM25 scores follow the statistics of a larger collection."""
        documents = self.documents.weighed_by(statistics.documents)
        return replace(self, documents=documents, passages=self.passages.weighed_by(statistics.passages))

    def limit(self, conditions: Conditions, unit: Unit) -> Limit:
        """Return the units that conditions leave."""
        from indexer.stores.words.tantivy_index import restrict_to, restrict_to_others

        texts, limited, others = self.of(unit), restrict_to(conditions), restrict_to_others(conditions)
        if all(one.excluded for one in conditions):  # the texts with excluded words are found sooner than the others
            left = texts.count - texts.count_of(others)
        else:
            left = texts.count_of(limited)
        excluded = 2 * left > texts.count
        ids = texts.ids(others if excluded else limited, "id" if unit == "passage" else "document")
        return Limit(unit, ids, excluded)

    def holds_dashed(self, words: Sequence[str]) -> bool:
        """Return whether a document has these words in a row, and the first of them after a dash."""
        from indexer.stores.words.tantivy_index import restrict_to_dashed

        return self.documents.count_of(restrict_to_dashed(words)) > 0

    def rank_units(
        self, terms: Terms, k: int, restriction: Restriction, unit: Unit, *, every: bool = False
    ) -> WordHits:
        """Return the k best documents or passages that hold one of the terms; documents by their first passage.

        Args:
            every: units that hold none of the terms follow, with the score 0.
        """
        return self.of(unit).search(terms, k, restriction, every=every)

    def rank(self, text: str, k: int, restriction: Restriction, unit: Unit, conditions: Conditions) -> Ranking:
        """Return the k best documents or passages that hold a word of the text; equal scores in order of addition.

        Args:
            restriction: of the filter and of the conditions.
            conditions: if the text has no word to search by, units are ranked by the words that these require.

        Raises:
            NoWords: the text has no word, or none but the language's stop words, and there are no conditions.
        """
        terms = self.analysis.question_terms(text) if conditions else self.analysis.required_terms(text)
        asks = bool(terms)
        if not asks:
            required = (" ".join(condition.words) for condition in conditions if not condition.excluded)
            terms = self.analysis.question_terms(" ".join(required))
        hits = self.rank_units(terms, k, restriction, unit, every=not asks)
        best = hits.ids
        if unit == "document" and len(best) and self.passages.count > self.documents.count:  # some have several
            best = self._best_passages(terms, hits, () if asks else conditions)
        return Ranking(best, hits.documents, hits.scores, hits.matched, exact=True)

    def score(self, terms: Terms, ids: Ids, unit: Unit) -> NDArray[np.float32]:
        """Return the BM25 score (n,) that `rank` gives each document or passage; 0 if it has none of the terms.

        Args:
            ids: of documents, or of passages (n,).
        """
        if unit == "document":
            return self.documents.scores(terms, "document", ids)
        return self.passages.scores(terms, "id", ids)

    def _best_passages(self, terms: Terms, hits: WordHits, conditions: Conditions) -> Ids:
        """Return the best passage of each document (n,).

        If no passage has a word, because the word was cut in two, the result is the first passage.

        Args:
            conditions: a passage that meets all of them is better than all others.
        """
        from indexer.stores.words.tantivy_index import restrict, restrict_to

        best: dict[int, int] = {}
        documents, fetched = hits.documents.tolist(), _PASSAGES_PER_DOCUMENT * len(hits.documents)
        searches = [(restrict_to(conditions), True), ((), False)] if conditions else [((), False)]
        for limits, every in searches:
            remaining, n = [document for document in documents if document not in best], fetched
            while remaining:
                restriction = (*restrict("document", np.unique(remaining)), *limits)
                passage_hits = self.passages.search(terms, n, restriction, every=every)
                for document, passage in zip(passage_hits.documents.tolist(), passage_hits.ids.tolist(), strict=True):
                    best.setdefault(document, passage)
                if n >= passage_hits.matched:
                    break
                remaining = [document for document in remaining if document not in best]
                n *= 4
        return np.array([best.get(*pair) for pair in zip(documents, hits.ids.tolist(), strict=True)], np.int64)
