"""The reasons for a hit's score, put together when they are first read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indexer.passages.cut import titled_text
from indexer.stores.port import Condition, Conditions, Passage
from indexer.stores.words.exact import places
from search.marks import QuestionWords, visible_places


class DeferredWhy:
    """Makes the reasons for one hit's score when it is called.

    Marking words took 54 % of the time of a search by words (2 cores, Xeon), and most programs do not read them.
    """

    __slots__ = ("_conditions", "_facts", "_is_far", "_passage", "_question")

    def __init__(
        self,
        facts: Mapping[str, Any],
        passage: Passage,
        question: QuestionWords,
        is_far: bool,
        conditions: Conditions = (),
    ) -> None:
        """Keep the values for making the reasons.

        Args:
            facts: cosine, bm25, weights and contributions; they come first.
            question: its words are marked under the name "words".
            is_far: whether the passage is no nearer than the best hits of unrelated questions usually are. It is a weak
                match, unless it holds every word of the question.
            conditions: of the question.
        """
        self._conditions = conditions
        self._facts, self._passage, self._question, self._is_far = facts, passage, question, is_far

    def __call__(self) -> dict[str, Any]:
        """Return the reasons, with the words of the question marked."""
        passage = self._passage
        words = self._question.mark(passage.text, passage.start, passage.format)
        weak = self._is_far and not self._question.are_all_in(titled_text(passage.title, passage.text, passage.format))
        why = {**self._facts, "words": words, "weak": weak}
        if self._conditions:
            why["conditions"] = [self._condition(one) for one in self._conditions]
        return why

    def _condition(self, condition: Condition) -> dict[str, Any]:
        """Return a condition with its places in the passage. A document may meet it elsewhere in its text."""
        passage = self._passage
        spans = visible_places(
            passage.text,
            passage.start,
            passage.format,
            lambda text: [] if condition.excluded else places(text, condition.words),
        )
        return {"text": condition.text, "excluded": condition.excluded, "places": spans}
