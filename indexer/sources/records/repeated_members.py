"""JSON objects that have a member twice. Parsers take the last one, such as another filter, without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def noting(repeated: dict[str, None]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return an `object_pairs_hook` that adds the name of each member that an object has twice, in order."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            left = set(found)
            for name, _ in pairs:
                if name in left:
                    left.remove(name)
                else:
                    repeated[name] = None
        return found

    return members
