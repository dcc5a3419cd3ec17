"""Metadata as the values that filters compare: each field by its dotted path, with one row for each value.

Members of an object, or of the objects in a list, are under the path of their key (a key with a dot is such a path
already). A list has one row for each different element. null, an empty list and an empty object have no row: they are
missing. A value that no row can hold exactly is an error, never an approximation. A text that reads as a date has a
second row with the microsecond in which that date begins. If a date of a field has a clock that is not UTC, each date
of the field also has a row with the microsecond on its own clock. Every engine flattens in this way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from indexer.errors import BadInput
from indexer.filters.dates import read_date
from indexer.filters.tree import Scalar, Type, metadata_field, type_of

Row: TypeAlias = tuple[str, Type, Scalar]
"""Name of a field as filters write it, type, value. A date is the microseconds since 1970: in UTC if the type is
"date", on its own clock if it is "day"."""

_field = lru_cache(4096)(metadata_field)  # records repeat the same paths
_KINDS: Mapping[type, Type] = {str: "text", int: "number", float: "number", bool: "boolean"}
_MAX_DEPTH = 200  # levels of nesting; Python's json fails somewhat below 1,000


def scalars(uri: str, metadata: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a document's metadata, each once, without the rows of dates.

    Raises:
        BadInput: NaN, infinity, an integer beyond 64 bits, broken Unicode, a value that is not JSON, or one nested
            deeper than JSON libraries read; names uri and field.
    """
    rows: dict[Row, None] = {}
    waiting: list[tuple[str | None, Any, int]] = [(None, metadata, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise BadInput(
                f"{uri}: metadata field {str(path)[:40]!r} is nested more than {_MAX_DEPTH} deep: flatten it"
            )
        kind = _KINDS.get(type(value))
        if kind is not None and path is not None and path.isascii() and _is_plain(value):
            rows[_field(path), kind, value] = None
        elif isinstance(value, Mapping):
            for key, member in value.items():
                if not isinstance(key, str):
                    raise BadInput(f"{uri}: metadata key {key!r} is not text: write it as text")
                waiting.append((key if path is None else f"{path}.{key}", member, depth + 1))
        elif isinstance(value, list | tuple):
            waiting.extend((path, element, depth + 1) for element in value)
        elif value is not None and path is not None:
            _check_scalar(uri, path, value)
            rows[_field(path), type_of(value), value] = None
    return list(rows)


def with_dates(rows: list[Row], modified: str | None) -> list[Row]:
    """Return these rows, and the rows of the dates among them, each once.

    Args:
        modified: the document's own time; its date has a name that no field of the metadata has.
    """
    texts = [(name, value) for name, _, value in (*rows, ("modified", "text", modified)) if isinstance(value, str)]
    dates = [(name, date) for name, text in texts if (date := read_date(text))]
    shifted = {name for name, date in dates if date.offset}
    moments: list[Row] = [(name, "date", date.start) for name, date in dates]
    days: list[Row] = [(name, "day", date.start + date.offset) for name, date in dates if name in shifted]
    return [*rows, *dict.fromkeys(moments + days)]


def _is_plain(value: Any) -> bool:
    """Return whether a value of one of `_KINDS` needs no further check. Most values need none."""
    if isinstance(value, str):
        return value.isascii()
    return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63


def _check_scalar(uri: str, path: str, value: Any) -> None:
    if not isinstance(value, str | int | float):
        kind, way = type(value).__name__, "take its .item()" if hasattr(value, "item") else "write it as text"
        raise BadInput(f"{uri}: metadata field {path!r} holds a {kind}, which is not a JSON value: {way}")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{uri}: metadata field {path!r} is {value}, which cannot be compared: use null")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadInput(f"{uri}: metadata field {path!r} is a whole number beyond 64 bits: write it as text")
    for text in (path, value):
        if isinstance(text, str) and not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise BadInput(f"{uri}: metadata field {path!r} holds half a surrogate pair: repair its encoding")
