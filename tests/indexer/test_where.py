"""The filter grammar: what parses to what, what a filter means, and what a person is told about mistakes."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.errors import FilterError
from indexer.filters.dates import Date, from_datetime, read_date
from indexer.filters.parse import parse
from indexer.filters.tree import KEYWORDS, And, Compare, Exists, FilterSyntaxError, In, Not, Or, Where, matches, render


def date(text: str) -> Date:
    known = read_date(text)
    assert known is not None
    return known


moments = st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-9, minutes=-30))]))
dates = st.one_of(
    st.one_of(st.dates(), moments.filter(lambda moment: 1 < moment.year < 9999)).map(from_datetime),
    st.sampled_from(["2020-02", "2020-05-01T10", "2020-05-01T10:30+0530", "2020-05-01T10:30:07.5Z"]).map(date),
)
names = st.sampled_from(
    ["year", "lang", "author.name", "my field", "x`\\y", "title", "metadata.metadata", "é-1", *KEYWORDS]
)
scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    dates,
)
compares = st.builds(Compare, names, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), scalars)
lists = st.builds(In, names, st.lists(scalars, min_size=1, max_size=4).map(tuple), st.booleans())
wheres: st.SearchStrategy[Where] = st.recursive(
    st.one_of(compares, lists, st.builds(Exists, names)),
    lambda parts: st.one_of(
        st.builds(And, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Not, parts),
    ),
    max_leaves=8,
)


@given(wheres)
@settings(deadline=None)
def test_render_and_parse_are_inverse(where: Where) -> None:
    assert repr(parse(render(where))) == repr(where)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            'year >= 2020 and lang in ("en", "de") and not draft = true',
            And((Compare("year", ">=", 2020), In("lang", ("en", "de")), Not(Compare("draft", "=", True)))),
        ),
        (
            "a = 1 or b = 2 and c = 3",
            Or((Compare("a", "=", 1), And((Compare("b", "=", 2), Compare("c", "=", 3))))),
        ),
        (
            "(a = 1 or b = 2) and c = 3",
            And((Or((Compare("a", "=", 1), Compare("b", "=", 2))), Compare("c", "=", 3))),
        ),
        ("not a = 1 and b = 2", And((Not(Compare("a", "=", 1)), Compare("b", "=", 2)))),
        ("exists draft", Exists("draft")),
        ("draft exists", Exists("draft")),
        ("EXISTS (draft)", Exists("draft")),
        ("a NOT IN (1, 2,)", In("a", (1, 2), negated=True)),
        ("a=-2.5e3", Compare("a", "=", -2500.0)),
        ("a<.5", Compare("a", "<", 0.5)),
        ("a = False", Compare("a", "=", False)),
        (r"a = 'it\'s \\ \"fine\"'", Compare("a", "=", 'it\'s \\ "fine"')),
        ("modified >= 2024-01-31", Compare("modified", ">=", date("2024-01-31"))),
        ("modified = 2024-01", Compare("modified", "=", date("2024-01"))),
        ("day in (2024-01-31T10, 2024-01-31T10:00)", In("day", (date("2024-01-31T10"), date("2024-01-31T10:00")))),
        ("modified < 2024-01-31T10:00:00.5Z", Compare("modified", "<", date("2024-01-31T10:00:00.5Z"))),
        ("in (1)", None),
        ("`in` in (1)", In("in", (1,))),
        ("`null` = 1", Compare("null", "=", 1)),
        ("metadata.null = 1", Compare("null", "=", 1)),
        ("`my field` = 1", Compare("my field", "=", 1)),
        ("author.first-name_2 = 1", Compare("author.first-name_2", "=", 1)),
        ("order = 1", Compare("order", "=", 1)),
        ("title = 'x'", Compare("title", "=", "x")),
        ("metadata.year = 1", Compare("year", "=", 1)),
        ("metadata.title = 1", Compare("metadata.title", "=", 1)),
        ("metadata.metadata.year = 1", Compare("metadata.metadata.year", "=", 1)),
        ("x = -9223372036854775808", Compare("x", "=", -(2**63))),
    ],
)
def test_parse(text: str, tree: Where | None) -> None:
    if tree is None:
        with pytest.raises(FilterError):
            parse(text)
    else:
        assert repr(parse(text)) == repr(tree)


VALUES = "text in quotes, a number, a date such as 2024-01-31, true or false"
BEGINS = "a condition begins with a field, as in year >= 2020"
MISTAKES = [
    ("year >= ", f'expected a value after ">=" ({VALUES}) at character 9: year >= '),
    ("year == 2020", '"==" is not a comparison (write =) at character 6: year == 2020'),
    ("a <> 1", '"<>" is not a comparison (write !=) at character 3: a <> 1'),
    ("a =! 1", '"=!" is not a comparison (= != < <= > >= in exists) at character 3: a =! 1'),
    ("!a = 1", 'unexpected "!" (write not) at character 1: !a = 1'),
    (
        "lang = en",
        'expected a value after "=", and "en" has no quotes (write lang = "en") at character 8: lang = en',
    ),
    (
        "a in (en)",
        'expected a value after "(", and "en" has no quotes (write "en") at character 7: a in (en)',
    ),
    ("a = 1 && b = 2", 'unexpected "&" (write and) at character 7: a = 1 && b = 2'),
    ("a = 1 || b = 2", 'unexpected "|" (write or) at character 7: a = 1 || b = 2'),
    ('a in "en"', 'expected a list in parentheses after "in" (write in ("en")) at character 6: a in "en"'),
    ("a in en", 'expected a list in parentheses after "in" (write in ("en")) at character 6: a in en'),
    ("a in", 'expected a list in parentheses after "in" (write in ("en")) at character 5: a in'),
    ("a in ()", f'expected a value after "(" ({VALUES}) at character 7: a in ()'),
    ("a in (1", 'expected "," or ")" (a "(" is not closed) at character 8: a in (1'),
    ("a in (1 2)", 'expected "," or ")" at character 9: a in (1 2)'),
    (
        " ",
        "the filter is empty (write a condition such as year >= 2020, or leave the filter out) at character 1:  ",
    ),
    ("(a = 1", 'expected ")" (a "(" is not closed) at character 7: (a = 1'),
    ("a = 1)", 'unexpected ")" (there is no "(" for it) at character 6: a = 1)'),
    ("()", f'expected a field after "(" ({BEGINS}) at character 2: ()'),
    ("a = null", "null is not a value (write exists FIELD, or not exists FIELD) at character 5: a = null"),
    ("null = 1", "null is not a field (a field of that name is written `null`) at character 1: null = 1"),
    ("metadata = 1", "metadata is not a field of its own (write metadata.NAME) at character 1: metadata = 1"),
    ("true = 1", "expected a field (a field of the name true is written `true`) at character 1: true = 1"),
    ("in = 1", "expected a field (a field of the name in is written `in`) at character 1: in = 1"),
    (
        '"a" = 1',
        'expected a field (a field is written without quotes, or in backticks) at character 1: "a" = 1',
    ),
    ("2020 < year", f"expected a field ({BEGINS}) at character 1: 2020 < year"),
    ("a = 1 and", f'expected a field after "and" ({BEGINS}) at character 10: a = 1 and'),
    ("a = 1 b = 2", 'expected "and" or "or" at character 7: a = 1 b = 2'),
    ("year", 'expected a comparison after "year" (= != < <= > >= in exists) at character 5: year'),
    ("a not = 1", 'expected "in" after "not" at character 7: a not = 1'),
    ('a = "x', 'the quote " is not closed (inside the quotes, " is written \\") at character 5: a = "x'),
    ('a = "C:\\n"', 'unknown escape \\n (write \\\\ for a backslash) at character 5: a = "C:\\n"'),
    (
        "a = 2024-13-01",
        "2024-13-01 is not a date (put it in quotes if it is text) at character 5: a = 2024-13-01",
    ),
    (
        "a = 2024-1",
        "neither a number nor a date (put text in quotes, and a field that begins so in backticks)"
        " at character 5: a = 2024-1",
    ),
    ("a = 2024-13", "2024-13 is not a date (put it in quotes if it is text) at character 5: a = 2024-13"),
    (
        "a >= -7m",
        "neither a number nor a date (the time that has passed is written -12h, -7d, -3w, -6mo or -1y)"
        " at character 6: a >= -7m",
    ),
    (
        "a >= -99999y",
        "-99999y is before the year 1 (write a date such as 2024-01-31) at character 6: a >= -99999y",
    ),
    ("a = 1e999", "the number 1e999 is too large (put it in quotes if it is text) at character 5: a = 1e999"),
    (
        "a = 9223372036854775808",
        "a whole number of more than 64 bits (put it in quotes if it is text) at character 5: a = 9223372036854775808",
    ),
    (
        "@a = 1",
        'unexpected "@" (put text in quotes, and a field with such a character in backticks) at character 1: @a = 1',
    ),
    ('a = "\ud800"', 'half a surrogate pair (write the filter in UTF-8) at character 6: a = " "'),
    (
        "not " * 32 + "a = 1",
        "more than 32 levels of and, or and not (write the values of one field as a list after in)"
        " at character 1: " + ("not " * 32)[:120] + "…",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[text[:20] for text, _ in MISTAKES])
def test_mistakes_are_explained_in_one_line(text: str, message: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert str(caught.value) == "filter: " + message
    assert f"at character {caught.value.position + 1}: " in message
    assert caught.value.text == text


PIECES = [*"ab=<>!()\"'`,.-12& \n\\", " and ", " not ", " in ", "exists ", "a = 1", "null"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@settings(deadline=None, max_examples=400)
def test_any_text_parses_or_is_a_filter_error_of_one_line(text: str) -> None:
    try:
        parse(text)
    except FilterError as error:
        assert str(error).isprintable()
        assert "expected  " not in str(error)


@pytest.mark.timeout(60)  # a bound for the slowest machine: parsing is linear, and all of this takes under a second
def test_long_and_deep_filters_are_fast_and_never_recurse() -> None:
    values = parse(f"x in ({', '.join(map(str, range(10_000)))})")
    assert isinstance(values, In)
    assert values.values == tuple(range(10_000))
    assert parse(" or ".join(f"x{i} = {i}" for i in range(2_000))) == Or(
        tuple(Compare(f"x{i}", "=", i) for i in range(2_000))
    )
    assert parse("(" * 5_000 + "a = 1" + ")" * 5_000) == Compare("a", "=", 1)
    for deep in ("not " * 10_000 + "a = 1", "(" * 10_000, "(a = 1 and not (b = 2 or " * 2_000):
        with pytest.raises(FilterSyntaxError) as caught:
            parse(deep)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("ago", "moment"),
    [
        ("-0h", "2024-03-31T08:30:15+00:00"),
        ("-12h", "2024-03-30T20:30:15+00:00"),
        ("-7d", "2024-03-24T08:30:15+00:00"),
        ("-3w", "2024-03-10T08:30:15+00:00"),
        ("-1mo", "2024-02-29T08:30:15+00:00"),
        ("-13mo", "2023-02-28T08:30:15+00:00"),
        ("-1y", "2023-03-31T08:30:15+00:00"),
        ("-2000y", "0024-03-31T08:30:15+00:00"),
    ],
)
def test_the_time_that_has_passed_is_a_moment(monkeypatch: pytest.MonkeyPatch, ago: str, moment: str) -> None:
    monkeypatch.setattr("indexer.filters.dates.now", lambda: datetime(2024, 3, 31, 8, 30, 15, 999, UTC))
    tree = parse(f"modified >= {ago}")
    assert tree == Compare("modified", ">=", date(moment))
    assert render(tree) == f"modified >= {moment}"  # a filter that is kept means the same later


DOCUMENT: dict[str, Any] = {
    "year": 2021,
    "tags": ["a", "b", None],
    "draft": True,
    "none": None,
    "empty": [],
    "author.name": "Ann",
}
DOCUMENT |= {"title": "", "path": "/x", "metadata.path": "y", "mixed": [1, "1", 2.5]}
DOCUMENT |= {"day": "25-Sep-2000", "days": ["2000-09", "soon", "2000-09-30T23:00-02:00"], "number": 2000}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("year = 2021", True),
        ("year = 2021.0", True),
        ('year = "2021"', False),
        ('year != "2021"', True),
        ("year > 2020 and year <= 2021", True),
        ('tags = "b"', True),
        ('tags != "b"', False),
        ('tags != "c"', True),
        ('tags < "b"', True),
        ('tags in ("c", "b")', True),
        ('tags not in ("c", "b")', False),
        ("draft = true", True),
        ("draft = 1", False),
        ("draft in (1, false)", False),
        ("mixed = 2.5 and mixed = 1 and mixed = '1' and mixed != true", True),
        ("missing = 1", False),
        ("missing != 1", False),
        ("missing not in (1)", False),
        ("not missing = 1", True),
        ("not missing in (1)", True),
        ("exists none or exists empty or exists missing", False),
        ("none != 1 or empty != 1", False),
        ("exists author", True),
        ("author = 'Ann'", False),
        ("exists auth", False),
        ("exists title or title != 'x' or title < 'x'", False),
        ("path = '/x' and metadata.path = 'y'", True),
        ("day = 2000-09-25 and day = 2000-09 and day != 2000-09-24", True),
        ("day = 2000-09-25T00:00:00Z", True),
        ("day = 2000-09-25T00:00:01Z", False),
        ("day > 2000-09-25 or day < 2000-09-25 or day > 2000-09 or day < 2000-09", False),
        ("day >= 2000-09-25 and day <= 2000-09-25 and day >= 2000-09 and day <= 2000-09", True),
        ("day > 2000-09-24 and day > 2000-08 and day < 2000-09-26 and day < 2000-10", True),
        ("day <= 2000-09-24 or day >= 2000-09-26", False),
        ("day in (2000-10, 2000-09-25)", True),
        ("day not in (2000-10, 2000-09-24)", True),
        ("day not in (2000-09)", False),
        ("days = 2000-10-01 and days = 2000-09 and days != 2000-09-02", True),
        ("days = 2000-09-30", False),
        ("tags != 2000-09-25", True),
        ("tags = 2000-09-25 or number = 2000-01-01 or number < 2000-01-01 or missing != 2000-09-25", False),
    ],
)
def test_meaning(text: str, answer: bool) -> None:
    assert matches(parse(text), DOCUMENT) is answer


def test_long_texts_take_little_memory_and_the_length_of_a_filter_is_bounded() -> None:
    parse("a = 1")  # imports the grammar
    for quoted in ('"' + "x" * 200_000 + '"', "'" + "\\\\" * 100_000 + "'"):
        tracemalloc.start()
        try:
            tree = parse(f"a = {quoted}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert isinstance(tree, Compare)
        assert tree.value == quoted[1:-1].replace("\\\\", "\\")
        assert peak < 100 * len(quoted)  # it was 900 bytes for each character
    with pytest.raises(FilterSyntaxError, match=r"has 1,000,001 characters, and at most 1,000,000 are read \(ask in"):
        parse("a = 1" + " " * 999_996)
    assert parse("a = 1" + " " * 999_995) == Compare("a", "=", 1)
