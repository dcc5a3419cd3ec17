"""Filters over SQLite: metadata as rows of field and value, and a filter's tree as SQL over them.

The meaning of a filter is in `indexer.filters.tree`, the flattening of metadata in flatten.py, and the fields that a
filter may name are in field_types.py. The table `document` and the transactions are the catalog's.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from indexer.errors import FilterError
from indexer.filters.dates import Date, day_of
from indexer.filters.like import is_like
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

TABLES = """
CREATE TABLE field (id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, UNIQUE (name, type));
CREATE TABLE field_value (
    field_id INTEGER NOT NULL, value NOT NULL, document_id INTEGER NOT NULL,
    PRIMARY KEY (field_id, value, document_id)
) WITHOUT ROWID;
CREATE INDEX field_value_document ON field_value (document_id);
"""

_MAX_BOUND_VALUES = 50  # values that are bound one by one; a longer list is one parameter of JSON
_MAX_ROW_PARTS = 16  # parts that are joined in one row; SQLite refuses expressions 1,000 levels deep
_MAX_PARAMETERS = 32_000  # SQLite takes 32,766; the rest is for the caller

_LONG_CHARACTERS = 1000  # about what SQLite keeps of a value inside a page

_GOLDEN = 0x9E3779B1  # 2**32 divided by the golden ratio: its multiples are scattered evenly (Knuth, volume 3, 6.4)

_MEMBER = "document.id IN ("

_LIKE = "likewise_like"
"""The function that SQLite calls for `like`: its own LIKE ignores the case of ASCII letters alone."""


def add_functions(connection: sqlite3.Connection) -> None:
    """Register what compiled filters call. Every connection that reads by filters needs it."""
    connection.create_function(_LIKE, 2, is_like, deterministic=True)


@dataclass(frozen=True, slots=True)
class Sql:
    """A boolean expression over a row of `document`, and the parameters of its question marks.

    Attributes:
        select: a statement for the ids of the documents for which it is true, with the same parameters. It may give
            an id twice.
    """

    text: str
    parameters: tuple[Scalar, ...]

    @property
    def select(self) -> str:
        # For a single membership no document has to be looked up: the rows of field_value name them already.
        if self.text.startswith(_MEMBER) and self.text.count("document.id") == 1:
            return self.text.removeprefix(_MEMBER)[:-1]
        return f"SELECT id FROM document WHERE {self.text}"


def write(conn: sqlite3.Connection, documents: Iterable[tuple[int, Sequence[Row]]]) -> None:
    """Insert the rows of new documents, given with their ids, within the caller's transaction."""
    documents = list(documents)
    names = {(name, kind) for _, rows in documents for name, kind, _ in rows}
    conn.executemany("INSERT OR IGNORE INTO field (name, type) VALUES (?, ?)", sorted(names))
    find = "SELECT id FROM field WHERE name = ? AND type = ?"
    ids = {key: conn.execute(find, key).fetchone()[0] for key in names}
    values = [(ids[name, kind], value, document) for document, rows in documents for name, kind, value in rows]
    values.sort(key=_insertion_order)
    conn.executemany("INSERT INTO field_value (field_id, value, document_id) VALUES (?, ?, ?)", values)


def _insertion_order(row: tuple[int, Scalar, int]) -> tuple[bool, int, int]:
    """Return where to insert a row (field, value, document) among those of its batch.

    SQLite reads a neighbour that does not fit a page to its end for each row that is inserted beside it: 2 ms for each
    where that is a text of 5 MB. So fields are written in ascending order, which moves away from the rows there are.
    The documents of one field are scattered, as each of them could be such a neighbour's next, and long texts come
    last. Beside a text of 5 MB, 2,000 new rows take 0.1 s instead of 6 s.
    """
    field, value, document = row
    return isinstance(value, str) and len(value) > _LONG_CHARACTERS, field, document * _GOLDEN & 0xFFFFFFFF


def erase(conn: sqlite3.Connection, document_ids: Iterable[int]) -> None:
    """Delete the rows of these documents, within the caller's transaction."""
    conn.executemany("DELETE FROM field_value WHERE document_id = ?", ((i,) for i in document_ids))


def read_field_types(conn: sqlite3.Connection, keeps_dates: bool = True) -> dict[str, frozenset[Type]] | None:
    """Return the types of each field that some document has; None if there is no document.

    Args:
        keeps_dates: texts that read as dates have rows as such; an index of format 1 has none.
    """
    if conn.execute("SELECT 1 FROM document LIMIT 1").fetchone() is None:
        return None
    used = "EXISTS (SELECT 1 FROM field_value WHERE field_id = field.id)"
    types: dict[str, frozenset[Type]] = {}
    if keeps_dates:
        types |= KEEPS_DATES
    for name, kind in conn.execute(f"SELECT name, type FROM field WHERE {used}"):
        types[name] = types.get(name, frozenset()) | {kind}
    return types


def read_values(conn: sqlite3.Connection, name: str, limit: int) -> FieldValues:
    """Return the values of a field, and the most frequent of them."""
    ids = dict(conn.execute("SELECT type, id FROM field WHERE name = ?", (name,)))
    days = None
    if date_field := ids.pop("date", None):
        first, last = _extremes(conn, date_field)
        days = None if first is None else (day_of(first), day_of(last))
    if name in COLUMNS:
        used = f"FROM document WHERE {name} IS NOT NULL AND {name} <> ''"
        (documents,) = conn.execute(f"SELECT count(*) {used}").fetchone()
        counts = conn.execute(
            f"SELECT {name}, count(*) AS documents {used} AND length({name}) <= ?"
            f" GROUP BY {name} ORDER BY documents DESC, {name} LIMIT ?",
            (MAX_VALUE_CHARACTERS, limit),
        )
        return FieldValues(documents, tuple(counts), days=days)
    frequent: list[tuple[Scalar, int]] = []
    numbers = None
    for kind in sorted(ids):
        counts = conn.execute(
            "SELECT value, count(*) AS documents FROM field_value WHERE field_id = ?"
            " AND (typeof(value) <> 'text' OR length(value) <= ?)"
            " GROUP BY value ORDER BY documents DESC, value LIMIT ?",
            (ids[kind], MAX_VALUE_CHARACTERS, limit),
        )
        frequent += [(bool(value), count) for value, count in counts] if kind == "boolean" else counts
        if kind == "number":
            smallest, largest = _extremes(conn, ids[kind])
            numbers = None if smallest is None else (smallest, largest)
    frequent.sort(key=lambda pair: -pair[1])  # stable: equal numbers stay in the order of type and value
    documents = _documents_with(conn, list(ids.values()))
    return FieldValues(documents, tuple(frequent[:limit]), numbers, days)


def _extremes(conn: sqlite3.Connection, field_id: int) -> tuple[Any, Any]:
    """Return the smallest and the largest value of a field of one type. Each is one look-up in the primary key."""
    each = (f"(SELECT {end}(value) FROM field_value WHERE field_id = ?)" for end in ("min", "max"))
    smallest, largest = conn.execute(f"SELECT {', '.join(each)}", (field_id, field_id)).fetchone()
    return smallest, largest


def _documents_with(conn: sqlite3.Connection, field_ids: Sequence[int]) -> int:
    marks = ", ".join("?" * len(field_ids))
    distinct = f"SELECT count(DISTINCT document_id) FROM field_value WHERE field_id IN ({marks})"
    return int(conn.execute(distinct, field_ids).fetchone()[0])


def compile_where(where: Where, types: FieldTypes) -> Sql:
    """Return a filter as SQL: `SELECT id FROM document WHERE text` gives the matching documents. It is never NULL.

    Args:
        types: of an index without documents None, which allows every field.

    Raises:
        FilterError: a field that no document has, a value of a type the field has nowhere, or too many values.
    """
    compiled = _compile(where, types)
    if len(compiled.parameters) > _MAX_PARAMETERS:
        raise FilterError("filter: too many conditions for one question: use in with a list, or ask in parts")
    return Sql(compiled.text, tuple(compiled.parameters))


@dataclass(frozen=True, slots=True)
class _Expression:
    text: str
    parameters: list[Scalar]
    levels: int = 0  # of parentheses around and, or


def _compile(where: Where, types: FieldTypes) -> _Expression:  # noqa: PLR0911 - one per kind of node
    match where:
        case And(parts):
            return _join(" AND ", [_compile(part, types) for part in parts])
        case Or(parts):
            return _join(" OR ", [_compile(part, types) for part in _merge_lists(parts)])
        case Not(part):
            inner = _compile(part, types)
            return _Expression(f"NOT {inner.text}", inner.parameters, inner.levels)
        case Exists(name):
            expect(name, None, types)
            return _exists(name, below=True)
        case Compare() | In():
            return _condition(resolve(where, types))
        case TextMatch(name, _, text):
            expect(name, ExactText(text), types)
            return _text_match(where)
        case Under():
            return _test("path", "text", *_prefix_range(where.prefix))


def _condition(where: Compare | In) -> _Expression:
    match where:
        case Compare(name, "=" | "!=", value):
            return _condition(In(name, (value,), negated=where.op == "!="))
        case Compare(name, "<" | "<=" | ">" | ">=" as order, Date() as date):
            way, bound = date.bound(order)
            return _test(name, "date", f"{{}} {way} ?", [bound])
        case Compare(name, op, value):
            return _test(name, type_of(value), f"{{}} {op} ?", _scalars([value]))
        case In(name, values, negated):
            by_type: dict[Type, list[Value]] = {}
            for value in values:
                by_type.setdefault(type_of(value), []).append(value)
            dates = by_type.pop("date", [])
            if not by_type and not dates:  # equal to none of no values
                return _exists(name) if negated else _Expression("0", [])
            parts = [_test(name, kind, *_equality(_scalars(group))) for kind, group in by_type.items()]
            if dates:
                parts.append(_within(name, [date for date in dates if isinstance(date, Date)]))
            equal = _join(" OR ", parts)
            if not negated:
                return equal
            return _join(" AND ", [_exists(name), _Expression(f"NOT {equal.text}", equal.parameters)])


def _scalars(values: Iterable[Value]) -> list[Scalar]:
    return [value for value in values if not isinstance(value, Date)]


def _join(word: str, parts: list[_Expression]) -> _Expression:
    """Join parts in an order and in groups that keep within the limits of SQLite's parser.

    Its stack holds 100 tokens, and of several parentheses the first takes the fewest: so the deepest goes first.
    A row of n parts is n levels deep for SQLite, which allows 1,000: many parts are put into groups of about the
    square root of their number.
    """
    parts = sorted(parts, key=lambda part: -part.levels)
    flat = [part for part in parts if not part.levels]
    if len(parts) > _MAX_ROW_PARTS and 1 < len(flat) < len(parts):
        return _join(word, [*parts[: -len(flat)], _join(word, flat)])
    if len(parts) > _MAX_ROW_PARTS:
        size = math.isqrt(len(parts))
        parts = [_row(word, parts[i : i + size]) for i in range(0, len(parts), size)]
    return _row(word, parts)


def _row(word: str, parts: list[_Expression]) -> _Expression:
    if len(parts) == 1:
        return parts[0]
    text = "(" + word.join(part.text for part in parts) + ")"
    return _Expression(text, [v for part in parts for v in part.parameters], 1 + max(part.levels for part in parts))


def _merge_lists(parts: Iterable[Where]) -> list[Where]:
    """Merge `x = 1 or x = 2` into one list: one look-up per field instead of one per value."""
    lists: dict[str, list[Value]] = {}
    rest: list[Where] = []
    for part in parts:
        match part:
            case Compare(name, "=", value):
                lists.setdefault(name, []).append(value)
            case In(name, values, False):
                lists.setdefault(name, []).extend(values)
            case _:
                rest.append(part)
    return [*(In(name, tuple(values)) for name, values in lists.items()), *rest]


def _equality(values: list[Scalar]) -> tuple[str, list[Scalar]]:
    if len(values) <= _MAX_BOUND_VALUES:
        return f"{{}} IN ({', '.join('?' * len(values))})", values
    # SQLite's JSON rounds some fractions and ends a text at a NUL: such values are bound one by one.
    exact = [v for v in values if isinstance(v, int) or (isinstance(v, str) and "\0" not in v)]
    other = [v for v in values if isinstance(v, float) or (isinstance(v, str) and "\0" in v)]
    bound = f" UNION ALL SELECT column1 FROM (VALUES {', '.join(['(?)'] * len(other))})" if other else ""
    return f"{{}} IN (SELECT value FROM json_each(?){bound})", [json.dumps(exact), *other]


def _text_match(where: TextMatch) -> _Expression:
    name, text = where.field, where.text
    if where.op == "startswith":
        passes = _test(name, "text", *_prefix_range(text))
    elif where.op == "contains":
        passes = _test(name, "text", "instr({}, ?) > 0", [text])
    elif where.op == "endswith":
        # As bytes: SQLite counts the characters up to a NUL. A text ends with another if its UTF-8 does.
        end = "substr(CAST({} AS BLOB), -?) = CAST(? AS BLOB)" if text else "{} IS NOT NULL"
        passes = _test(name, "text", end, [len(text.encode()), text] if text else [])
    else:
        passes = _test(name, "text", f"{_LIKE}({{}}, ?)", [text])
    if not where.negated:
        return passes
    return _join(" AND ", [_exists(name), _Expression(f"NOT {passes.text}", passes.parameters)])


def _prefix_range(prefix: str) -> tuple[str, list[Scalar]]:
    """Return a test whether a value begins with a text, as a range, which an index can look up, with its parameters."""
    end = end_of_prefix(prefix)
    return ("{} >= ?", [prefix]) if end is None else ("{0} >= ? AND {0} < ?", [prefix, end])


def _within(name: str, dates: Sequence[Date]) -> _Expression:
    """Return whether a stored date is in one of these spans, however many there are."""
    if len(dates) == 1:
        return _test(name, "date", "{0} >= ? AND {0} < ?", [dates[0].start, dates[0].end])
    spans: list[list[int]] = []
    for start, end in sorted((date.start, date.end) for date in dates):
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(end, spans[-1][1])
        else:
            spans.append([start, end])
    # A cross join keeps the order of the tables: SQLite looks each span up, instead of trying all of them on each row.
    rows = (
        f"SELECT document_id FROM json_each(?) AS span CROSS JOIN field_value WHERE field_id = {_FIELD_ID}"
        " AND field_value.value >= json_extract(span.value, '$[0]')"
        " AND field_value.value < json_extract(span.value, '$[1]')"
    )
    return _Expression(f"{_MEMBER}{rows})", [json.dumps(spans), name, "date"])


_FIELD_ID = "(SELECT id FROM field WHERE name = ? AND type = ?)"


def _test(name: str, kind: Type, test: str, values: list[Scalar]) -> _Expression:
    """Return whether a document has a value that passes a test.

    Args:
        test: a boolean expression with {} in place of the value.
    """
    if name in COLUMNS and kind != "date":
        column = f"document.{name}"
        return _Expression(f"({column} IS NOT NULL AND {column} <> '' AND {test.format(column)})", values)
    rows = f"SELECT document_id FROM field_value WHERE field_id = {_FIELD_ID} AND {test.format('value')}"
    return _Expression(f"{_MEMBER}{rows})", [name, kind, *values])


def _exists(name: str, below: bool = False) -> _Expression:
    if name in COLUMNS:
        return _Expression(f"(document.{name} IS NOT NULL AND document.{name} <> '')", [])
    names, parameters = "name = ?", [name]
    if below:  # "/" follows "." in code points: every name that begins with name and a dot
        names, parameters = "name = ? OR (name >= ? AND name < ?)", [name, f"{name}.", f"{name}/"]
    rows = f"SELECT document_id FROM field_value WHERE field_id IN (SELECT id FROM field WHERE {names})"
    return _Expression(f"{_MEMBER}{rows})", [*parameters])
