"""Filters over SQLite: metadata as rows of field and value, and a filter's tree as SQL over them.

What a filter means is in `indexer.filters.tree`, what metadata is flattened to in flatten.py, and which fields a
filter may name in field_types.py. The table `document` and the transactions are the catalog's.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indexer.errors import FilterError
from indexer.filters.tree import COLUMNS, And, Compare, Exists, In, Not, Or, Scalar, Type, Where, type_of
from indexer.stores.field_types import Known, expect
from indexer.stores.flatten import Row

TABLES = """
CREATE TABLE field (id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, UNIQUE (name, type));
CREATE TABLE field_value (
    field_id INTEGER NOT NULL, value NOT NULL, document_id INTEGER NOT NULL,
    PRIMARY KEY (field_id, value, document_id)
) WITHOUT ROWID;
CREATE INDEX field_value_document ON field_value (document_id);
"""

_SHORT_LIST = 50  # values bound one by one; a longer list travels as one JSON parameter
_WIDE = 16  # parts joined side by side; SQLite refuses expressions 1,000 levels deep
_MEMBER = "document.id IN ("
_MOST_PARAMETERS = 32_000  # SQLite takes 32,766; the rest is the caller's


@dataclass(frozen=True, slots=True)
class Sql:
    """A boolean expression over a row of `document`, and the parameters of its question marks.

    Attributes:
        select: the ids of the documents for which it is true, with the same parameters; perhaps some ids twice.
    """

    text: str
    parameters: tuple[Scalar, ...]

    @property
    def select(self) -> str:
        # A bare membership needs no look-up of each document: the rows of field_value name them already.
        if self.text.startswith(_MEMBER) and self.text.count("document.id") == 1:
            return self.text.removeprefix(_MEMBER)[:-1]
        return f"SELECT id FROM document WHERE {self.text}"


def write(conn: sqlite3.Connection, documents: Iterable[tuple[int, Sequence[Row]]]) -> None:
    """Inserts the rows of new documents, by document id, within the caller's transaction."""
    documents = list(documents)
    names = {(name, kind) for _, rows in documents for name, kind, _ in rows}
    conn.executemany("INSERT OR IGNORE INTO field (name, type) VALUES (?, ?)", sorted(names))
    find = "SELECT id FROM field WHERE name = ? AND type = ?"
    ids = {key: conn.execute(find, key).fetchone()[0] for key in names}
    conn.executemany(
        "INSERT INTO field_value (field_id, value, document_id) VALUES (?, ?, ?)",
        ((ids[name, kind], value, document) for document, rows in documents for name, kind, value in rows),
    )


def erase(conn: sqlite3.Connection, document_ids: Iterable[int]) -> None:
    """Deletes the rows of these documents, within the caller's transaction."""
    conn.executemany("DELETE FROM field_value WHERE document_id = ?", ((i,) for i in document_ids))


def known_fields(conn: sqlite3.Connection) -> dict[str, frozenset[Type]] | None:
    """What `compile_where` checks a filter against, as of now."""
    if conn.execute("SELECT 1 FROM document LIMIT 1").fetchone() is None:
        return None
    used = "EXISTS (SELECT 1 FROM field_value WHERE field_id = field.id)"
    known: dict[str, frozenset[Type]] = {}
    for name, kind in conn.execute(f"SELECT name, type FROM field WHERE {used}"):
        known[name] = known.get(name, frozenset()) | {kind}
    return known


def compile_where(where: Where, known: Known) -> Sql:
    """The filter as SQL: `SELECT id FROM document WHERE text` gives the matching documents. Never NULL.

    An index without documents (`known` is None) lets every field pass.

    Raises:
        FilterError: a field that no document has, a value of a type it has nowhere, or too many values.
    """
    compiled = _compile(where, known)
    if len(compiled.parameters) > _MOST_PARAMETERS:
        raise FilterError("filter: too many conditions for one question: use in with a list, or ask in parts")
    return Sql(compiled.text, tuple(compiled.parameters))


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    parameters: list[Scalar]
    levels: int = 0  # of parentheses around and, or


def _compile(where: Where, known: Known) -> _Part:  # noqa: PLR0911 - one a kind of node
    match where:
        case And(parts):
            return _join(" AND ", [_compile(part, known) for part in parts])
        case Or(parts):
            return _join(" OR ", [_compile(part, known) for part in _merged(parts)])
        case Not(part):
            inner = _compile(part, known)
            return _Part(f"NOT {inner.text}", inner.parameters, inner.levels)
        case Exists(name):
            expect(name, None, known)
            return _present(name, below=True)
        case Compare(name, "=" | "!=", value):
            return _compile(In(name, (value,), negated=where.op == "!="), known)
        case Compare(name, op, value):
            expect(name, value, known)
            return _test(name, type_of(value), f"{op} ?", [value])
        case In(name, values, negated):
            types: dict[Type, list[Scalar]] = {}
            for value in values:
                types.setdefault(type_of(value), []).append(value)
            for several in types.values():
                expect(name, several[0], known)
            if not types:  # equal to none of no values
                expect(name, None, known)
                return _present(name) if negated else _Part("0", [])
            equal = _join(" OR ", [_test(name, t, *_equal(several)) for t, several in types.items()])
            if not negated:
                return equal
            return _join(" AND ", [_present(name), _Part(f"NOT {equal.text}", equal.parameters)])


def _join(word: str, parts: list[_Part]) -> _Part:
    """Parts side by side, in an order and in groups that keep within the limits of SQLite's parser.

    Its stack holds 100 tokens, and the first of several parentheses takes fewest: so the deepest goes first.
    A row of n is n levels deep to SQLite, of 1,000: so many parts are grouped by their square root.
    """
    parts = sorted(parts, key=lambda part: -part.levels)
    flat = [part for part in parts if not part.levels]
    if len(parts) > _WIDE and 1 < len(flat) < len(parts):
        return _join(word, [*parts[: -len(flat)], _join(word, flat)])
    if len(parts) > _WIDE:
        size = math.isqrt(len(parts))
        parts = [_row(word, parts[i : i + size]) for i in range(0, len(parts), size)]
    return _row(word, parts)


def _row(word: str, parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    text = "(" + word.join(part.text for part in parts) + ")"
    return _Part(text, [v for part in parts for v in part.parameters], 1 + max(part.levels for part in parts))


def _merged(parts: Iterable[Where]) -> list[Where]:
    """`x = 1 or x = 2` as one list: one look-up a field instead of one a value."""
    lists: dict[str, list[Scalar]] = {}
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


def _equal(values: list[Scalar]) -> tuple[str, list[Scalar]]:
    if len(values) <= _SHORT_LIST:
        return f"IN ({', '.join('?' * len(values))})", values
    # SQLite's JSON rounds some fractions and ends text at a NUL: those are bound one by one.
    exact = [v for v in values if isinstance(v, int) or (isinstance(v, str) and "\0" not in v)]
    other = [v for v in values if isinstance(v, float) or (isinstance(v, str) and "\0" in v)]
    bound = f" UNION ALL SELECT column1 FROM (VALUES {', '.join(['(?)'] * len(other))})" if other else ""
    return f"IN (SELECT value FROM json_each(?){bound})", [json.dumps(exact), *other]


_NAMED = "(SELECT id FROM field WHERE name = ? AND type = ?)"


def _test(name: str, kind: Type, test: str, values: list[Scalar]) -> _Part:
    if name in COLUMNS:
        column = f"document.{name}"
        return _Part(f"({column} IS NOT NULL AND {column} <> '' AND {column} {test})", values)
    rows = f"SELECT document_id FROM field_value WHERE field_id = {_NAMED} AND value {test}"
    return _Part(f"{_MEMBER}{rows})", [name, kind, *values])


def _present(name: str, below: bool = False) -> _Part:
    if name in COLUMNS:
        return _Part(f"(document.{name} IS NOT NULL AND document.{name} <> '')", [])
    names, parameters = "name = ?", [name]
    if below:  # "/" follows "." in code points: every name that begins with name and a dot
        names, parameters = "name = ? OR (name >= ? AND name < ?)", [name, f"{name}.", f"{name}/"]
    rows = f"SELECT document_id FROM field_value WHERE field_id IN (SELECT id FROM field WHERE {names})"
    return _Part(f"{_MEMBER}{rows})", [*parameters])
