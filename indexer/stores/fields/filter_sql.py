"""Filters as SQL: the one walk over a filter's tree, and what the dialect of each engine writes in its own way.

The meaning of a filter is in `indexer.filters.tree`, and the fields that a filter may name are in field_types.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from indexer.errors import FilterError
from indexer.filters.dates import Date
from indexer.filters.operators import Op
from indexer.filters.tree import (
    And,
    Compare,
    ExactText,
    Exists,
    In,
    Not,
    Or,
    Scalar,
    TextMatch,
    Type,
    Under,
    Value,
    Where,
    type_of,
)
from indexer.stores.fields.field_types import FieldTypes, expect, resolve


class Sql(NamedTuple):
    """A boolean expression over a row of the table of documents. It is never NULL.

    Attributes:
        parameters: one for each placeholder, in their order.
        levels: levels of parentheses around `AND` and `OR`.
    """

    text: str
    parameters: tuple[Any, ...] = ()
    levels: int = 0


class Dialect(Protocol):
    """The SQL of one engine. Each method returns whether a document has a value that passes a test."""

    @property
    def max_parameters(self) -> int:
        """Maximum number of parameters of one filter; the engine takes a few more in a statement."""

    @property
    def nothing(self) -> Sql:
        """An expression that is true for no document."""

    def join(self, word: str, parts: Sequence[Sql]) -> Sql:
        """Join one or more expressions by ` AND ` or ` OR `."""

    def exists(self, field: str, below: bool) -> Sql:
        """The field has a value, or with `below` a field below it has one."""

    def equals(self, field: str, kind: Type, values: Sequence[Value]) -> Sql:
        """The field has one of these values, which are all of one type; there is at least one."""

    def compares(self, field: str, kind: Type, op: Op, value: Scalar) -> Sql:
        """The field has a value before or after the given value. A date counts as its microsecond."""

    def passes(self, field: str, op: str, text: str) -> Sql:
        """The field has a text that passes the test of an operator of texts."""


def join_row(word: str, parts: Sequence[Sql]) -> Sql:
    """Join one or more expressions in one pair of parentheses, in their order."""
    if len(parts) == 1:
        return parts[0]
    text = "(" + word.join(part.text for part in parts) + ")"
    parameters = tuple(value for part in parts for value in part.parameters)
    return Sql(text, parameters, 1 + max(part.levels for part in parts))


def compile_where(where: Where, types: FieldTypes, dialect: Dialect) -> Sql:
    """Return a filter as SQL.

    Args:
        types: the types of the index; None for an index without documents, which allows every field.

    Raises:
        FilterError: a field that no document has, a value of a type the field has nowhere, or too many values.
    """
    compiled = _compile(where, types, dialect)
    if len(compiled.parameters) > dialect.max_parameters:
        raise FilterError("filter: too many conditions for one question: use in with a list, or ask in parts")
    return compiled


def _compile(where: Where, types: FieldTypes, dialect: Dialect) -> Sql:  # noqa: PLR0911 - one per kind of node
    match where:
        case And(parts):
            return dialect.join(" AND ", [_compile(part, types, dialect) for part in parts])
        case Or(parts):
            return dialect.join(" OR ", [_compile(part, types, dialect) for part in _merge_lists(parts)])
        case Not(part):
            return _not(_compile(part, types, dialect))
        case Exists(field):
            expect(field, None, types)
            return dialect.exists(field, below=True)
        case Compare() | In():
            return _condition(resolve(where, types), "day" in (types or {}).get(where.field, ()), dialect)
        case TextMatch(field, op, text, negated):
            expect(field, ExactText(text), types)
            passes = dialect.passes(field, op, text)
            return _present_but_not(field, passes, dialect) if negated else passes
        case Under(folder):
            inside = dialect.passes("path", "startswith", where.prefix)
            return dialect.join(" OR ", [inside, dialect.equals("path", "text", (folder,))])


def _condition(where: Compare | In, has_days: bool, dialect: Dialect) -> Sql:
    """Return a condition as SQL.

    Args:
        has_days: the field has rows of days.
    """
    match where:
        case Compare(field, "=" | "!=" as op, value):
            return _condition(In(field, (value,), negated=op == "!="), has_days, dialect)
        case Compare(field, "<" | "<=" | ">" | ">=" as order, Date() as date):
            op, bound = date.bound(order)
            kind = _kind(date, has_days)
            return _test(field, kind, partial(dialect.compares, field, op=op, value=bound), dialect)
        case Compare(field, op, value):
            assert not isinstance(value, Date)
            return dialect.compares(field, type_of(value), op, value)
        case In(field, values, negated):
            by_type: dict[Type, list[Value]] = {}
            for value in values:
                by_type.setdefault(_kind(value, has_days), []).append(value)
            parts = [
                _test(field, kind, partial(dialect.equals, field, values=group), dialect)
                for kind, group in by_type.items()
            ]
            equal = dialect.join(" OR ", parts) if parts else dialect.nothing
            return _present_but_not(field, equal, dialect) if negated else equal


def _kind(value: Value, has_days: bool) -> Type:
    return "day" if has_days and isinstance(value, Date) and not value.has_clock else type_of(value)


def _test(field: str, kind: Type, test: Callable[[Type], Sql], dialect: Dialect) -> Sql:
    """Return a test of values of a type. A document without days in this field has only dates in UTC."""
    if kind != "day":
        return test(kind)
    without_days = _not(dialect.compares(field, "day", ">=", -(2**63)))
    return dialect.join(" OR ", [test("day"), dialect.join(" AND ", [test("date"), without_days])])


def _not(part: Sql) -> Sql:
    return Sql(f"NOT {part.text}", part.parameters, part.levels)


def _present_but_not(field: str, part: Sql, dialect: Dialect) -> Sql:
    return dialect.join(" AND ", [dialect.exists(field, below=False), _not(part)])


def _merge_lists(parts: Iterable[Where]) -> list[Where]:
    """Merge `x = 1 or x = 2` into one list: one look-up per field instead of one per value."""
    lists: dict[str, list[Value]] = {}
    rest: list[Where] = []
    for part in parts:
        match part:
            case Compare(field, "=", value):
                lists.setdefault(field, []).append(value)
            case In(field, values, False):
                lists.setdefault(field, []).extend(values)
            case _:
                rest.append(part)
    return [*(In(field, tuple(values)) for field, values in lists.items()), *rest]
