"""Filters over SQLite: metadata as rows of field and value, and the dialect for filters over them.

The flattening of metadata is in flatten.py, and the walk over a filter's tree in stores/fields/filter_sql.py. The table
`document` and the transactions are the catalog's.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence

from indexer.filters.dates import Date
from indexer.filters.like import is_like
from indexer.filters.operators import Op
from indexer.filters.prefix import end_of_prefix
from indexer.filters.tree import COLUMNS, Scalar, Type, Value
from indexer.stores.fields.field_types import only_dates
from indexer.stores.fields.filter_sql import Sql, join_row
from indexer.stores.fields.flatten import Row

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

_LONG_CHARACTERS = 1000  # about what SQLite keeps of a value inside a page

_GOLDEN = 0x9E3779B1  # 2**32 divided by the golden ratio: its multiples are scattered evenly (Knuth, volume 3, 6.4)

_MEMBER = "document.id IN ("

_LIKE = "likewise_like"
"""The function that SQLite calls for `like`: its own LIKE ignores the case of ASCII letters alone."""

_EXACT = "likewise_exact"
"""The function that reads a value from JSON: SQLite's own rounds some fractions, and ends a text at a NUL."""


def add_functions(connection: sqlite3.Connection, check: Callable[[], None]) -> None:
    """Register what compiled filters call. Every connection that reads by filters needs it.

    Args:
        check: raises an error if the question must end. Comparing one long text takes as long as many steps.
    """

    def like(text: str, pattern: str) -> bool:
        check()
        return is_like(text, pattern)

    connection.create_function(_LIKE, 2, like, deterministic=True)
    connection.create_function(_EXACT, 1, json.loads, deterministic=True)


def select_ids(condition: Sql) -> str:
    """Return a statement for the ids of the documents that satisfy a condition.

    The statement has the parameters of the condition and may give an id twice.
    """
    # For a single membership no document has to be looked up: the rows of field_value name them already.
    if condition.text.startswith(_MEMBER) and condition.text.count("document.id") == 1:
        return condition.text.removeprefix(_MEMBER)[:-1]
    return f"SELECT id FROM document WHERE {condition.text}"


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
    """Return where to insert a row (field, value, document) among the rows of its batch.

    If the neighbour of an inserted row does not fit a page, SQLite reads the whole neighbour: 2 ms for a text of 5 MB.
    So fields are written in ascending order, away from the existing rows. The documents of one field are scattered,
    because each could be next to such a neighbour, and long texts come last. Beside a text of 5 MB, 2,000 new rows take
    0.1 s instead of 6 s.
    """
    field, value, document = row
    return isinstance(value, str) and len(value) > _LONG_CHARACTERS, field, document * _GOLDEN & 0xFFFFFFFF


def erase(conn: sqlite3.Connection, document_ids: Iterable[int]) -> None:
    """Delete the rows of these documents, within the caller's transaction."""
    conn.executemany("DELETE FROM field_value WHERE document_id = ?", ((i,) for i in document_ids))


def read_field_types(conn: sqlite3.Connection) -> dict[str, frozenset[Type]] | None:
    """Return the types of each field that some document has; None if there is no document."""
    if conn.execute("SELECT 1 FROM document LIMIT 1").fetchone() is None:
        return None
    used = "EXISTS (SELECT 1 FROM field_value WHERE field_id = field.id)"
    types: dict[str, frozenset[Type]] = {}
    for name, kind in conn.execute(f"SELECT name, type FROM field WHERE {used}"):
        types[name] = types.get(name, frozenset()) | {kind}
    ends = (
        "SELECT (SELECT min(value) FROM field_value WHERE field_id = field.id AND value > ''),"
        " (SELECT max(value) FROM field_value WHERE field_id = field.id) FROM field WHERE name = ? AND type = 'text'"
    )
    for name, kinds in types.items():
        if {"date", "text"} <= kinds and only_dates(*conn.execute(ends, (name,)).fetchone()):
            types[name] = kinds - {"text"}
    return types


class SqliteDialect:
    """The dialect of SQLite, over a row of `document`."""

    max_parameters = 32_000  # SQLite takes 32,766; the rest is for the caller
    nothing = Sql("0")

    def join(self, word: str, parts: Sequence[Sql]) -> Sql:
        """Join parts in an order and in groups that keep within the limits of SQLite's parser.

        The parser's stack holds 100 tokens, and the first of several parentheses takes the fewest, so the deepest part
        goes first. For SQLite, n parts in a row are n levels deep, and 1,000 levels are allowed. So many parts are put
        into groups of about the square root of their number.
        """
        parts = sorted(parts, key=lambda part: -part.levels)
        flat = [part for part in parts if not part.levels]
        if len(parts) > _MAX_ROW_PARTS and 1 < len(flat) < len(parts):
            return self.join(word, [*parts[: -len(flat)], self.join(word, flat)])
        if len(parts) > _MAX_ROW_PARTS:
            size = math.isqrt(len(parts))
            parts = [join_row(word, parts[i : i + size]) for i in range(0, len(parts), size)]
        return join_row(word, parts)

    def exists(self, field: str, below: bool) -> Sql:
        if field in COLUMNS:
            return Sql(f"(document.{field} IS NOT NULL AND document.{field} <> '')")
        names, parameters = "name = ?", [field]
        if below:  # "/" follows "." in code points: every name that begins with the field and a dot
            names, parameters = "name = ? OR (name >= ? AND name < ?)", [field, f"{field}.", f"{field}/"]
        rows = f"SELECT document_id FROM field_value WHERE field_id IN (SELECT id FROM field WHERE {names})"
        return Sql(f"{_MEMBER}{rows})", tuple(parameters))

    def equals(self, field: str, kind: Type, values: Sequence[Value]) -> Sql:
        dates = [value for value in values if isinstance(value, Date)]
        if dates:
            return _within(field, kind, dates)
        return _test(field, kind, *_equality([value for value in values if not isinstance(value, Date)]))

    def compares(self, field: str, kind: Type, op: Op, value: Scalar) -> Sql:
        return _test(field, kind, f"{{0}} {op} ?", [value])

    def passes(self, field: str, op: str, text: str) -> Sql:
        return _test(field, "text", *_TEXT_TESTS[op](text))


def _equality(values: list[Scalar]) -> tuple[str, list[Scalar]]:
    if len(values) <= _MAX_BOUND_VALUES:
        return f"{{0}} IN ({', '.join('?' * len(values))})", values
    exact = [v for v in values if isinstance(v, int) or (isinstance(v, str) and "\0" not in v)]
    other = [json.dumps(v) for v in values if isinstance(v, float) or (isinstance(v, str) and "\0" in v)]
    if not other:
        return "{0} IN (SELECT value FROM json_each(?))", [json.dumps(exact)]
    rows = f"SELECT value FROM json_each(?) UNION ALL SELECT {_EXACT}(value) FROM json_each(?)"
    return f"{{0}} IN ({rows})", [json.dumps(exact), json.dumps(other)]


def _prefix_range(prefix: str) -> tuple[str, list[Scalar]]:
    """Return a test whether a value begins with a text, as a range, which an index can look up, with its parameters."""
    end = end_of_prefix(prefix)
    return ("{0} >= ?", [prefix]) if end is None else ("{0} >= ? AND {0} < ?", [prefix, end])


def _end(text: str) -> tuple[str, list[Scalar]]:
    # As bytes: SQLite counts the characters up to a NUL. A text ends with another if its UTF-8 does.
    if not text:
        return "{0} IS NOT NULL", []
    return "substr(CAST({0} AS BLOB), -?) = CAST(? AS BLOB)", [len(text.encode()), text]


_TEXT_TESTS: Mapping[str, Callable[[str], tuple[str, list[Scalar]]]] = {
    "contains": lambda text: ("instr({0}, ?) > 0", [text]),
    "startswith": _prefix_range,
    "endswith": _end,
    "like": lambda pattern: (f"{_LIKE}({{0}}, ?)", [pattern]),
}
"""The test of each operator of texts, with {0} in place of the value, and its parameters."""


def _within(name: str, kind: Type, dates: Sequence[Date]) -> Sql:
    """Return whether a stored date is in one of these spans, however many there are."""
    if len(dates) == 1:
        return _test(name, kind, "{0} >= ? AND {0} < ?", [dates[0].start, dates[0].end])
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
    return Sql(f"{_MEMBER}{rows})", (json.dumps(spans), name, kind))


_FIELD_ID = "(SELECT id FROM field WHERE name = ? AND type = ?)"


def _test(name: str, kind: Type, test: str, values: list[Scalar]) -> Sql:
    """Return whether a document has a value that passes a test.

    Args:
        test: a boolean expression with {0} in place of the value.
    """
    if name in COLUMNS and kind not in ("date", "day"):
        column = f"document.{name}"
        return Sql(f"({column} IS NOT NULL AND {column} <> '' AND {test.format(column)})", tuple(values))
    rows = f"SELECT document_id FROM field_value WHERE field_id = {_FIELD_ID} AND {test.format('value')}"
    return Sql(f"{_MEMBER}{rows})", (name, kind, *values))
