"""The reasons for a hit's score, as a mapping that finds the words of the question only when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from indexer.stores.analysis import Analysis
from search.explain import mark_words


class Why(Mapping[str, Any]):
    """The reasons for one hit's score. Immutable; `dict(why)` is a plain copy.

    Marking words took 54 % of the time of a search by words (2 cores, Xeon), and most programs do not read them.
    """

    __slots__ = ("_analysis", "_facts", "_query", "_start", "_text", "_words")

    def __init__(self, facts: Mapping[str, Any], text: str, start: int, analysis: Analysis, query: str) -> None:
        """Explain a hit.

        Args:
            facts: cosine, bm25, weights and contributions; their names come first in the mapping.
            text: the passage.
            start: offset of the passage in its document, in code points.
            query: the question, whose words are marked under the name "words".
        """
        self._facts, self._text, self._start, self._analysis, self._query = facts, text, start, analysis, query
        self._words: list[dict[str, Any]] | None = None

    def __getitem__(self, name: str) -> Any:
        if name != "words":
            return self._facts[name]
        if self._words is None:
            self._words = mark_words(self._text, self._start, self._analysis, self._query)
        return self._words

    def __iter__(self) -> Iterator[str]:
        yield from self._facts
        yield "words"

    def __len__(self) -> int:
        return len(self._facts) + 1

    def __repr__(self) -> str:
        return repr(dict(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return dict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
