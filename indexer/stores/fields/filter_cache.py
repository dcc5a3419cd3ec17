"""Results of the filters that were used last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from indexer.filters.tree import Where, render

T = TypeVar("T")

_MAX_FILTERS = 32


class FilterCache(Generic[T]):
    """One result for each filter that was used last with one state of an index. Safe to share among threads."""

    def __init__(self) -> None:
        self._results: dict[str, T] = {}

    def get(self, where: Where | None, compute: Callable[[], T]) -> T:
        """Return the result of a filter, computed at its first use."""
        key = "" if where is None else render(where)  # trees as keys would not tell `draft = 1` from `draft = true`
        try:
            return self._results[key]
        except KeyError:
            result = compute()
        if len(self._results) >= _MAX_FILTERS:  # another thread may clear it at the same time
            self._results.clear()
        self._results[key] = result
        return result
