"""The fields that a filter may name, and the values it may compare them with. Every engine refuses the same filters."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from indexer.errors import FilterError, UnknownField
from indexer.filters.dates import Date, read_date
from indexer.filters.tree import (
    COLUMNS,
    And,
    Compare,
    ExactText,
    Exists,
    In,
    Not,
    Or,
    TextMatch,
    Type,
    Under,
    Value,
    Where,
    one_line,
    show,
    type_of,
)

FieldTypes: TypeAlias = Mapping[str, Collection[Type]] | None
"""The types of each field that some document has; None if the index has no document.

A field with dates has the type "date", for filters "day" if some of them are not in UTC, and "text" if other texts are
among them (`only_dates`).
"""


def metadata_types(types: FieldTypes) -> dict[str, tuple[str, ...]]:
    """Return the sorted types of each metadata field. A date counts as text."""
    fields = sorted((types or {}).items())
    return {
        name: tuple(sorted({"text" if kind in ("date", "day") else kind for kind in kinds}))
        for name, kinds in fields
        if name not in COLUMNS
    }


def date_fields(types: FieldTypes) -> tuple[str, ...]:
    """Return the metadata fields in which some value reads as a date, sorted."""
    return tuple(sorted(name for name, kinds in (types or {}).items() if "date" in kinds and name not in COLUMNS))


def only_dates(first: str | None, last: str | None) -> bool:
    """Return whether all texts of a field count as dates: the first and the last in their order are. Years alone may be
    any number of four digits.

    Args:
        first, last: the smallest and the largest text that is not empty; None if there is none.
    """
    dates = [read_date(text) for text in (first, last) if text]
    return len(dates) == 2 and None not in dates and any(date and date.precision != "year" for date in dates)


def check_filter(where: Where, types: FieldTypes) -> Where:
    """Check every condition of a filter.

    Args:
        types: the types of the index; None for an index without documents, which allows every field.

    Returns:
        The filter, each condition as `resolve` returns it.

    Raises:
        FilterError: a condition names an unknown field, or a value of a type that the field does not have.
    """
    match where:
        case And(parts) | Or(parts):
            return replace(where, parts=tuple(check_filter(part, types) for part in parts))
        case Not(part):
            return Not(check_filter(part, types))
        case Exists(name):
            expect(name, None, types)
            return where
        case Compare() | In():
            return resolve(where, types)
        case TextMatch(name, _, text):
            expect(name, ExactText(text), types)
            return where
        case Under():
            return where


def resolve(where: Compare | In, types: FieldTypes) -> Compare | In:
    """Check a condition, and return it with the values that the field is compared with.

    Where the field holds dates, a text that reads as a date is compared as one. Four digits, with quotes or without,
    are a year there, if the field holds no numbers. For `=`, `!=`, `in` and `not in` the same text is equal too.

    Raises:
        FilterError: the field is unknown, or nowhere has a value of such a type; or a number in quotes is to be ordered
            among the numbers of a field.
    """
    name, values = where.field, where.values if isinstance(where, In) else (where.value,)
    if not values:
        expect(name, None, types)
    kinds = _types_of(name, types)
    if "number" in kinds and isinstance(where, Compare) and where.op not in ("=", "!=") and _is_number(where.value):
        types = {name: [kind for kind in kinds if kind != "text"]}
    values = tuple(as_date(value, kinds) or value if type(value) is int else value for value in values)
    dates = [as_date(value, kinds) for value in values]
    pairs = reversed([*zip(values, dates, strict=True)])  # the first value of a kind is named
    of_a_kind = {(type_of(value), date is None, value == ""): value for value, date in pairs}
    for value in of_a_kind.values():
        expect(name, value, types)
    if isinstance(where, In):
        return replace(where, values=(*values, *(date for date in dates if date is not None)))
    if dates[0] is None:
        return replace(where, value=values[0])
    if where.op in ("=", "!="):
        return In(name, (*values, dates[0]), negated=where.op == "!=")
    return replace(where, value=dates[0])


def as_date(value: Value, kinds: Collection[Type]) -> Date | None:
    """Return the date that a text or a whole number in a filter is; None if it is none, or the field holds no dates.

    Args:
        kinds: the types of the field. If it also holds numbers, four digits are not a year.
    """
    if "date" not in kinds or isinstance(value, ExactText | Date | float | bool):
        return None
    date = read_date(str(value))
    is_number = date is not None and date.precision == "year" and "number" in kinds
    return None if is_number or (isinstance(value, int) and not 1000 <= value <= 9999) else date


def _is_number(value: Value | None) -> bool:
    """Return whether a text in a filter, in quotes, is a number."""
    return isinstance(value, str) and not isinstance(value, ExactText) and bool(_NUMBER.fullmatch(value))


_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_TIME: tuple[Type, ...] = ("date",)
_TEXT: tuple[Type, ...] = ("text",)


def _types_of(name: str, types: FieldTypes) -> Collection[Type]:
    if name in COLUMNS:
        return _TIME if name == "modified" else _TEXT
    return (types or {}).get(name, ())


_SAME_MEANING = {"author": ["from"], "sender": ["from", "author"], "from": ["author"]}
"""Fields that may hold what a person looks for in a field that no document has. Mails have `from`."""

_EXAMPLES: dict[Type, str] = {
    "boolean": "true or false",
    "number": "a number such as 2020",
    "date": "a date such as 2026-01-31 or -7d",
    "text": 'text in quotes such as "en"',
}


def expect(name: str, value: Value | None, types: FieldTypes) -> None:
    """Check one condition.

    Args:
        value: the value that the field is compared with; None if the condition only asks whether there is a value.
        types: the types of the index; None for an index without documents, which allows every field.

    Raises:
        FilterError: no document has the field, or nowhere with a value of this type.
    """
    if types is None and name not in COLUMNS:
        return
    known = _types_of(name, types)
    if known and (value is None or type_of(value) in known):
        return
    if "date" in known and value is not None and (isinstance(value, ExactText) or value == "" or as_date(value, known)):
        return
    if known and value is not None:
        example = " or ".join(example for kind, example in _EXAMPLES.items() if kind in known)
        if "number" in known and _is_number(value):
            example = f"{value}, without quotes"
        if name in COLUMNS and f"metadata.{name}" in (types or ()):
            example += f"; the field of your metadata is metadata.{name}"
        comparison = f"field {one_line(name, 80)} cannot be compared with {one_line(show(value), 80)}"
        reason = ", as it holds no date" if isinstance(value, Date) else ""
        raise FilterError(f"filter: {comparison}{reason}: compare it with {example}")
    fields = sorted(name for name in types or () if name not in COLUMNS)
    below = [field for field in fields if field.startswith(f"{name}.")]
    if below and value is None:
        return
    from difflib import get_close_matches

    near = below[:5] or [other for other in _SAME_MEANING.get(name, ()) if other in fields]
    near = near or get_close_matches(name, [*COLUMNS, *fields], n=3, cutoff=0.5)
    hint = f"near: {', '.join(near)}" if near else f"it has: {', '.join([*COLUMNS, *fields[:20]])}"
    raise UnknownField(f'filter: no document has a field "{one_line(name, 80)}"; {one_line(hint, 400)}', name)
