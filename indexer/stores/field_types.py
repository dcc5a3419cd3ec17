"""Which fields a filter may name, and what it may compare them with. Every engine refuses the same filters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

from indexer.errors import FilterError, UnknownField
from indexer.filters.tree import (
    COLUMNS,
    And,
    Compare,
    Exists,
    In,
    Not,
    Or,
    Scalar,
    Type,
    Where,
    one_line,
    show,
    type_of,
)

Known: TypeAlias = Mapping[str, Collection[Type]] | None
"""The types of each field that some document has; None where the index holds no document."""


def check_filter(where: Where, known: Known) -> None:
    """Raise FilterError for the first condition of a filter that names an unknown field, or a value of another type.

    An index without documents (`known` is None) lets every field pass.
    """
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                check_filter(part, known)
        case Not(part):
            check_filter(part, known)
        case Exists(name):
            expect(name, None, known)
        case Compare(name, _, value):
            expect(name, value, known)
        case In(name, values):
            if not values:
                expect(name, None, known)
            for value in {type_of(value): value for value in reversed(values)}.values():
                expect(name, value, known)


_TIME = re.compile(r"\d{4}(?!\d)")  # ISO 8601, whole or its beginning

_EXAMPLE: dict[Type, str] = {
    "number": "a number such as 2020",
    "boolean": "true or false",
    "text": 'text in quotes such as "en"',
}


def expect(name: str, value: Scalar | None, known: Known) -> None:
    """Raise FilterError unless the field is known with this value's type; None: with any, or below it."""
    if known is None and name not in COLUMNS:
        return
    text: tuple[Type] = ("text",)
    types = text if name in COLUMNS else (known or {}).get(name, ())
    timeless = name == "modified" and isinstance(value, str) and not _TIME.match(value)
    if types and (value is None or type_of(value) in types) and not timeless:
        return
    if types and value is not None:
        asked = " or ".join(_EXAMPLE[kind] for kind in sorted(types))
        if name == "modified":
            asked = 'a date in quotes such as "2026-01-31"'
        shown = f"field {one_line(name, 80)} cannot be compared with {one_line(show(value), 80)}"
        raise FilterError(f"filter: {shown}: compare it with {asked}")
    fields = sorted(known or ())
    below = [field for field in fields if field.startswith(f"{name}.")]
    if below and value is None:
        return
    near = below[:5] or difflib.get_close_matches(name, [*COLUMNS, *fields], n=3, cutoff=0.5)
    found = f"near: {', '.join(near)}" if near else f"it has: {', '.join([*COLUMNS, *fields[:20]])}"
    raise UnknownField(f'filter: no field "{one_line(name, 80)}" in this index; {one_line(found, 400)}', name)
