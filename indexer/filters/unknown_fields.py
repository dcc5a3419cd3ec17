"""Filters that may name fields which no document has, for callers that ask before anything was stored."""

from __future__ import annotations

from collections.abc import Collection

from indexer.filters.tree import COLUMNS, And, Compare, Exists, In, Not, Or, TextMatch, Under, Where


def without_unknown_fields(where: Where, fields: Collection[str]) -> Where | bool:
    """Return the filter with every condition on an unknown field decided: it holds for no document.

    Args:
        fields: the metadata fields that some document has.

    Returns:
        A filter with known fields only; True or False if this already decides the whole filter.
    """
    match where:
        case And(parts) | Or(parts):
            decides = isinstance(where, Or)  # one true part decides an or, one false part an and
            kept: list[Where] = []
            for part in parts:
                decided = without_unknown_fields(part, fields)
                if decided is decides:
                    return decides
                if not isinstance(decided, bool):
                    kept.append(decided)
            return type(where)(tuple(kept)) if len(kept) > 1 else kept[0] if kept else not decides
        case Not(part):
            decided = without_unknown_fields(part, fields)
            return not decided if isinstance(decided, bool) else Not(decided)
        case Exists(name):
            below = any(field.startswith(f"{name}.") for field in fields)
            return where if name in COLUMNS or name in fields or below else False
        case Compare(name) | In(name) | TextMatch(name):
            return where if name in COLUMNS or name in fields else False
        case Under():
            return where
