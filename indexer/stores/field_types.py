"""The fields that a filter may name, and the values it may compare them with. Every engine refuses the same filters."""

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

FieldTypes: TypeAlias = Mapping[str, Collection[Type]] | None
"""The types of each field that some document has; None where the index holds no document."""


def check_filter(where: Where, types: FieldTypes) -> None:
    """Check every condition of a filter.

    Args:
        types: of an index without documents None, which allows every field.

    Raises:
        FilterError: a condition names an unknown field, or a value of a type that the field does not have.
    """
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                check_filter(part, types)
        case Not(part):
            check_filter(part, types)
        case Exists(name):
            expect(name, None, types)
        case Compare(name, _, value):
            expect(name, value, types)
        case In(name, values):
            if not values:
                expect(name, None, types)
            for value in {type_of(value): value for value in reversed(values)}.values():
                expect(name, value, types)


_YEAR = re.compile(r"\d{4}(?!\d)")  # the beginning of a date in ISO 8601

_EXAMPLES: dict[Type, str] = {
    "number": "a number such as 2020",
    "boolean": "true or false",
    "text": 'text in quotes such as "en"',
}


def expect(name: str, value: Scalar | None, types: FieldTypes) -> None:
    """Check one condition.

    Args:
        value: the value that the field is compared with; None where the condition asks whether there is any.
        types: of an index without documents None, which allows every field.

    Raises:
        FilterError: no document has the field, or nowhere with a value of this type.
    """
    if types is None and name not in COLUMNS:
        return
    text: tuple[Type] = ("text",)
    known = text if name in COLUMNS else (types or {}).get(name, ())
    is_wrong_time = name == "modified" and isinstance(value, str) and not _YEAR.match(value)
    if known and (value is None or type_of(value) in known) and not is_wrong_time:
        return
    if known and value is not None:
        example = " or ".join(_EXAMPLES[kind] for kind in sorted(known))
        if name == "modified":
            example = 'a date in quotes such as "2026-01-31"'
        comparison = f"field {one_line(name, 80)} cannot be compared with {one_line(show(value), 80)}"
        raise FilterError(f"filter: {comparison}: compare it with {example}")
    fields = sorted(types or ())
    below = [field for field in fields if field.startswith(f"{name}.")]
    if below and value is None:
        return
    near = below[:5] or difflib.get_close_matches(name, [*COLUMNS, *fields], n=3, cutoff=0.5)
    hint = f"near: {', '.join(near)}" if near else f"it has: {', '.join([*COLUMNS, *fields[:20]])}"
    raise UnknownField(f'filter: no field "{one_line(name, 80)}" in this index; {one_line(hint, 400)}', name)
