"""Filters that may name fields which no document has, for callers that ask before anything was stored."""

from __future__ import annotations

from collections.abc import Callable, Collection

from indexer.filters.tree import COLUMNS, And, Compare, Condition, Exists, In, Not, Or, TextMatch, Under, Where


def without_unknown_fields(where: Where, fields: Collection[str]) -> Where | bool:
    """Return the filter with every condition on an unknown field decided: it holds for no document.

    Args:
        fields: the metadata fields that some document has.

    Returns:
        A filter with known fields only; True or False if this already decides the whole filter.
    """
    return resolve_conditions(where, lambda condition: condition if _is_known(condition, fields) else False)


def resolve_conditions(where: Where, resolve: Callable[[Condition], Where | bool]) -> Where | bool:
    """Return the filter with what `resolve` returns for each condition; True or False if this decides the filter."""
    match where:
        case And(parts) | Or(parts):
            decides = isinstance(where, Or)  # one true part decides an or, one false part an and
            kept: list[Where] = []
            for part in parts:
                decided = resolve_conditions(part, resolve)
                if decided is decides:
                    return decides
                if not isinstance(decided, bool):
                    kept.append(decided)
            return type(where)(tuple(kept)) if len(kept) > 1 else kept[0] if kept else not decides
        case Not(part):
            decided = resolve_conditions(part, resolve)
            return not decided if isinstance(decided, bool) else Not(decided)
        case _:
            return resolve(where)


def _is_known(condition: Condition, fields: Collection[str]) -> bool:
    match condition:
        case Exists(name):
            return name in COLUMNS or name in fields or any(field.startswith(f"{name}.") for field in fields)
        case Compare(name) | In(name) | TextMatch(name):
            return name in COLUMNS or name in fields
        case Under():
            return True
