"""Metadata as rows and filters as SQL: the SQL finds the rows for which `matches` is true, whatever the filter."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.errors import BadInput, FilterError
from indexer.filters.dates import read_date
from indexer.filters.operators import COMPARISONS, TEXT_OPERATORS
from indexer.filters.parse import parse
from indexer.filters.tree import And, Compare, Exists, In, Not, Or, TextMatch, Type, Under, Where, matches, render
from indexer.stores.fields.field_types import check_filter
from indexer.stores.fields.filter_sql import compile_where
from indexer.stores.fields.flatten import scalars, with_dates
from indexer.stores.local.catalog.filter_sql import TABLES, SqliteDialect, add_functions, erase, read_field_types, write

COLUMNS = ("uri", "title", "path", "format", "modified")
DOCUMENT = "CREATE TABLE document (id INTEGER PRIMARY KEY, uri, title, path, format, modified);"


def collection(documents: Sequence[tuple[Mapping[str, str | None], Mapping[str, Any]]]) -> sqlite3.Connection:
    """A database of documents 1, 2, …: their columns and their metadata."""
    conn = sqlite3.connect(":memory:")
    add_functions(conn, lambda: None)
    conn.executescript(DOCUMENT + TABLES)
    for columns, _ in documents:
        marks = [columns.get(name) for name in COLUMNS]
        conn.execute("INSERT INTO document (uri, title, path, format, modified) VALUES (?, ?, ?, ?, ?)", marks)
    write(conn, [(i, with_dates(scalars(f"doc{i}", m), c.get("modified"))) for i, (c, m) in enumerate(documents, 1)])
    return conn


def found(conn: sqlite3.Connection, where: Where) -> list[int]:
    sql = compile_where(where, read_field_types(conn), SqliteDialect())
    rows = conn.execute(f"SELECT id FROM document WHERE {sql.text} ORDER BY id", sql.parameters).fetchall()
    nulls = conn.execute(f"SELECT count(*) FROM document WHERE ({sql.text}) IS NULL", sql.parameters).fetchone()
    assert nulls == (0,)
    return [row[0] for row in rows]


def ask(conn: sqlite3.Connection, text: str) -> list[int]:
    return found(conn, parse(text))


def flat(value: Any, path: str = "") -> dict[str, list[Any]]:
    """The metadata as `matches` takes it; written apart from the code under test."""
    if isinstance(value, dict):
        members = [flat(member, f"{path}.{key}" if path else key) for key, member in value.items()]
    elif isinstance(value, list):
        members = [flat(element, path) for element in value]
    else:
        first = path.split(".", maxsplit=1)[0]
        return {f"metadata.{path}" if first in (*COLUMNS, "metadata") else path: [value]}
    merged: dict[str, list[Any]] = {}
    for member in members:
        for name, values in member.items():
            merged.setdefault(name, []).extend(values)
    return merged


FEW = [0, 1, 2, -3, 0.5, 1.0, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e300, 0.1]
TEXTS = ["", "a", "b", "é", "1", "true", "a\0b", "Ab", "\U0010ffff", "\ud7ff", "/a/b/c"]
parts = st.sampled_from([*TEXTS, "%", "%B", "_b", "\0b", "\\%", "É", "-", "2020", "\U0010ffff\U0010ffff"])
DAYS = [
    "2020",
    "2020-02",
    "2020-02-01",
    "1-Feb-2020",
    "Feb 29, 2020",
    "2020-02-01T00:00:00.000001Z",
    "2020-02-01T02:00+0300",
]
few_values = st.one_of(st.sampled_from(FEW), st.booleans(), st.sampled_from(TEXTS), st.sampled_from(DAYS))
compared = st.one_of(few_values, st.sampled_from([date for day in DAYS if (date := read_date(day))]))
keys = st.sampled_from(["x", "y", "y.z", "title", "metadata", "z"])
nested = st.recursive(
    st.one_of(few_values, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=4,
)
columns = st.fixed_dictionaries(
    {name: st.sampled_from([None, "", "a", "b", *(DAYS if name == "modified" else TEXTS)]) for name in COLUMNS}
)
documents = st.lists(st.tuples(columns, st.dictionaries(keys, nested, max_size=4)), min_size=1, max_size=6)
fields = st.sampled_from(
    ["x", "y", "y.z", "z", "x.y", "metadata.title", "metadata.metadata", "title", "path", "modified"]
)
conditions = st.one_of(
    st.builds(Compare, fields, st.sampled_from(COMPARISONS), compared),
    st.builds(In, fields, st.lists(compared, min_size=1, max_size=4).map(tuple), st.booleans()),
    st.builds(Exists, fields),
    st.builds(TextMatch, fields, st.sampled_from([*TEXT_OPERATORS]), parts, st.booleans()),
    st.builds(Under, st.sampled_from(["/", "/a", "/a/b"])),
)
wheres: st.SearchStrategy[Where] = st.recursive(
    conditions,
    lambda parts: st.one_of(
        st.builds(And, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Not, parts),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("examples", [50, pytest.param(300, marks=pytest.mark.slow)])
def test_sql_finds_what_the_filter_means(examples: int) -> None:
    drawn = given(documents, st.lists(wheres, min_size=1, max_size=8))
    settings(deadline=None, max_examples=examples)(drawn(_agree))()


def _agree(documents: list[tuple[dict[str, str | None], dict[str, Any]]], wheres: list[Where]) -> None:
    conn = collection(documents)
    used = ["x", "y", "y.z", "z", "x.y", "metadata.title", "metadata.metadata"]
    anything: dict[str, Collection[Type]] = dict.fromkeys(used, ("number", "boolean", "text", "date"))
    for where in wheres:
        try:
            sql, resolved = compile_where(where, anything, SqliteDialect()), check_filter(where, anything)
        except FilterError:  # a column compared with no text
            continue
        expected = [i for i, (c, m) in enumerate(documents, 1) if matches(resolved, {**flat(m), **c})]
        rows = conn.execute(f"SELECT id FROM document WHERE {sql.text} ORDER BY id", sql.parameters)
        assert [row[0] for row in rows] == expected
    conn.close()


def test_scalars_flatten_by_dotted_path() -> None:
    metadata = {
        "year": 2024,
        "author": {"name": "Ann", "ids": [1, 1.0, True, None]},
        "cites": [{"by": "a"}, {"by": ["b", "a"]}],
        "none": None,
        "empty": [],
        "title": "mine",
        "metadata": {"x": 1},
        "": {"a": 1},
    }
    assert sorted(scalars("u", metadata), key=str) == [
        (".a", "number", 1),
        ("author.ids", "boolean", True),
        ("author.ids", "number", 1),
        ("author.name", "text", "Ann"),
        ("cites.by", "text", "a"),
        ("cites.by", "text", "b"),
        ("metadata.metadata.x", "number", 1),
        ("metadata.title", "text", "mine"),
        ("year", "number", 2024),
    ]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"a": {"b": float("nan")}}, "u7: metadata field 'a.b' is nan, which cannot be compared: use null"),
        ({"a": [float("-inf")]}, "u7: metadata field 'a' is -inf, which cannot be compared: use null"),
        ({"a": 2**63}, "u7: metadata field 'a' is a whole number beyond 64 bits: write it as text"),
        ({"a": b"x"}, "u7: metadata field 'a' holds a bytes, which is not a JSON value: write it as text"),
        ({1: 2}, "u7: metadata key 1 is not text: write it as text"),
        ({"a": "\ud800"}, "u7: metadata field 'a' holds half a surrogate pair: repair its encoding"),
    ],
)
def test_what_cannot_be_compared_exactly_is_refused(metadata: dict[Any, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        scalars("u7", metadata)
    assert str(caught.value) == message


@pytest.mark.parametrize(("depth", "stands"), [(199, True), (200, False), (50_000, False)])
def test_nesting_is_read_as_deep_as_json_can_be_written(depth: int, stands: bool) -> None:
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    if stands:
        assert scalars("u", {"a": deep}) == [("a", "number", 1)]
    else:
        with pytest.raises(BadInput, match="u: metadata field 'a' is nested more than 200 deep"):
            scalars("u", {"a": deep})
    while isinstance(deep, list):
        deep = deep.pop()


@pytest.fixture
def papers() -> sqlite3.Connection:
    return collection(
        [
            (
                {"uri": "a", "title": "One", "modified": "2024-01-31T10:00:00Z"},
                {"year": 2020, "tags": ["x", "y"]},
            ),
            (
                {"uri": "b", "title": ""},
                {"year": 2021.5, "draft": True, "author": {"name": "Ann"}, "path": "p"},
            ),
            ({"uri": "c", "path": "/c"}, {"year_end": "2022", "mixed": 1, "long": "z" * 100_000}),
            ({"uri": "d"}, {"mixed": "1", "big": 2**53 + 1}),
        ]
    )


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("year >= 2020", [1, 2]),
        ("year != 2020", [2]),
        ("not year = 2020", [2, 3, 4]),
        ("year not in (2020)", [2]),
        ('tags = "x" and tags = "y"', [1]),
        ("exists author", [2]),
        ("exists title", [1]),
        ('title != "x"', [1]),
        ("modified >= 2024-01-31", [1]),
        ('path = "/c" or metadata.path = "p"', [2, 3]),
        ("exists metadata.path", [2]),
        ("mixed = 1", [3]),
        ('mixed = "1"', [4]),
        ('mixed in (1, "1")', [3, 4]),
        ("big > 9007199254740992", [4]),
        ("big = 9007199254740992.0", []),
        (f'long = "{"z" * 100_000}"', [3]),
        (f'long > "{"z" * 99_999}"', [3]),
        ('uri in ("a", "d")', [1, 4]),
    ],
)
def test_answers(papers: sqlite3.Connection, text: str, ids: list[int]) -> None:
    assert ask(papers, text) == ids


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yaer = 2020", 'filter: no document has a field "yaer"; near: year, year_end'),
        ("exists yaer", 'filter: no document has a field "yaer"; near: year, year_end'),
        ('author = "Ann"', 'filter: no document has a field "author"; near: author.name'),
        (
            "qqqq = 1",
            'filter: no document has a field "qqqq"; it has: uri, title, path, format, modified, author.name, '
            "big, draft, long, metadata.path, mixed, tags, year, year_end",
        ),
        (
            'year = "2020"',
            'filter: field year cannot be compared with "2020": compare it with 2020, without quotes',
        ),
        (
            "year in (2020, true)",
            "filter: field year cannot be compared with true: compare it with a number such as 2020",
        ),
        ("draft = 1", "filter: field draft cannot be compared with 1: compare it with true or false"),
        (
            "title = 1",
            'filter: field title cannot be compared with 1: compare it with text in quotes such as "en"',
        ),
        (
            "mixed = true",
            "filter: field mixed cannot be compared with true: "
            'compare it with a number such as 2020 or text in quotes such as "en"',
        ),
    ],
)
def test_unread_field_types_and_types(papers: sqlite3.Connection, text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        ask(papers, text)
    assert str(caught.value) == message


def test_fields_are_known_while_a_document_has_them(papers: sqlite3.Connection) -> None:
    assert read_field_types(papers) == {
        "modified": {"date"},
        "year": {"number"},
        "tags": {"text"},
        "draft": {"boolean"},
        "author.name": {"text"},
        "metadata.path": {"text"},
        "year_end": {"text", "date"},
        "mixed": {"number", "text"},
        "long": {"text"},
        "big": {"number"},
    }
    erase(papers, [1, 2, 4])
    papers.execute("DELETE FROM document WHERE id <> 3")
    kept = {"year_end": {"text", "date"}, "mixed": {"number"}, "long": {"text"}}
    assert read_field_types(papers) == kept
    write(papers, [(3, scalars("c", {"mixed": 2}))])
    assert ask(papers, "mixed in (1, 2)") == [3]
    erase(papers, [3])
    assert read_field_types(papers) == {}
    papers.execute("DELETE FROM document")
    assert read_field_types(papers) is None
    assert ask(papers, "anything = 1 and exists whatever") == []


def test_rows_are_written_by_field_with_long_texts_last_because_sqlite_reads_long_neighbours_whole() -> None:
    conn = collection([])
    statements: list[str] = []
    conn.set_trace_callback(statements.append)
    documents = [{"m": "x" * 2_000, "z": 1}, *({"a": i, "m": "w", "z": i} for i in range(4))]
    write(conn, [(i, scalars(f"d{i}", metadata)) for i, metadata in enumerate(documents)])
    conn.set_trace_callback(None)
    inserted = [re.search(r"VALUES \((\d+), (.*), \d+\)", line) for line in statements if "INTO field_value" in line]
    fields = [int(row[1]) for row in inserted if row is not None]
    assert fields == [1] * 4 + [2] * 4 + [3] * 5 + [2]
    assert inserted[-1] is not None
    assert inserted[-1][2] == "'" + "x" * 2_000 + "'"


@pytest.mark.slow
def test_long_lists_are_exact() -> None:
    numbers = [i + 0.1 for i in range(2_000)]
    words = ["w\0" + str(i) for i in range(100)]
    conn = collection([({}, {"x": value}) for value in [*range(0, 20_000, 1_000), *numbers, *words, 2**63 - 1]])
    assert ask(conn, f"x in ({', '.join(map(str, range(10_000)))})") == list(range(1, 11))
    assert len(ask(conn, f"x not in ({', '.join(map(str, range(10_000)))})")) == 10 + 2_000 + 100 + 1
    assert len(found(conn, In("x", tuple(numbers)))) == 2_000
    assert len(found(conn, In("x", (*words, *numbers, 2**63 - 1, *range(20_000))))) == 20 + 2_000 + 100 + 1
    assert found(conn, In("x", tuple(float(i) for i in range(100)))) == [1]
    assert len(found(conn, In("x", tuple(i + 0.1 for i in range(100_000))))) == 2_000
    assert found(conn, In("x", tuple(i + 0.5 for i in range(40_000)))) == []
    with pytest.raises(FilterError, match="too many conditions"):
        found(conn, And(tuple(Compare("x", ">", i) for i in range(11_000))))


@pytest.mark.slow
def test_wide_filters_stay_within_sqlite() -> None:
    """SQLite reads expressions of at most 1,000 levels."""
    conn = collection([({}, {f"x{i}": i for i in range(20 * n, 20 * n + 20)} | {"y": n}) for n in range(60)])
    assert len(ask(conn, " or ".join(f"x{i} = {i}" for i in range(1_200)))) == 60
    assert ask(conn, " or ".join(f"y = {i}" for i in range(0, 4_000, 2))) == list(range(1, 61, 2))
    assert ask(conn, " and ".join(f"y != {i}" for i in range(1, 1_200))) == [1]
    assert ask(conn, " or ".join(f"(x{i} = {i} and y < 3)" for i in range(1_200))) == [1, 2, 3]


@pytest.mark.parametrize("width", [1, 20, 60])
def test_deep_filters_stay_within_sqlite(width: int) -> None:
    conn = collection([({}, {"y": n}) for n in range(60)])
    where: Where = Compare("y", ">=", 30)
    for level in range(31):  # the deepest that parses: each level a parenthesis within the one before
        beside = tuple(Compare("y", ">=" if level % 3 else "<", level + j % 7) for j in range(width))
        kind = (And, Or)[level % 2]
        where = Not(where) if level % 5 == 4 else kind((*beside, where))
    text = render(where)
    assert parse(text) == where
    assert ask(conn, text) == [n + 1 for n in range(60) if matches(where, {"y": n})]
    with pytest.raises(FilterError, match="more than 32 levels"):
        parse(f"not ({text})")
