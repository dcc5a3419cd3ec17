"""Filters over PostgreSQL: metadata as rows of field and value, and the dialect for filters over them.

The flattening of metadata is in flatten.py, and the walk over a filter's tree in stores/fields/filter_sql.py. Values
are never a part of the SQL. Texts are compared in the collation "C", which orders UTF-8 by code point as Python does.
They are looked up by their first LOOKED_UP characters, because an index takes no longer text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar

from indexer.errors import FilterError
from indexer.filters.dates import Date
from indexer.filters.like import folding, in_sql
from indexer.filters.operators import Op
from indexer.filters.prefix import end_of_prefix
from indexer.filters.tree import COLUMNS, Scalar, Type, Value
from indexer.stores.fields.field_types import only_dates
from indexer.stores.fields.filter_sql import Sql, join_row
from indexer.stores.fields.flatten import Row
from likewise.postgres.connections import DeadlineConnection
from likewise.postgres.schema import statement

LOOKED_UP = 200
"""Characters of a text by which the indexes find it (schema.py)."""


def write_fields(connection: DeadlineConnection, tables: str, documents: Iterable[tuple[int, Sequence[Row]]]) -> None:
    """Insert the rows of documents, given with their ids, within the caller's transaction. None has the character NUL,
    which PostgreSQL cannot hold."""
    documents = [(document, rows) for document, rows in documents if rows]
    names = sorted({(name, kind) for _, rows in documents for name, kind, _ in rows})
    if not names:
        return
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
                    # Decimal numbers are compared exactly: 2**63 - 1 is not the float next to it.
                    number, text = (None, value) if isinstance(value, str) else (Decimal(value), None)
                    copy.write_row((ids[name, kind], document, number, text))


def erase_fields(connection: DeadlineConnection, tables: str, documents: Sequence[int]) -> None:
    """Delete the rows of these documents, within the caller's transaction."""
    connection.execute(
        statement("DELETE FROM {tables}.field_value WHERE document_id = ANY(%s)", tables), (list(documents),)
    )


FieldIds = Mapping[tuple[str, Type], int]
"""The id of each field by name and type. If a statement contains the id, the planner knows how many rows to expect."""


def read_field_types(
    rows: Callable[[str], Iterable[Any]], *, distributed: bool
) -> tuple[dict[str, frozenset[Type]], dict[tuple[str, Type], int]]:
    """Return the types of each field that some document has, and the ids of these fields.

    Args:
        rows: runs a statement over the tables of the index.
    """
    types: dict[str, frozenset[Type]] = {}
    if distributed:  # where no table of the coordinator can be compared with those of the nodes
        ids = {id_ for (id_,) in rows("SELECT DISTINCT field_id FROM {tables}.field_value")}
        used = [row for row in rows("SELECT name, type, id FROM {tables}.field") if row[2] in ids]
    else:
        used = list(
            rows(
                "SELECT name, type, id FROM {tables}.field f WHERE EXISTS"
                " (SELECT FROM {tables}.field_value v WHERE v.field_id = f.id AND v.number IS NOT NULL)"
                " OR EXISTS (SELECT FROM {tables}.field_value v WHERE v.field_id = f.id AND v.text IS NOT NULL)"
            )
        )
    for name, kind, _ in used:
        types[name] = types.get(name, frozenset()) | {kind}
    field_ids = {(name, kind): id_ for name, kind, id_ in used}
    for name, kinds in types.items():
        if {"date", "text"} <= kinds:
            text = f"left(text, {LOOKED_UP})"
            (ends,) = rows(
                f"SELECT min({text}), max({text}) FROM {{tables}}.field_value"
                f" WHERE field_id = {field_ids[name, 'text']} AND text IS NOT NULL AND {text} > ''"
            )
            if only_dates(*ends):
                types[name] = kinds - {"text"}
    return types, field_ids


@dataclass(frozen=True, slots=True)
class PostgresDialect:
    """The dialect of PostgreSQL, over a row `d` of `document`; `{tables}` in it stands for the schema.

    Attributes:
        ids: ids of all fields that documents have.
        by_row: write SQL that looks up the values of one document, for a statement that tests few documents. Otherwise
            the planner chooses, and may read the values of all documents.
    """

    ids: FieldIds
    by_row: bool = False

    max_parameters: ClassVar[int] = 30_000
    nothing: ClassVar[Sql] = Sql("false")

    def join(self, word: str, parts: Sequence[Sql]) -> Sql:
        return join_row(word, parts)

    def exists(self, field: str, below: bool) -> Sql:
        if field in COLUMNS:
            return Sql(f"(d.{field} IS NOT NULL AND d.{field} <> '')")
        ids = sorted(
            id_ for (name, _), id_ in self.ids.items() if name == field or (below and name.startswith(f"{field}."))
        )
        found = "field_id = ANY(%s::integer[])"  # twice, as each of the two indexes has the rows of one column
        return self._has(f"(({found} AND number IS NOT NULL) OR ({found} AND text IS NOT NULL))", (ids, ids))

    def equals(self, field: str, kind: Type, values: Sequence[Value]) -> Sql:
        spans = sorted((value.start, value.end) for value in values if isinstance(value, Date))
        if len(spans) == 1:
            return self._numbers(field, kind, "number >= %s AND number < %s", list(spans[0]))
        if spans:
            starts, ends = zip(*spans, strict=True)
            span = "SELECT FROM unnest(%s::numeric[], %s::numeric[]) AS span (a, b) WHERE number >= a AND number < b"
            return self._numbers(field, kind, f"EXISTS ({span})", [list(starts), list(ends)])
        if kind == "text":
            texts = [str(value) for value in values]
            looked_up = f"left({{0}}, {LOOKED_UP}) = ANY(%s::text[])"
            if all(len(text) < LOOKED_UP for text in texts):
                return self._texts(field, looked_up, [texts])
            first = [text[:LOOKED_UP] for text in texts]
            return self._texts(field, f"{{0}} = ANY(%s::text[]) AND {looked_up}", [texts, first])
        return self._numbers(field, kind, "number = ANY(%s::numeric[])", [[_exact(value) for value in values]])

    def compares(self, field: str, kind: Type, op: Op, value: Scalar) -> Sql:
        if not isinstance(value, str):
            return self._numbers(field, kind, f"number {op} %s", [_exact(value)])
        if "\0" in value:  # texts here have no NUL, so that none is between this value and what comes before its NUL
            op, value = "<=" if op in ("<", "<=") else ">", value[: value.index("\0")]
        if len(value) < LOOKED_UP:  # the first characters decide
            return self._texts(field, f"left({{0}}, {LOOKED_UP}) {op} %s", [value])
        inclusive = op if len(op) == 2 else f"{op}="
        test = f"{{0}} {op} %s AND left({{0}}, {LOOKED_UP}) {inclusive} %s"
        return self._texts(field, test, [value, value[:LOOKED_UP]])

    def passes(self, field: str, op: str, text: str) -> Sql:
        return self.nothing if "\0" in text else self._texts(field, *_TEXT_TESTS[op](text))

    def _numbers(self, field: str, kind: Type, test: str, values: Sequence[Any]) -> Sql:
        id_ = self.ids.get((field, kind))
        return self.nothing if id_ is None else self._has(f"field_id = {id_} AND {test}", tuple(values))

    def _texts(self, field: str, test: str, values: Sequence[Any]) -> Sql:
        """Test a column of the document, or a field's text. A NUL is in no stored text.

        Args:
            test: a boolean expression with {0} in place of the text.
        """
        parameters = tuple(
            [text for text in value if "\0" not in text] if isinstance(value, list) else value for value in values
        )
        if field in COLUMNS:
            column = f"d.{field}"
            return Sql(f"({column} IS NOT NULL AND {column} <> '' AND {test.replace('{0}', column)})", parameters)
        id_ = self.ids.get((field, "text"))
        if id_ is None:
            return self.nothing
        return self._has(f"field_id = {id_} AND text IS NOT NULL AND {test.replace('{0}', 'text')}", parameters)

    def _has(self, test: str, values: tuple[Any, ...]) -> Sql:
        """Test whether the document has a row of `field_value` that passes a test."""
        rows = "EXISTS (SELECT FROM" if self.by_row else "d.id IN (SELECT document_id FROM"
        of_document = "document_id = d.id AND " if self.by_row else ""
        return Sql(f"{rows} {{tables}}.field_value WHERE {of_document}{test})", values)


def _begin(prefix: str) -> tuple[str, list[str]]:
    """Return a test whether a text begins with a prefix. The index tests the first characters, then the whole prefix is
    compared."""
    test, values = f"starts_with({{0}}, %s) AND left({{0}}, {LOOKED_UP}) >= %s", [prefix, prefix[:LOOKED_UP]]
    if (end := end_of_prefix(prefix[:LOOKED_UP])) is not None:
        test, values = f"{test} AND left({{0}}, {LOOKED_UP}) < %s", [*values, end]
    return test, values


@cache
def _folded() -> str:
    """Return Unicode's casefold of {0} as an expression: `lower` folds fewer letters, by the server's locale."""
    single, several = folding()
    text = "{0}"
    for character, folded in several.items():
        text = f"replace({text}, '{character}', '{folded}')"
    text = f"translate({text}, '{''.join(single)}', '{''.join(single.values())}')"
    ascii_only = "octet_length({0}) = length({0})"
    return f'CASE WHEN {ascii_only} THEN lower({{0}} COLLATE "C") ELSE {text} END'


_TEXT_TESTS: Mapping[str, Callable[[str], tuple[str, list[str]]]] = {
    "contains": lambda text: ("strpos({0}, %s) > 0", [text]),
    "startswith": _begin,
    "endswith": lambda text: (f"right({{0}}, {len(text)}) = %s", [text]),
    "like": lambda pattern: (f"{_folded()} LIKE %s", [in_sql(pattern)]),
}
"""The test of each operator of texts, with {0} in place of the text, and its parameters."""


def _exact(value: Value) -> Decimal:
    if isinstance(value, str | Date):
        raise TypeError("a number is needed")
    if isinstance(value, float) and math.isnan(value):  # equal to nothing, and in no order: numeric has an order for it
        raise FilterError("filter: NaN cannot be compared with")
    return Decimal(value)
