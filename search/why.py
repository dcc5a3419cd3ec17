"""The reasons for a hit's score, put together when they are first read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indexer.stores.port import Passage
from search.marks import QuestionWords


class DeferredWhy:
    """Makes the reasons for one hit's score when it is called.

    Marking words took 54 % of the time of a search by words (2 cores, Xeon), and most programs do not read them.
    """

    __slots__ = ("_facts", "_passage", "_question")

    def __init__(self, facts: Mapping[str, Any], passage: Passage, question: QuestionWords) -> None:
        """Keep the values for making the reasons.

        Args:
            facts: cosine, bm25, weights and contributions; they come first.
            question: its words are marked under the name "words".
        """
        self._facts, self._passage, self._question = facts, passage, question

    def __call__(self) -> dict[str, Any]:
        """Return the reasons, with the words of the question marked."""
        passage = self._passage
        words = self._question.mark(passage.text, passage.start, passage.format)
        return {**self._facts, "words": words}
