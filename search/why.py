"""The reasons for a hit's score, put together when they are first read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indexer.stores.port import Passage
from indexer.stores.words.analysis import Analysis
from search.explain import mark_words


class DeferredWhy:
    """Makes the reasons for one hit's score when it is called.

    Marking words took 54 % of the time of a search by words (2 cores, Xeon), and most programs do not read them.
    """

    __slots__ = ("_analysis", "_facts", "_passage", "_query")

    def __init__(self, facts: Mapping[str, Any], passage: Passage, analysis: Analysis, query: str) -> None:
        """Keep the values for making the reasons.

        Args:
            facts: cosine, bm25, weights and contributions; they come first.
            query: the question, whose words are marked under the name "words".
        """
        self._facts, self._passage, self._analysis, self._query = facts, passage, analysis, query

    def __call__(self) -> dict[str, Any]:
        """Return the reasons, with the words of the question marked."""
        passage = self._passage
        words = mark_words(passage.text, passage.start, self._analysis, self._query, passage.format)
        return {**self._facts, "words": words}
