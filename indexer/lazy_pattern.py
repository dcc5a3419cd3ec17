"""A regular expression that is compiled when it is first used. One that names the characters of all scripts takes 5 to
25 ms, and most processes need few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    """Finds each method when it is first used. Two threads may compile the pattern at once; the methods are equal."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # as copy and pickle ask for
            raise AttributeError(name)
        method = self.__dict__[name] = getattr(re.compile(self.pattern, self._flags), name)
        return method


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` returns, but compiled at its first use."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
