"""Filters as mappings, so that no program has to quote: `{"year": {">=": 2020}, "lang": {"in": ["en", "de"]}}`.

The keys of one level are joined with *and*: a field with its conditions, "and", "or" and "not" with mappings below
them, or "under" with a folder, which is also `{"path": {"under": folder}}`. A field of such a name is written in
backticks. `datetime.date` and `datetime` are
dates; a date as a string is text, as a text in quotes is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from os import PathLike, fspath
from typing import Any, TypeAlias

from indexer.errors import FilterError
from indexer.filters.dates import from_datetime
from indexer.filters.limits import FROM_PROGRAMS, FilterLimits
from indexer.filters.operators import COMPARISONS, TEXT_OPERATORS
from indexer.filters.parse import parse
from indexer.filters.tree import (
    COLUMNS,
    MAX_DEPTH,
    And,
    Compare,
    Exists,
    In,
    Not,
    Or,
    TextMatch,
    Under,
    Value,
    Where,
    absolute_folder,
    metadata_field,
    one_line,
)

Filter: TypeAlias = str | Mapping[str, Any] | Where
"""A filter as text, as a mapping, or as the tree that both become."""

_TEXT_OPS: Mapping[str, tuple[str, bool]] = {
    f"{word}{op}": (op, bool(word)) for op in TEXT_OPERATORS for word in ("", "not ")
}
_OPERATORS = (*COMPARISONS, "in", "not in", "exists", *TEXT_OPERATORS)
_JOINED: Mapping[str, type[And | Or]] = {"and": And, "or": Or}


def filter_tree(where: Filter | None, limits: FilterLimits = FROM_PROGRAMS) -> Where | None:
    """Return the tree of a filter; None for no filter, which an empty mapping is too.

    Args:
        limits: the limits for the origin of the filter.

    Raises:
        FilterSyntaxError: a text that does not parse.
        FilterError: a mapping that is not a filter, with the name of the key; or a filter beyond a limit.
    """
    if where is None or (isinstance(where, Mapping) and not where):
        return None
    if isinstance(where, Where):
        tree: Where = where
    else:
        tree = _all_of(where, "", 1) if isinstance(where, Mapping) else parse(where, limits.characters)
    limits.check(tree)
    return tree


def _all_of(conditions: Mapping[str, Any], place: str, depth: int) -> Where:
    """Return the tree of every key of one level, joined with *and*.

    Args:
        place: the keys above this level, for messages.
        depth: levels of and, or and not so far.
    """
    if depth > MAX_DEPTH:
        raise FilterError(f"filter: more than {MAX_DEPTH} levels of and, or and not: write values as a list after in")
    parts: list[Where] = []
    for key, value in conditions.items():
        here = f"{place}{key!r:.80}"
        if not isinstance(key, str):
            raise FilterError(f"filter: {here} is not the name of a field: use a string")
        if key in _JOINED:
            parts.append(_joined(key, value, here, depth))
        elif key == "not":
            parts.append(Not(_all_of(_conditions(value, here), f"{here}: ", depth + 1)))
        elif key == "under" and isinstance(value, str | PathLike):
            parts.append(_under(value, here))
        else:
            parts.extend(_of_field(_field(key, here), value, here))
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _conditions(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise FilterError(f'filter: {place}: give a mapping with a condition, as in {{"year": {{">=": 2020}}}}')
    return value


def _joined(key: str, value: Any, place: str, depth: int) -> Where:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise FilterError(f"filter: {place}: give a list of mappings, each with a condition")
    parts = tuple(_all_of(_conditions(part, place), f"{place}: ", depth + 1) for part in value)
    return parts[0] if len(parts) == 1 else _JOINED[key](parts)


def _field(key: str, place: str) -> str:
    quoted = len(key) > 2 and key[0] == key[-1] == "`"
    name = _text(key[1:-1] if quoted else key, place)
    path = name.removeprefix("metadata.")
    if not path or name == "metadata":
        raise FilterError(f"filter: {place} is not a field: write metadata.NAME, or the name of a field")
    return name if path == name and name in COLUMNS else metadata_field(path)


def _of_field(name: str, value: Any, place: str) -> Iterable[Where]:
    """Return the conditions on one field; a value alone means `=`."""
    if not isinstance(value, Mapping):
        yield Compare(name, "=", _value(value, place))
        return
    for operator, operand in _conditions(value, place).items():
        here = f"{place}: {operator!r:.80}"
        if operator in COMPARISONS:
            yield Compare(name, operator, _value(operand, here))
        elif operator in ("in", "not in"):
            if not isinstance(operand, list | tuple | set | frozenset):
                raise FilterError(f"filter: {here}: give a list of values")
            yield In(name, tuple(_value(each, here) for each in operand), operator == "not in")
        elif operator == "exists":
            if not isinstance(operand, bool):
                raise FilterError(f"filter: {here}: give true, or false for a field that is missing")
            yield Exists(name) if operand else Not(Exists(name))
        elif operator in _TEXT_OPS:
            if not isinstance(operand, str):
                raise FilterError(f"filter: {here}: give text")
            op, negated = _TEXT_OPS[operator]
            yield TextMatch(name, op, _text(operand, here), negated)
        elif operator == "under" and name == "path":
            yield _under(operand, here)
        else:
            raise FilterError(f"filter: {here} is not a comparison: use one of {' '.join(_OPERATORS)}")


def _under(folder: Any, place: str) -> Under:
    path = fspath(folder) if isinstance(folder, str | PathLike) else None
    if not isinstance(path, str):
        raise FilterError(f"filter: {place}: give the name of a folder")
    return Under(absolute_folder(_text(path, place)))


def _value(value: Any, place: str) -> Value:
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, date):
        try:
            return from_datetime(value)
        except ValueError as error:
            raise FilterError(f"filter: {place}: {value!r:.80}: {error}") from None
    if value is None:
        hint = 'use "exists", with false for a field without a value and true for a field with one'
        raise FilterError(f"filter: {place}: None or null is not a value: {hint}")
    if isinstance(value, int | float):
        raise FilterError(f"filter: {place}: {value!r:.40} is outside the numbers that can be stored")
    kind = type(value).__name__
    hint = '; for one of several values use {"in": [...]}' if isinstance(value, list | tuple | set) else ""
    hint = "; take its .item()" if hasattr(value, "item") else hint
    raise FilterError(f"filter: {place}: a {kind} is not a value: use text, a number, a date, true or false{hint}")


def _text(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(f"filter: {one_line(place, 80)}: is not valid Unicode at character {error.start}") from None
    return text
