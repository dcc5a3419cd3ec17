"""A listener made of functions, for tests that need one or two of its methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from indexer.listener import Commit, Listener


def _ignore(_: Any) -> None:
    pass


class Calling(Listener):
    """Calls functions with what it receives."""

    def __init__(
        self, *, waiting: Callable[[str], Any] = _ignore, committed: Callable[[Commit], Any] = _ignore
    ) -> None:
        self._waiting, self._committed = waiting, committed

    def waiting(self, text: str) -> None:
        self._waiting(text)

    def committed(self, commit: Commit) -> None:
        self._committed(commit)
