"""The tree of a filter such as `year >= 2020 and lang in ("en", "de")`, and its meaning.

Text becomes a tree in grammar.py. The stores turn a tree into SQL, and know which fields exist.

Meaning: a missing field satisfies no comparison, not even `!=` and `not in`, and null is missing. `exists` tests
presence, and `not` negates the condition that follows. A field of several values satisfies `=`, `<` and so on if any
value does, and `!=` or `not in` if no value is equal. Numbers, booleans and text are never equal to one another, and
have no order among one another. Text is ordered by code point.

A `Date` is compared with the texts that read as dates (dates.py), each by its first moment: that is equal to a date
which holds it, before one that begins later, and after one that has ended. A year, month or day is compared with the
day that the text writes, in any time zone. What a text in quotes is compared with
depends on the field; the stores decide it (`indexer.stores.fields.field_types`).

`contains`, `startswith`, `endswith` and `like` hold for the texts of a field, also where they read as dates: of several
values for any. All but `like` compare code points exactly; the patterns of `like` are in like.py. `under` holds for a
path inside a folder.

A field is a dotted path into the metadata, or one of `COLUMNS`. `metadata.X` always means the metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexer.errors import FilterError
from indexer.filters.dates import Date, read_date
from indexer.filters.operators import COMPARE, COMPARISONS, TEXT_OPERATORS, Op
from indexer.lazy_property import LazyProperty

Scalar: TypeAlias = str | int | float | bool
"""One value of a metadata field."""


class ExactText(str):
    """A text that equals only the same text, also in a field of dates. Adapters use it for exact comparisons."""

    __slots__ = ()


Value: TypeAlias = Scalar | Date
"""A value that a filter compares with."""

Type = Literal["number", "boolean", "text", "date", "day"]
"""The type of a row of a field. A date is stored as a moment, and as a day too if its clock is not UTC (flatten.py)."""

COLUMNS = ("uri", "title", "path", "format", "modified")
"""Fields of the document itself. All are text, and empty means missing."""

MAX_DEPTH = 32
"""Maximum levels of nested and, or and not: SQLite's parser has a stack of 100 tokens for the whole statement."""

KEYWORDS = ("and", "or", "not", "in", "exists", "true", "false", "null")
BARE = r"[^\W\d][\w-]*(?:\.[\w-]+)*"
"""A field name that needs no backticks, unless it is a keyword."""


@dataclass(frozen=True, slots=True)
class Compare:
    """`field op value`. Raises FilterError for another operator, or a value of another type."""

    field: str
    op: Op
    value: Value

    def __post_init__(self) -> None:
        if self.op not in COMPARISONS:  # it becomes a part of the SQL
            raise FilterError(f"filter: {self.op!r:.40} is not a comparison: use one of {' '.join(COMPARISONS)}")
        _require_values(self.field, (self.value,))


@dataclass(frozen=True)
class In:
    """`field in (values)`. Negated, the field is present and equal to none of them.

    Raises FilterError for a value of another type.
    """

    field: str
    values: tuple[Value, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        _require_values(self.field, self.values)

    @LazyProperty
    def keys(self) -> frozenset[tuple[Type, Scalar]]:
        return frozenset((type_of(value), value) for value in self.values if not isinstance(value, Date))

    @LazyProperty
    def dates(self) -> tuple[Date, ...]:
        return tuple(value for value in self.values if isinstance(value, Date))


@dataclass(frozen=True, slots=True)
class TextMatch:
    """`field op text`: some text of the field contains, begins with, ends with, or is like the text.

    `like` takes a pattern (like.py) and ignores case by Unicode casefold; the others compare code points exactly, and
    every text contains the empty one. Negated, the field is present (also with values that are not texts) and none of
    its texts passes.

    Raises FilterError for another operator, or for what is not a string.
    """

    field: str
    op: str
    text: str
    negated: bool = False

    def __post_init__(self) -> None:
        if self.op not in TEXT_OPERATORS:
            names = " ".join(TEXT_OPERATORS)
            raise FilterError(f"filter: {self.op!r:.40} is not a comparison of texts: use one of {names}")
        if not isinstance(self.text, str):
            kind = type(self.text).__name__
            raise FilterError(f"filter: {one_line(self.field, 80)}: {self.op} takes text, not a {kind}")


@dataclass(frozen=True, slots=True)
class Under:
    """The column `path` is inside the folder at any depth, or is the folder itself: then it is a file with records.

    Attributes:
        folder: absolute and without `.`, `..` or a separator at its end, as `absolute_folder` returns it: a stored
            filter means the same in another working folder. Raises FilterError for any other folder.
    """

    folder: str

    def __post_init__(self) -> None:
        if not isinstance(self.folder, str) or absolute_folder(self.folder) != self.folder:
            raise FilterError(f"filter: under takes an absolute folder, not {self.folder!r:.80}")

    @property
    def prefix(self) -> str:
        """The beginning of every path inside the folder."""
        return self.folder if self.folder == os.sep else self.folder + os.sep


def absolute_folder(folder: str) -> str:
    """Return the absolute path of a folder, which may be relative to the working folder or to a home folder (~).

    Links are not followed, because the recorded paths of documents keep links too.

    Raises:
        FilterError: the path is empty or contains a NUL, or there is no working folder.
    """
    if not folder or "\0" in folder:
        raise FilterError('filter: under takes the name of a folder, such as "notes", or "." for the working folder')
    try:
        path = os.path.abspath(os.path.expanduser(folder))  # noqa: PTH100, PTH111 - pathlib keeps ".."
    except OSError as error:
        raise FilterError(f"filter: there is no working folder ({error.strerror}): name an absolute one") from error
    return os.sep + path.lstrip(os.sep)  # POSIX keeps two separators at the beginning


@dataclass(frozen=True, slots=True)
class Exists:
    """The field, or a field below it, has a value."""

    field: str


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds. Raises FilterError without parts."""

    parts: tuple[Where, ...]

    def __post_init__(self) -> None:
        _require_parts("and", self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds. Raises FilterError without parts."""

    parts: tuple[Where, ...]

    def __post_init__(self) -> None:
        _require_parts("or", self.parts)


def _require_values(name: str, values: tuple[Value, ...]) -> None:
    for value in values:
        if not isinstance(value, str | int | float | Date):
            kind = type(value).__name__
            raise FilterError(
                f"filter: {one_line(name, 80)}: a {kind} is not a value: use text, a number, a date, True or False"
            )


def _require_parts(name: str, parts: tuple[Where, ...]) -> None:
    if not parts:
        raise FilterError(f"filter: {name} joins no conditions: give at least one, or leave the filter out")


@dataclass(frozen=True, slots=True)
class Not:
    part: Where


Condition: TypeAlias = Compare | In | TextMatch | Under | Exists
Where: TypeAlias = Condition | And | Or | Not


class FilterSyntaxError(FilterError):
    """A filter that does not parse.

    Attributes:
        text: the filter.
        position: offset in it where it went wrong, in code points, 0-based; its length for the end.
        caret: two more lines for a terminal: the filter, and a mark below the wrong place.
    """

    def __init__(self, problem: str, hint: str, text: str, position: int) -> None:
        start = max(0, position - 60) if len(text) > 120 else 0
        shown = ("…" if start else "") + one_line(text[start:], 120)
        hint = f" ({one_line(hint, 160)})" if hint else ""
        super().__init__(f"filter: {one_line(problem, 160)}{hint} at character {position + 1}: {shown}")
        self.text, self.position = text, position
        self.caret = f"\n  {shown}\n  {' ' * (position - start + bool(start))}^"


def one_line(text: str, length: int) -> str:
    """Return the first characters of a text for a message, with a space for each that does not print."""
    shown = "".join(c if c.isprintable() else " " for c in text[:length])
    return shown + ("…" if len(text) > length else "")


def type_of(value: Value) -> Type:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    return "date" if isinstance(value, Date) else "number"


def metadata_field(path: str) -> str:
    """Return the name by which a filter refers to this dotted path into the metadata."""
    return f"metadata.{path}" if path.split(".", 1)[0] in (*COLUMNS, "metadata") else path


Fields: TypeAlias = Mapping[str, Scalar | list[Scalar | None] | None]
"""Values of a document: columns by their names, metadata by the names that `metadata_field` returns."""


def conditions(where: Where) -> Iterator[Condition]:
    """Iterate over the conditions of a filter, from left to right."""
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from conditions(part)
        case Not(part):
            yield from conditions(part)
        case condition:
            yield condition


def matches(where: Where, fields: Fields) -> bool:  # noqa: PLR0911 - one per kind of node
    """Return whether a filter leaves a document with these fields. Every store must agree with this function."""
    match where:
        case And(parts):
            return all(matches(part, fields) for part in parts)
        case Or(parts):
            return any(matches(part, fields) for part in parts)
        case Not(part):
            return not matches(part, fields)
        case Exists(name):
            return bool(_values(name, fields)) or (
                name not in COLUMNS and any(_values(other, fields) for other in fields if other.startswith(name + "."))
            )
        case Compare(name, "!=", value):
            return matches(In(name, (value,), negated=True), fields)
        case Compare(name, "=", Date() as value):
            return matches(In(name, (value,)), fields)
        case Compare(name, "<" | "<=" | ">" | ">=" as order, Date() as value):
            way, bound = value.bound(order)
            return any(COMPARE[way](place, bound) for place in _places(_values(name, fields), value))
        case Compare(name, op, value):
            same = (v for v in _values(name, fields) if type_of(v) == type_of(value))
            return any(COMPARE[op](v, value) for v in same)
        case In(name):
            values = _values(name, fields)
            equal = any((type_of(v), v) in where.keys for v in values) or any(
                date.holds(place) for date in where.dates for place in _places(values, date)
            )
            return bool(values) and where.negated != equal
        case TextMatch(name, op, text, negated):
            values = _values(name, fields)
            return bool(values) and negated != any(
                isinstance(v, str) and TEXT_OPERATORS[op].passes(v, text) for v in values
            )
        case Under():
            paths = [path for path in _values("path", fields) if isinstance(path, str)]
            return any(path == where.folder or path.startswith(where.prefix) for path in paths)


def _values(name: str, fields: Fields) -> list[Scalar]:
    value = fields.get(name)
    values = value if isinstance(value, list) else [value]
    return [v for v in values if v is not None and not (v == "" and name in COLUMNS)]


def _places(values: Iterable[Scalar], date: Date) -> list[int]:
    dates = (read_date(value) for value in values if isinstance(value, str))
    return [date.place(stored) for stored in dates if stored is not None]


def render(where: Where) -> str:  # noqa: PLR0911 - one per kind of node
    """Return a filter as text, for which `parse` returns the same tree."""
    match where:
        case And(parts) | Or(parts):
            word = " and " if isinstance(where, And) else " or "
            return word.join(f"({render(p)})" if isinstance(p, And | Or) else render(p) for p in parts)
        case Not(part):
            return f"not ({render(part)})" if isinstance(part, And | Or) else f"not {render(part)}"
        case Exists(name):
            return f"exists {_name(name)}"
        case Compare(name, op, value):
            return f"{_name(name)} {op} {show(value)}"
        case In(name, values, negated):
            return f"{_name(name)} {'not ' if negated else ''}in ({', '.join(map(show, values))})"
        case TextMatch(name, op, text, negated):
            return f"{_name(name)} {'not ' if negated else ''}{op} {show(text)}"
        case Under(folder):
            return f"under {show(folder)}"


def show(value: Value) -> str:
    """Return a value in the form in which a filter writes it."""
    if isinstance(value, Date):
        return value.text
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower()


def _name(name: str) -> str:
    if re.fullmatch(BARE, name) and name.lower() not in KEYWORDS:
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
