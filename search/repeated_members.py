"""JSON objects that have a member twice. Parsers take the last one, such as another filter, without a word."""

from __future__ import annotations

import json
from contextlib import suppress


def repeated_member(text: str | bytes) -> str | None:
    """Return the name of a member that an object in a JSON text has twice; None without one, or if it is not JSON."""
    repeated: list[str] = []

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(found := dict(pairs)) < len(pairs):
            left = set(found)
            for name, _ in pairs:
                if name not in left:
                    repeated.append(name)
                    break
                left.remove(name)
        return found

    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=members)
        return repeated[0][:80] if repeated else None
    return None
