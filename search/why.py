"""How a hit's score came about, as a mapping that marks the words of the question only when somebody looks at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from indexer.stores.analysis import Analysis
from search.explain import marked_words


class Why(Mapping[str, Any]):
    """The reasons of one hit. Immutable; `dict(why)` is a plain copy.

    Marking took 54 % of the time of a search by words (2 cores, Xeon): most answers are looked at by nobody.
    """

    __slots__ = ("_analysis", "_facts", "_query", "_start", "_text", "_words")

    def __init__(self, facts: Mapping[str, Any], text: str, start: int, analysis: Analysis, query: str) -> None:
        """Explain a hit.

        Args:
            facts: cosine, bm25, weights and contributions; what is named here comes first.
            text: of the passage, which begins at `start` in its document.
            query: the question, whose words are marked under the name "words".
        """
        self._facts, self._text, self._start, self._analysis, self._query = facts, text, start, analysis, query
        self._words: list[dict[str, Any]] | None = None

    def __getitem__(self, name: str) -> Any:
        if name != "words":
            return self._facts[name]
        if self._words is None:
            self._words = marked_words(self._text, self._start, self._analysis, self._query)
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
