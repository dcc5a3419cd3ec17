"""Filters as mappings mean what the text means, for every store; and wrong ones are refused by the key."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.stores.reference import as_stored
from hypothesis import given
from hypothesis import strategies as st

from indexer import Document, FilterError, Index
from indexer.filters.limits import FilterLimits
from indexer.filters.mapping import filter_tree
from indexer.filters.parse import parse
from indexer.filters.tree import And, Compare, Exists, In, Not, Or, TextMatch, Under, Where, matches
from indexer.filters.unknown_fields import without_unknown_fields
from search import Searcher


def test_the_limits_of_a_filter_are_named() -> None:
    limits = FilterLimits(characters=60, conditions=3, values=2, pattern=4)
    assert filter_tree({"or": [{"a": 1}, {"b": 2}, {"not": {"c": {"like": "abcd"}}}]}, limits) is not None
    assert filter_tree("a in (1, 2) and a not in (3, 4)", limits) is not None
    for where, message in (
        ({"or": [{"a": 1}] * 4}, "filter: has more than 3 conditions: write the values of one field as a list"),
        ("a = 1 or b = 2 or c = 3 or d = 4", "filter: has more than 3 conditions: write the values of one field"),
        (In("a", (1, 2, 3)), "filter: a is compared with 3 values, and at most 2 are read: ask in parts"),
        ({"a": {"not in": [1, 2, 3]}}, "filter: a is compared with 3 values, and at most 2 are read: ask in parts"),
        ({"a": {"like": "%abcd"}}, "filter: the text after a like has 5 characters, and at most 4 are read: give a"),
        ({"a": {"not contains": "abcde"}}, "filter: the text after a contains has 5 characters, and at most 4 are"),
        ("a = " + "1" * 60, "filter: the filter has 64 characters, and at most 60 are read (ask in parts, or give"),
    ):
        with pytest.raises(FilterError, match=re.escape(message)):
            filter_tree(where, limits)


@pytest.mark.slow
def test_a_program_may_compare_a_field_with_100_000_values() -> None:
    tree = filter_tree({"a": {"in": list(range(100_000))}})
    assert isinstance(tree, In)
    assert len(tree.values) == 100_000
    with pytest.raises(FilterError, match="more than 10,000 conditions"):
        filter_tree({"or": [{"a": {"contains": str(number)}} for number in range(10_001)]})


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ({"year": 2020}, "year = 2020"),
        ({"year": {">=": 2020, "<": 2022}}, "year >= 2020 and year < 2022"),
        ({"year": {"!=": 2020}, "lang": {"in": ["en", "de"]}}, 'year != 2020 and lang in ("en", "de")'),
        ({"lang": {"not in": ("en",)}}, 'lang not in ("en")'),
        ({"draft": {"exists": True}}, "exists draft"),
        ({"draft": {"exists": False}}, "not exists draft"),
        ({"or": [{"a": 1}, {"b": 2, "c": 3}]}, "a = 1 or (b = 2 and c = 3)"),
        ({"or": [{"a": 1}]}, "a = 1"),
        ({"not": {"a": 1, "b": 2}}, "not (a = 1 and b = 2)"),
        ({"and": [{"a": 1}, {"not": {"b": True}}], "title": "x"}, '(a = 1 and not b = true) and title = "x"'),
        ({"metadata.title": 'say "x"'}, r'metadata.title = "say \"x\""'),
        ({"metadata.size": 1.5}, "size = 1.5"),
        ({"day": {">=": date(2024, 2, 29)}}, "day >= 2024-02-29"),
        ({"day": {"<": datetime(2024, 2, 29, 10, 30)}}, "day < 2024-02-29T10:30:00.000000+00:00"),
        (
            {"day": {"in": [datetime(2024, 2, 29, 10, 30, 0, 7, timezone(timedelta(hours=2)))]}},
            "day in (2024-02-29T08:30:00.000007+00:00)",
        ),
        ({"day": "2024-02-29"}, 'day = "2024-02-29"'),
        ({"title": {"contains": "x", "not like": "50\\%"}}, r'title contains "x" and title not like "50\%"'),
        ({"a": {"startswith": "x", "not endswith": "y"}}, 'a startswith "x" and a not endswith "y"'),
        ({"path": {"under": "/a/b/"}, "lang": "en"}, 'under "/a/b" and lang = "en"'),
        ({"not": {"under": Path("notes")}}, 'not under "notes"'),
        ({"`under`": "notes", "like": "x"}, 'under = "notes" and like = "x"'),
        ({"under": {"=": "notes"}, "contains": {"contains": "x"}}, 'under = "notes" and contains contains "x"'),
        ({"under": 3}, "under = 3"),
        ({"`or`": 1, "`a b`": "c\\d"}, r'`or` = 1 and `a b` = "c\\d"'),
    ],
)
def test_a_mapping_is_the_tree_of_its_text(mapping: dict[str, Any], text: str) -> None:
    assert filter_tree(mapping) == parse(text)


def test_no_filter() -> None:
    assert filter_tree(None) is None
    assert filter_tree({}) is None


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"year": None}, "'year': None or null is not a value: use \"exists\", with false"),
        (
            {"day": {"<": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}},
            "'<': .* outside the years",
        ),
        ({"day": time(10, 30)}, "'day': a time is not a value: use text, a number, a date, true or false"),
        ({"year": [1, 2]}, "a list is not a value.*use .*in"),
        ({"year": {}}, "'year': give a mapping with a condition"),
        ({"year": {"~": 1}}, "'year': '~' is not a comparison: use one of = != < <= > >= in not in exists contains"),
        ({"a": {"like": 3}}, "'a': 'like': give text"),
        ({"a": {"under": "x"}}, "'a': 'under' is not a comparison"),
        ({"path": {"under": 3}}, "'path': 'under': give the name of a folder"),
        ({"path": {"under": ""}}, "under takes the name of a folder"),
        ({"a": {"contains": "\ud800"}}, "not valid Unicode"),
        ({"year": {"in": "abc"}}, "'in': give a list of values"),
        ({"year": {"exists": 1}}, "give true, or false"),
        ({"year": float("nan")}, "outside the numbers"),
        ({"year": 2**63}, "outside the numbers"),
        ({"a": "\ud800"}, "not valid Unicode"),
        ({"\ud800": 1}, "not valid Unicode"),
        ({1: 2}, "1 is not the name of a field"),
        ({"metadata": 1}, "is not a field"),
        ({"": 1}, "is not a field"),
        ({"metadata.": 1}, "is not a field"),
        ({"or": []}, "'or': give a list of mappings"),
        ({"or": {"a": 1}}, "'or': give a list of mappings"),
        ({"and": [{}]}, "'and': give a mapping with a condition"),
        ({"not": [1]}, "'not': give a mapping"),
        ({"or": [{"a": {"<": None}}]}, "'or': 'a': '<': None or null is not a value"),
    ],
)
def test_what_is_not_a_filter_is_refused_by_its_key(mapping: Any, message: str) -> None:
    with pytest.raises(FilterError, match=message):
        filter_tree(mapping)


@pytest.mark.parametrize("join", [And, Or])
def test_a_tree_that_joins_nothing_cannot_be_made(join: Any) -> None:
    with pytest.raises(FilterError, match="joins no conditions"):
        join(())


def test_a_tree_that_no_text_gives_is_refused() -> None:
    with pytest.raises(FilterError, match="'> 0 OR 1 =' is not a comparison"):
        Compare("year", "> 0 OR 1 =", 1)  # type: ignore[arg-type]
    for value in (None, np.int64(3), b"en"):
        with pytest.raises(FilterError, match="is not a value: use text"):
            Compare("year", "=", value)  # type: ignore[arg-type]
        with pytest.raises(FilterError, match="is not a value: use text"):
            In("year", (1, value))  # type: ignore[arg-type]


def test_a_mapping_of_many_levels_is_refused() -> None:
    mapping: dict[str, Any] = {"a": 1}
    for _ in range(40):
        mapping = {"not": mapping}
    with pytest.raises(FilterError, match="more than 32 levels"):
        filter_tree(mapping)


DOCUMENTS = [
    Document(f"d{n}", "text", metadata={"n": n, **({"even": True} if n % 2 == 0 else {"tags": ["x", str(n)]})})
    for n in range(8)
]


def test_lists_without_a_value_leave_nothing_and_everything_present(tmp_path: Any) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(DOCUMENTS, vectors=np.array([[1.0, n] for n in range(8)]))
        assert searcher.count({"n": {"in": []}}) == 0
        assert searcher.count({"tags": {"not in": []}}) == 4
        assert searcher.count({"not": {"n": {"in": []}}}) == 8
        assert searcher.search_vector([1.0, 1.0], 5, where={"n": {"in": []}}).matched == 0


KNOWN = ("n", "even", "tags")
_leaves = st.one_of(
    st.builds(Compare, st.sampled_from([*KNOWN, "nothing"]), st.sampled_from(["=", "!=", "<"]), st.just(3)),
    st.builds(In, st.sampled_from([*KNOWN, "nothing"]), st.just((1, "x")), st.booleans()),
    st.builds(Exists, st.sampled_from([*KNOWN, "nothing", "uri"])),
    st.builds(TextMatch, st.sampled_from([*KNOWN, "nothing", "uri"]), st.just("contains"), st.just("3")),
    st.builds(Under, st.just("/")),
)
trees: st.SearchStrategy[Where] = st.recursive(
    _leaves,
    lambda parts: st.one_of(
        st.builds(Not, parts),
        st.builds(lambda given: And(tuple(given)), st.lists(parts, min_size=2, max_size=3)),
        st.builds(lambda given: Or(tuple(given)), st.lists(parts, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)


@given(trees)
def test_conditions_on_unknown_fields_hold_for_no_document(tree: Where) -> None:
    known = without_unknown_fields(tree, KNOWN)
    assert "nothing" not in repr(known)
    for document in DOCUMENTS:
        expected = matches(tree, as_stored(document)[1])
        assert expected == (known if isinstance(known, bool) else matches(known, as_stored(document)[1]))
