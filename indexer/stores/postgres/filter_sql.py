"""Filters over PostgreSQL: metadata as rows of field and value, and a filter's tree as a condition with parameters.

The meaning of a filter is in `indexer.filters.tree`, the flattening of metadata in flatten.py, and the fields that a
filter may name are in field_types.py. Values are never a part of the SQL. Texts are compared in the collation "C",
which orders UTF-8 by code point as Python does, and looked up by their first LOOKED_UP characters, as an index takes no
longer ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from indexer.errors import BadInput, FilterError
from indexer.filters.dates import Date, day_of
from indexer.filters.like import folding, in_sql
from indexer.filters.prefix import end_of_prefix
from indexer.filters.tree import (
    COLUMNS,
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
from indexer.stores.field_types import KEEPS_DATES, FieldTypes, expect, resolve
from indexer.stores.flatten import Row
from indexer.stores.port import MAX_VALUE_CHARACTERS, FieldValues
from indexer.stores.postgres.connections import DeadlineConnection
from indexer.stores.postgres.schema import statement

LOOKED_UP = 200
"""Characters of a text by which the indexes find it (schema.py)."""

_MAX_PARAMETERS = 30_000


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over a row `d` of the table `document`, and the parameters of its placeholders. It is never NULL."""

    text: str
    parameters: tuple[Any, ...]


def write_fields(connection: DeadlineConnection, tables: str, documents: Iterable[tuple[int, Sequence[Row]]]) -> None:
    """Insert the rows of documents, given with their ids, within the caller's transaction.

    Raises:
        BadInput: a name or a text holds the character NUL, which PostgreSQL cannot hold.
    """
    documents = [(document, rows) for document, rows in documents if rows]
    names = sorted({(name, kind) for _, rows in documents for name, kind, _ in rows})
    if not names:
        return
    for _, rows in documents:
        for name, _, value in rows:
            if "\0" in name or (isinstance(value, str) and "\0" in value):
                raise BadInput(f"metadata field {name[:40]!r} holds the character NUL: PostgreSQL cannot hold it")
    with connection.cursor() as cursor:
        cursor.executemany(
            statement("INSERT INTO {tables}.field (name, type) VALUES (%s, %s) ON CONFLICT DO NOTHING", tables), names
        )
        found = cursor.execute(statement("SELECT name, type, id FROM {tables}.field", tables)).fetchall()
        ids = {(name, kind): id_ for name, kind, id_ in found}
        rows_of = statement("COPY {tables}.field_value (field_id, document_id, number, text) FROM STDIN", tables)
        with cursor.copy(rows_of) as copy:
            for document, rows in documents:
                for name, kind, value in rows:
                    text = isinstance(value, str)
                    number = None if isinstance(value, str) else _number(value)
                    copy.write_row((ids[name, kind], document, number, value if text else None))


def erase_fields(connection: DeadlineConnection, tables: str, documents: Sequence[int]) -> None:
    """Delete the rows of these documents, within the caller's transaction."""
    connection.execute(
        statement("DELETE FROM {tables}.field_value WHERE document_id = ANY(%s)", tables), (list(documents),)
    )


def _number(value: Scalar) -> Decimal:
    """Return a number as it is compared: exactly, so that 2**63 - 1 is not the float next to it."""
    return Decimal(value)


FieldIds = Mapping[tuple[str, Type], int]
"""The id of each field by name and type: with it, and not with a look-up, the planner knows how many rows to expect."""


def read_field_types(
    rows: Callable[[str], Iterable[tuple[str, Type, int]]],
) -> tuple[dict[str, frozenset[Type]], dict[tuple[str, Type], int]]:
    """Return the types of each field that some document has, and the ids of these fields.

    Args:
        rows: runs a statement over the tables of the index.
    """
    types: dict[str, frozenset[Type]] = dict(KEEPS_DATES)
    used = list(
        rows(
            "SELECT name, type, id FROM {tables}.field f WHERE EXISTS"
            " (SELECT FROM {tables}.field_value v WHERE v.field_id = f.id AND v.number IS NOT NULL)"
            " OR EXISTS (SELECT FROM {tables}.field_value v WHERE v.field_id = f.id AND v.text IS NOT NULL)"
        )
    )
    for name, kind, _ in used:
        types[name] = types.get(name, frozenset()) | {kind}
    return types, {(name, kind): id_ for name, kind, id_ in used}


def read_values(connection: DeadlineConnection, tables: str, name: str, limit: int) -> FieldValues:
    """Return the values of a field, and the most frequent of them."""

    def rows(text: str, *parameters: Any) -> list[Any]:
        return connection.execute(statement(text, tables), parameters).fetchall()

    ids: dict[Type, int] = dict(rows("SELECT type, id FROM {tables}.field WHERE name = %s", name))
    extremes = "SELECT min(number), max(number) FROM {tables}.field_value WHERE field_id = %s AND number IS NOT NULL"
    days = None
    if date_field := ids.pop("date", None):
        ((first, last),) = rows(extremes, date_field)
        days = None if first is None else (day_of(int(first)), day_of(int(last)))
    if name in COLUMNS:
        used = f"FROM {{tables}}.document WHERE {name} <> ''"  # null is not different from anything either
        ((documents,),) = rows(f"SELECT count(*) {used}")
        counts = rows(
            f"SELECT {name}, count(*) AS n {used} AND length({name}) <= %s GROUP BY {name} ORDER BY n DESC, {name}"
            " LIMIT %s",
            *(MAX_VALUE_CHARACTERS, limit),
        )
        return FieldValues(documents, tuple(counts), days=days)
    frequent: list[tuple[Scalar, int]] = []
    numbers = None
    for kind in sorted(ids):
        column = "text" if kind == "text" else "number"
        counts = rows(
            f"SELECT {column}, count(*) AS n FROM {{tables}}.field_value WHERE field_id = %s AND {column} IS NOT NULL"
            f" AND length({column}::text) <= %s GROUP BY {column} ORDER BY n DESC, {column} LIMIT %s",
            *(ids[kind], MAX_VALUE_CHARACTERS if kind == "text" else 10**6, limit),
        )
        frequent += [(_read(kind, value), count) for value, count in counts]
        if kind == "number":
            ((smallest, largest),) = rows(extremes, ids[kind])
            numbers = None if smallest is None else (_plain(smallest), _plain(largest))
    frequent.sort(key=lambda pair: -pair[1])  # stable: equal numbers stay in the order of type and value
    distinct = "SELECT count(DISTINCT document_id) FROM {tables}.field_value WHERE field_id = ANY(%s)"
    ((documents,),) = rows(distinct, list(ids.values()))
    return FieldValues(documents, tuple(frequent[:limit]), numbers, days)


def _read(kind: Type, value: Any) -> Scalar:
    if kind == "text":
        return str(value)
    return bool(value) if kind == "boolean" else _plain(value)


def _plain(value: Decimal) -> int | float:
    """Return a stored number: whole ones of up to 64 bits as such."""
    return int(value) if value == value.to_integral_value() and -(2**63) <= value < 2**63 else float(value)


def compile_where(where: Where, types: FieldTypes, ids: FieldIds) -> Condition:
    """Return a filter as a condition over a row `d` of `document`; `{tables}` in it stands for the schema.

    Args:
        types: of an index without documents None, which allows every field.
        ids: of all fields that documents have.

    Raises:
        FilterError: a field that no document has, a value of a type the field has nowhere, or too many values.
    """
    compiled = _compile(where, types, ids)
    if len(compiled.parameters) > _MAX_PARAMETERS:
        raise FilterError("filter: too many conditions for one question: use in with a list, or ask in parts")
    return compiled


def _compile(where: Where, types: FieldTypes, ids: FieldIds) -> Condition:  # noqa: PLR0911 - one per kind of node
    match where:
        case And(parts):
            return _join(" AND ", [_compile(part, types, ids) for part in parts])
        case Or(parts):
            return _join(" OR ", [_compile(part, types, ids) for part in parts])
        case Not(part):
            inner = _compile(part, types, ids)
            return Condition(f"NOT {inner.text}", inner.parameters)
        case Exists(name):
            expect(name, None, types)
            return _exists(name, ids, below=True)
        case Compare() | In():
            return _condition(resolve(where, types), ids)
        case TextMatch(name, _, text):
            expect(name, ExactText(text), types)
            return _text_match(where, ids)
        case Under():
            return _beginning("path", ids, where.prefix)


def _join(word: str, parts: Sequence[Condition]) -> Condition:
    if len(parts) == 1:
        return parts[0]
    text = "(" + word.join(part.text for part in parts) + ")"
    return Condition(text, tuple(value for part in parts for value in part.parameters))


def _condition(where: Compare | In, ids: FieldIds) -> Condition:
    match where:
        case Compare(name, "=" | "!=", value):
            return _condition(In(name, (value,), negated=where.op == "!="), ids)
        case Compare(name, "<" | "<=" | ">" | ">=" as order, Date() as date):
            way, bound = date.bound(order)
            return _numbers(ids.get((name, "date")), f"number {way} %s", [bound])
        case Compare(name, op, str() as text):
            inclusive = op if len(op) == 2 else f"{op}="
            if len(text) < LOOKED_UP:  # the first characters decide
                return _texts(name, ids, f"left({{column}}, {LOOKED_UP}) {op} %s", [text])
            test = f"{{column}} {op} %s AND left({{column}}, {LOOKED_UP}) {inclusive} %s"
            return _texts(name, ids, test, [text, text[:LOOKED_UP]])
        case Compare(name, op, value):
            return _numbers(ids.get((name, type_of(value))), f"number {op} %s", [_exact(value)])
        case In(name, values, negated):
            by_type: dict[Type, list[Value]] = {}
            for value in values:
                by_type.setdefault(type_of(value), []).append(value)
            equal = Condition("false", ())
            if by_type:
                equal = _join(" OR ", [_equal(name, ids, kind, group) for kind, group in by_type.items()])
            different = Condition(f"NOT {equal.text}", equal.parameters)
            return _join(" AND ", [_exists(name, ids), different]) if negated else equal


def _text_match(where: TextMatch, ids: FieldIds) -> Condition:
    name, text = where.field, where.text
    if where.op == "startswith":
        passes = _beginning(name, ids, text)
    elif where.op == "contains":
        passes = _texts(name, ids, "strpos({column}, %s) > 0", [text])
    elif where.op == "endswith":
        passes = _texts(name, ids, f"right({{column}}, {len(text)}) = %s", [text])
    else:
        passes = _texts(name, ids, f"{_folded()} LIKE %s", [in_sql(text)])
    if not where.negated:
        return passes
    return _join(" AND ", [_exists(name, ids), Condition(f"NOT {passes.text}", passes.parameters)])


def _beginning(name: str, ids: FieldIds, prefix: str) -> Condition:
    """Return whether a text begins with a prefix: by the index as far as that goes, and then all of it."""
    test, values = f"starts_with({{column}}, %s) AND left({{column}}, {LOOKED_UP}) >= %s", [prefix, prefix[:LOOKED_UP]]
    if (end := end_of_prefix(prefix[:LOOKED_UP])) is not None:
        test, values = f"{test} AND left({{column}}, {LOOKED_UP}) < %s", [*values, end]
    return _texts(name, ids, test, values)


@cache
def _folded() -> str:
    """Return Unicode's casefold of {column} as an expression: `lower` folds fewer letters, by the server's locale."""
    single, several = folding()
    text = "{column}"
    for character, folded in several.items():
        text = f"replace({text}, '{character}', '{folded}')"
    text = f"translate({text}, '{''.join(single)}', '{''.join(single.values())}')"
    ascii_only = "octet_length({column}) = length({column})"
    return f'CASE WHEN {ascii_only} THEN lower({{column}} COLLATE "C") ELSE {text} END'


def _equal(name: str, ids: FieldIds, kind: Type, values: Sequence[Value]) -> Condition:
    field = ids.get((name, kind))
    if kind == "date":
        spans = sorted((value.start, value.end) for value in values if isinstance(value, Date))
        if len(spans) == 1:
            return _numbers(field, "number >= %s AND number < %s", list(spans[0]))
        starts, ends = zip(*spans, strict=True)
        inside = (
            "EXISTS (SELECT FROM unnest(%s::numeric[], %s::numeric[]) AS span (a, b) WHERE number >= a AND number < b)"
        )
        return _numbers(field, inside, [list(starts), list(ends)])
    if kind == "text":
        texts = [str(value) for value in values]
        looked_up = f"left({{column}}, {LOOKED_UP}) = ANY(%s::text[])"
        if all(len(text) < LOOKED_UP for text in texts):
            return _texts(name, ids, looked_up, [texts])
        return _texts(
            name, ids, f"{{column}} = ANY(%s::text[]) AND {looked_up}", [texts, [text[:LOOKED_UP] for text in texts]]
        )
    return _numbers(field, "number = ANY(%s::numeric[])", [[_exact(value) for value in values]])


def _exact(value: Value) -> Decimal:
    if isinstance(value, str | Date):
        raise TypeError("a number is needed")
    if isinstance(value, float) and math.isnan(value):  # equal to nothing, and in no order: numeric has an order for it
        raise FilterError("filter: NaN cannot be compared with")
    return Decimal(value)


_ROWS = "d.id IN (SELECT document_id FROM {tables}.field_value WHERE "
_NOTHING = Condition("false", ())


def _numbers(field: int | None, test: str, values: Sequence[Any]) -> Condition:
    return _NOTHING if field is None else Condition(f"{_ROWS}field_id = {field} AND {test})", tuple(values))


def _texts(name: str, ids: FieldIds, test: str, values: Sequence[Any]) -> Condition:
    """Compare a column of the document, or a field's text. A NUL is in no stored text, and below every character."""
    values = [_without_nul(value) for value in values]
    if name in COLUMNS:
        column = f"d.{name}"
        return Condition(
            f"({column} IS NOT NULL AND {column} <> '' AND {test.replace('{column}', column)})", tuple(values)
        )
    field = ids.get((name, "text"))
    if field is None:
        return _NOTHING
    test = test.replace("{column}", "text")
    return Condition(f"{_ROWS}field_id = {field} AND text IS NOT NULL AND {test})", tuple(values))


def _without_nul(value: Any) -> Any:
    if isinstance(value, list):
        return [text for text in value if "\0" not in text]
    if "\0" in value:
        raise FilterError("filter: a text with the character NUL is in no index of PostgreSQL")
    return value


def _exists(name: str, ids: FieldIds, below: bool = False) -> Condition:
    if name in COLUMNS:
        return Condition(f"(d.{name} IS NOT NULL AND d.{name} <> '')", ())
    fields = [id_ for (field, _), id_ in ids.items() if field == name or (below and field.startswith(f"{name}."))]
    found = "field_id = ANY(%s::integer[])"  # twice, as each of the two indexes has the rows of one column
    return Condition(
        f"{_ROWS}({found} AND number IS NOT NULL) OR ({found} AND text IS NOT NULL))", (sorted(fields), sorted(fields))
    )
