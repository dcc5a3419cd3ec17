"""JSON objects that have a member twice. Parsers take the last one, such as another filter, without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
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


def repeated_member(text: str | bytes) -> str | None:
    """Return the name of a member that an object in a JSON text has twice; None without one, or if it is not JSON."""
    repeated: dict[str, None] = {}
    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=noting(repeated))
        return next((name[:80] for name in repeated), None)
    return None
