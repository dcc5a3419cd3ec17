"""Filters, on every engine."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from engine.stores.suite.suite import AXES, doc, put, remove, uris
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from indexer.deadline import Deadline
from indexer.errors import DeadlinePassed, FilterError
from indexer.filters.dates import Date, read_date
from indexer.filters.mapping import filter_tree
from indexer.filters.operators import COMPARISONS, TEXT_OPERATORS
from indexer.filters.parse import parse
from indexer.filters.tree import (
    COLUMNS,
    And,
    Compare,
    Exists,
    In,
    Not,
    Or,
    TextMatch,
    Type,
    Under,
    Where,
    matches,
    render,
)
from indexer.stores.fields.field_types import check_filter, only_dates
from indexer.stores.port import Batch, FieldValues, Sort
from indexer.stores.reading.store import Store

COLLECTION = [
    doc("a", "t", title="Apple", path="/x/a.txt", format="text", modified="2024-01-31T10:00:00Z",
        metadata={"year": 2020, "lang": "en", "draft": True, "tags": ["x", "y"], "author": {"name": "Ann"}}),
    doc("b", "t", title="", metadata={"year": 2021.5, "lang": "dé", "draft": False, "tags": [], "author": None}),
    doc("c", "t", title="Pear", format="pdf", modified="2025-06-01", path="",
        metadata={"year": "2020", "lang": None, "tags": ["y", 3], "title": "own", "cites": [{"by": 1}, {"by": "q"}]}),
    doc("d", "t", title="apple", metadata={"year": [1999, 2030], "my field": 1, "author": {"name": "Zoë", "age": 7}}),
    doc("e", "t"),
]  # fmt: skip

MEANINGS = [
    ("year = 2020", "a"), ("year = 2020.0", "a"), ("year = 2021.5", "b"), ('year = "2020"', "c"), ("year = 1999", "d"),
    ("year != 2020", "bcd"), ('year != "2020"', "abd"), ("year < 2020", "d"), ("year <= 2020", "ad"),
    ("year > 2020", "bd"), ("year >= 2021.5", "bd"), ('year >= "x"', ""), ("year > 99999", ""),
    ("year in (2020, 2030)", "ad"), ('year in (2021.5, "2020")', "bc"), ("year not in (2020, 1999)", "bc"),
    ('lang < "d\u00e9\0"', "b"), ('lang <= "d\u00e9\0x"', "b"), ('lang > "d\u00e9\0"', "a"), ('lang >= "en\0"', ""),
    ('lang = "en\0"', ""), ('lang != "en\0"', "ab"), ('lang in ("en", "d\0")', "a"), ('lang contains "\0"', ""),
    ('lang startswith "e\0"', ""), ('not lang endswith "\0n"', "abcde"), ('lang like "%\0%"', ""),
    ('year not in ("2020")', "abd"), ("exists year", "abcd"), ("not exists year", "e"), ("not year = 2020", "bcde"),
    ("draft = true", "a"), ("draft = false", "b"), ("draft != true", "b"), ("not draft = true", "bcde"),
    ("draft in (true, false)", "ab"), ("draft < true", "b"), ("exists draft", "ab"),
    ('lang = "dé"', "b"), ('lang != "dé"', "a"), ('lang > "dz"', "ab"), ("exists lang", "ab"), ('lang < "e"', "b"),
    ('tags = "y"', "ac"), ('tags != "y"', ""), ('tags != "x"', "c"), ("tags = 3", "c"), ('tags in ("x", "z")', "a"),
    ('tags not in ("x")', "c"), ("exists tags", "ac"),
    ('author.name = "Ann"', "a"), ("exists author", "ad"), ("author.age >= 7", "d"), ('author.name >= "Zo"', "d"),
    ("cites.by = 1", "c"), ('cites.by = "q"', "c"), ("exists cites", "c"), ("`my field` = 1", "d"),
    ('title = "Apple"', "a"), ('title != "Apple"', "cd"), ("exists title", "acd"), ('title > "P"', "cd"),
    ('metadata.title = "own"', "c"), ("exists metadata.title", "c"), ("metadata.year = 2020", "a"),
    ('uri = "e"', "e"), ('uri in ("a", "e", "x")', "ae"), ('uri not in ("a", "e")', "bcd"), ('uri >= "c"', "cde"),
    ('path = "/x/a.txt"', "a"), ("exists path", "a"), ("not exists path", "bcde"), ('path > "/"', "a"),
    ('format = "pdf"', "c"), ("exists format", "ac"), ('format not in ("pdf")', "a"),
    ("modified >= 2024-01-31", "ac"), ("modified < 2025", "a"), ("modified = 2025", "c"),
    ("modified in (2024, 2025)", "ac"), ("modified > 2024", "c"), ('modified < "2025"', "a"), ("exists modified", "ac"),
    ("modified = 2025-06-01", "c"), ("modified not in (2025-06-01)", "a"),
    ('title contains "pp"', "ad"), ('title contains "PP"', ""), ('title not contains "pp"', "c"),
    ('title startswith "Ap"', "a"), ('title startswith ""', "acd"), ('title endswith "ple"', "ad"),
    ('title like "APPLE"', "ad"), ('title like "%E%"', "acd"), ('title like "_ear"', "c"), ('title not like "a%"', "c"),
    ('lang like "DÉ"', "b"), ('lang contains ""', "ab"), ('tags startswith "x" and tags endswith "y"', "a"),
    ('tags contains "y"', "ac"), ('tags not contains "x"', "c"), ('tags not contains "z"', "ac"),
    ('year like "20%"', "c"), ('year not like "19%"', "abcd"), ('author.name like "zOË"', "d"),
    ('modified startswith "2024-01"', "a"), ('modified contains "-"', "ac"), ('uri like "A"', "a"),
    ('cites.by contains "q"', "c"), ('metadata.title like "o_n"', "c"), ('format endswith "f"', "c"),
    ('under "/x"', "a"), ('under "/"', "a"), ('under "/x/a.txt"', "a"), ('not under "/x"', "bcde"), ('under "/y"', ""),
    ("year = 2020 and draft = true", "a"), ("year = 2020 or draft = false", "ab"),
    ("not (year = 2020 or draft = false)", "cde"), ("(year > 2000 or exists tags) and not draft = true", "bcd"),
    ('uri = "a" or uri = "b" or year = 1999', "abd"), ("exists year and not (exists draft and exists lang)", "cd"),
]  # fmt: skip

EMPTY = [
    (In("year", ()), ""), (In("year", (), negated=True), "abcd"), (Not(In("tags", ())), "abcde"),
    (And((In("lang", ()), Exists("year"))), ""), (Or((In("lang", ()), Exists("draft"))), "ab"),
]  # fmt: skip


def test_one_of_no_values_holds_for_nothing(store: Store) -> None:
    put(store, *COLLECTION)
    with store.snapshot() as snapshot:
        for where, expected in EMPTY:
            ranking = snapshot.dense(AXES[0], 9, where, "document", False)
            assert "".join(sorted(uris(snapshot, ranking))) == expected, where
            assert "".join(uri for uri in "abcdex" if snapshot.matches(uri, where)) == expected, where
        with pytest.raises(FilterError, match="no document has a field"):
            snapshot.matches("a", In("yeer", ()))


def test_filters_mean_what_the_grammar_says(store: Store) -> None:
    put(store, *COLLECTION)
    for settled in (False, True):
        with store.writer() as writer:
            if settled:
                writer.settle()
        with store.snapshot() as snapshot:
            for text, expected in MEANINGS:
                if expected is None:
                    with pytest.raises(FilterError):
                        snapshot.dense(AXES[0], 9, parse(text), "document", False)
                    continue
                where = parse(text)
                ranking = snapshot.dense(AXES[0], 9, where, "document", False)
                assert (sorted(uris(snapshot, ranking)), ranking.matched) == (list(expected), len(expected)), text
                assert "".join(uri for uri in "abcdex" if snapshot.matches(uri, where)) == expected, text
                if text.startswith(("exists", "year")):
                    assert "".join(document.uri for document in store.iterate(where)) == expected, text


def test_every_engine_reads_patterns_as_regular_expressions_do(store: Store) -> None:
    random = Random(0)
    texts = {"".join(random.choices("abAß_%\\\n", k=random.randrange(1, 12))) for _ in range(120)}
    put(store, *(doc(str(number), "t", metadata={"x": text}) for number, text in enumerate(sorted(texts))))
    wild = {"%": ".*", "_": "."}
    with store.snapshot() as snapshot:
        for _ in range(150):
            pattern = "".join(random.choices("abß%_%_\\", k=random.randrange(1, 9)))
            tokens = re.findall(r"\\[%_\\]|.", pattern)
            expression = "".join(wild.get(token) or re.escape(token[-1].casefold()) for token in tokens)
            like = {t for t in texts if re.fullmatch(expression, t.casefold(), re.DOTALL)}
            expected = [str(number) for number, text in enumerate(sorted(texts)) if text in like]
            assert snapshot.uris(TextMatch("x", "like", pattern)) == expected, pattern


def test_a_filter_ends_when_its_deadline_has_passed(store: Store) -> None:
    put(store, *(doc(str(number), "t", metadata={"x": f"{number} " * 400, "n": number}) for number in range(40)))
    slow = Or(tuple(TextMatch("x", "like", f"%{number}_x%") for number in range(40)))
    for where in (slow, Compare("n", ">=", 7)):
        passed = Deadline()
        with pytest.raises(DeadlinePassed), store.snapshot(passed) as snapshot:
            passed.cancel()
            snapshot.count(where)
    late = Deadline()
    timer = threading.Timer(0.1, late.cancel)
    timer.start()
    with pytest.raises(DeadlinePassed), store.snapshot(late) as snapshot:
        for number in itertools.count():
            snapshot.count(TextMatch("x", "like", f"%{number}_x%"))
    timer.join()
    with store.snapshot() as snapshot:  # the connection is as new for the next question
        assert snapshot.count(Compare("n", ">=", 7)) == 33


REFUSED = [
    ("yeer = 2020", 'filter: no document has a field "yeer"; near: year'),
    ("exists nothing_like_it", 'filter: no document has a field "nothing_like_it"; it has: uri, title, path'),
    ("author = 1", 'filter: no document has a field "author"; near: author.age, author.name'),
    ('draft = "yes"', 'filter: field draft cannot be compared with "yes": compare it with true or false'),
    ("lang >= 3", 'filter: field lang cannot be compared with 3: compare it with text in quotes such as "en"'),
    ("year = true", "filter: field year cannot be compared with true: compare it with a number such as 2020 or a "),
    ("title = 3", 'filter: field title cannot be compared with 3: compare it with text in quotes such as "en"'),
    ('modified > "today"', 'filter: field modified cannot be compared with "today": compare it with a date such a'),
    ('lang in ("en", 3)', 'filter: field lang cannot be compared with 3: compare it with text in quotes such as "'),
    ('year >= "2"', 'filter: field year cannot be compared with "2": compare it with 2, without quotes'),
    ('draft contains "t"', 'filter: field draft cannot be compared with "t": compare it with true or false'),
    ('tittle like "a%"', 'filter: no document has a field "tittle"; near: title'),
    ("year = 2020 or not (draft = true and yeer = 1)", 'filter: no document has a field "yeer"; near: year'),
]


def test_a_filter_that_does_not_fit_is_refused_with_what_would(store: Store) -> None:
    put(store, *COLLECTION)
    with store.snapshot() as snapshot:
        for text, message in REFUSED:
            where = parse(text)
            for ask in (
                lambda: snapshot.dense(AXES[0], 9, where, "document", False),  # noqa: B023
                lambda: snapshot.words("apple", 9, where, "passage"),  # noqa: B023
                lambda: snapshot.candidates(AXES[0], "apple", 9, where, "document", False),  # noqa: B023
                lambda: snapshot.matches("a", where),  # noqa: B023
                lambda: list(store.iterate(where)),  # noqa: B023
            ):
                with pytest.raises(FilterError) as raised:
                    ask()
                assert str(raised.value).startswith(message)


OF_DATES = [
    doc("a", "t", modified="2024-01-31T10:00:00+00:00", metadata={"created": "25-Sep-2000", "code": "2000"}),
    doc("b", "t", modified="2024-02-01", metadata={"created": "Sept 25, 2000", "code": "x"}),
    doc("c", "t", modified="1706697000", metadata={"created": ["2000-09-26T01:30:00+02:00", "soon"], "n": 2000}),
    doc("d", "t", metadata={"created": "2000/9/26", "history": [{"day": "1999"}, {"day": "2001-10"}], "lang": "en"}),
    doc("e", "t", modified="", metadata={"created": "09/25/2000", "n": 1}),
    doc("f", "t", metadata={"created": "Mon, 25 Sep 2000 10:30:00 +0000", "modified": "2000-09-25"}),
]
MEANINGS_OF_DATES = [
    ("created = 2000-09-25", "abf"), ("created = 2000-09", "abcdf"), ("created = 2000-09-25T10:30", "f"),
    ("created != 2000-09-25", "cde"), ("not created = 2000-09-25", "cde"), ("created > 2000-09-25", "cd"),
    ("created >= 2000-09-25", "abcdf"), ("created >= 2000-09-25T00:00:00.000001Z", "cdf"), ("created < 2000-09-25", ""),
    ("created <= 2000-09-25", "abf"), ("created < 2000-09-26", "abf"), ("created > 2000-08", "abcdf"),
    ("created >= 2000-09-25T23:30:00Z", "cd"), ("created > 2000-09-25T23:30Z", "d"), ("created <= 2000-09", "abcdf"),
    ("created in (2000-09-26, 1999-01)", "cd"), ("created not in (2000-09-26, 1999-01)", "abef"),
    ("created in (2000-09-26, 2000-09-25T10:30:00Z, 2000-09-26T00:00Z)", "cdf"), ("exists created", "abcdef"),
    ('created in (2000-09-26, "soon", "09/25/2000")', "cde"), ('created != "soon"', "abdef"), ('created > "t"', ""),
    ('created = "25-Sep-2000"', "abf"), ('created >= "Sep 26, 2000"', "cd"), ('created = "September 2000"', "abcdf"),
    ('created != "25-Sep-2000"', "cde"), ('created in ("2000-09-26", "soon")', "cd"), ('created < "2000-10"', "abcdf"),
    ('created not in ("2000-09-26", "soon")', "abef"), ('created = "09/25/2000"', "e"), ('created < "09/26"', "e"),
    ("history.day < 2000-01-01 and history.day >= 2001-10-01 and history.day = 1999-01-01", "d"),
    ("code = 2000-01-01", "a"), ('code = "2000"', "a"), ('code >= "2"', "ab"), ('code < "2001"', "a"),
    ('code >= "2000"', "a"), ("code != 2000-01-01", "b"), ('created = "2000"', "abcdf"), ('created < "2000"', ""),
    ('modified >= "2024"', "ab"), ('modified not in ("2024")', "c"), ('code in ("2001", "x")', "b"),
    ("modified >= 2024-02-01", "b"), ("modified = 2024-01", "a"), ("modified < 2024-02", "a"),
    ("exists modified", "abc"), ("modified != 2024-01-31", "bc"),
    ('modified = "2024-01-31"', "a"), ('modified < "2024-02-01"', "a"),
    ('modified = "31 Jan 2024"', "a"), ('modified < "2024"', ""), ("metadata.modified = 2000-09-25", "f"),
    ("created >= 2000", "abcdf"), ("created > 2000", ""), ("created = 2000", "abcdf"), ("created in (1999, 2001)", ""),
    ("history.day >= 2000", "d"), ("history.day = 1999", "d"), ("code = 2000", "a"), ("code != 2000", "b"),
    ('history.day != ""', "d"), ('history.day > ""', "d"),
    ("modified >= 2024", "ab"), ("modified not in (2024)", "c"), ("n = 2000", "c"), ("n < 2000", "e"),
    ("created = 2000-09-25T23:30Z", "c"), ("created = 2000-09-26T00:30+01:00", "c"),
    ('created > "2000-09-25T19:29-04:00" and created < "2000-09-26T09:01+09:30"', "c"),
    ("modified >= -1h", ""), ("modified < -7d", "ab"), ("created < -1y and not created < -9999mo", "abcdf"),
]  # fmt: skip


def test_dates_mean_the_time_they_name(store: Store) -> None:
    put(store, *OF_DATES)
    for settled in (False, True):
        with store.writer() as writer:
            if settled:
                writer.settle()
        with store.snapshot() as snapshot:
            for text, expected in MEANINGS_OF_DATES:
                where = parse(text)
                ranking = snapshot.dense(AXES[0], 9, where, "document", False)
                assert (sorted(uris(snapshot, ranking)), ranking.matched) == (list(expected), len(expected)), text
                assert "".join(uri for uri in "abcdefx" if snapshot.matches(uri, where)) == expected, text
    with store.snapshot() as snapshot:
        info = snapshot.info()
        assert info.dates == ("code", "created", "history.day", "metadata.modified")
        assert (info.fields["created"], info.fields["code"], info.fields["n"]) == (("text",), ("text",), ("number",))
        assert snapshot.fields is not None
        assert "modified" not in info.fields
        assert "modified" not in snapshot.fields
    put(store, doc("a", "t", modified="2025-03-01", metadata={"created": "26 Sep 2000"}))
    with store.snapshot() as snapshot:
        assert snapshot.count(parse("created = 2000-09-26 and modified = 2025-03")) == 1
        assert snapshot.count(parse("created = 2000-09-25")) == 2
        assert snapshot.uris(parse("created = 2000-09-26 and modified = 2025-03")) == ["a"]
        assert snapshot.uris(parse("created = 2000-09-25")) == ["b", "f"]
        assert snapshot.uris() == [document.uri for document in store.iterate()]
        assert snapshot.check(None).ok
        assert "code" not in snapshot.info().dates
    with store.writer() as writer:
        writer.remove("abcdef")
        writer.put(Batch([doc("g", "t", metadata={"n": 1})]))
    with store.snapshot() as snapshot:
        assert (snapshot.info().dates, snapshot.count(parse("modified > 2000-01"))) == ((), 0)


REFUSED_OF_DATES = [
    ("n >= 2000-01-01", "n cannot be compared with 2000-01-01, as it holds no date: compare it with a number such as"),
    (
        "lang = 2000-01",
        "lang cannot be compared with 2000-01, as it holds no date: compare it with text in quot",
    ),
    (
        "title > 2000-01",
        "title cannot be compared with 2000-01, as it holds no date: compare it with text in quot",
    ),
    (
        "created >= 20000",
        "created cannot be compared with 20000: compare it with a date such as 2026-01-31 or -7d or t",
    ),
    ("created in (true)", "created cannot be compared with true: compare it with a date such as 2026-01-31 or -7d or "),
    (
        'history.day in ("", "soon")',
        'history.day cannot be compared with "soon": compare it with a date such as 2026-01',
    ),
    ('history.day > "last week"', 'history.day cannot be compared with "last week": compare it with a date such as 20'),
    ('history.day in (1999, "2001-10", "soon")', 'history.day cannot be compared with "soon": compare it with a date '),
    ('modified != "soon"', 'modified cannot be compared with "soon": compare it with a date such as 2026-01-31 or -7d'),
    ('n > "1999"', 'n cannot be compared with "1999": compare it with 1999, without quotes'),
    ("modified > 3", "modified cannot be compared with 3: compare it with a date such as 2026-01-31"),
    ('modified > "7d"', 'modified cannot be compared with "7d": compare it with a date such as 2026-01-31'),
]


def test_a_date_is_compared_with_dates_alone(store: Store) -> None:
    put(store, *OF_DATES)
    with store.snapshot() as snapshot:
        for text, message in REFUSED_OF_DATES:
            with pytest.raises(FilterError) as raised:
                snapshot.matches("a", parse(text))
            assert str(raised.value).startswith(f"filter: field {message}"), text


def test_values_of_a_field_are_counted(store: Store) -> None:
    put(
        store,
        doc("a", "t", metadata={"n": [1, 2.5, "1"], "lang": "en", "on": True, "deep": [{"x": "y"}, {"x": "y"}]}),
        doc("b", "t", metadata={"n": 1.0, "lang": ["en", "de"], "on": False, "day": "25-Sep-2000"}, format="html"),
        doc("c", "t", metadata={"n": -3, "lang": "é", "day": ["2001-02", "soon", "x" * 201]}, format="pdf"),
        doc("d", "t", metadata={"n": None, "lang": [], "on": True}, format="pdf", modified="2024-01-31T23:30:00-01:00"),
        doc("e", "t", metadata={"least": -(2**63), "near": 2**53, "far": -1.7e308}),
        doc("f", "t", metadata={"near": 2**53 + 1, "far": 1.7e308}),
    )
    expected = {
        "n": FieldValues(3, ((1, 2), (-3, 1), (2.5, 1), ("1", 1)), (-3, 2.5)),
        "lang": FieldValues(3, (("en", 2), ("de", 1), ("é", 1))),
        "on": FieldValues(3, ((True, 2), (False, 1))),
        "deep.x": FieldValues(1, (("y", 1),)),
        "day": FieldValues(2, (("2001-02", 1), ("25-Sep-2000", 1), ("soon", 1)), None, ("2000-09-25", "2001-02-01")),
        "format": FieldValues(3, (("pdf", 2), ("html", 1))),
        "modified": FieldValues(1, (("2024-01-31T23:30:00-01:00", 1),), None, ("2024-02-01", "2024-02-01")),
        "uri": FieldValues(6, (("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1))),
        "least": FieldValues(1, ((-(2**63), 1),), (-(2**63), -(2**63))),
        "nothing": FieldValues(),
    }
    for settled in (False, True):
        with store.writer() as writer:
            if settled:
                writer.settle()
        with store.snapshot() as snapshot:
            assert {field: snapshot.values(field, 20) for field in expected} == expected
            assert [type(value) for value, _ in snapshot.values("on", 20).frequent] == [bool, bool]
            assert [type(value) for value in snapshot.values("least", 20).numbers or ()] == [int, int]
            assert snapshot.values("lang", 1).frequent == (("en", 2),)
            assert snapshot.values("lang", 1).documents == 3
            english = parse('lang = "en"')
            assert snapshot.values("n", 20, english) == FieldValues(2, ((1, 2), (2.5, 1), ("1", 1)), (-3, 2.5))
            assert snapshot.values("format", 20, english) == FieldValues(1, (("html", 1),))
            assert snapshot.values("day", 20, english).frequent == (("25-Sep-2000", 1),)
            assert snapshot.histogram("n", "number", 3) == [1, 0, 3]
            assert snapshot.histogram("n", "number", 3, english) == [0, 0, 3]
            assert snapshot.histogram("day", "date", 2) == [1, 1]
            assert snapshot.histogram("day", "date", 2, english) == [1, 0]
            # A field of one number, without numbers, with equal floats, and with a range that no float can say.
            assert [snapshot.histogram(name, "number", 4) for name in ("least", "lang", "near", "far")] == [[]] * 4
    remove(store, "a", "b", "c")
    with store.snapshot() as snapshot:
        assert (snapshot.values("n", 20), snapshot.values("day", 20)) == (FieldValues(), FieldValues())
        assert (snapshot.histogram("n", "number", 3), snapshot.histogram("day", "date", 2)) == ([], [])
        assert snapshot.values("on", 20) == FieldValues(1, ((True, 1),))


def test_documents_are_listed_by_time_and_title(store: Store) -> None:
    put(
        store,
        doc("a", "first", title="beta", metadata={"n": 1}, modified="2024-01-31T10:00:00Z"),
        doc("b", "second", title="Alpha", metadata={"n": 1}, path="/srv/x/b.txt"),
        doc("c", "third", metadata={"n": 2}, modified="2024-02-01T10:00:00Z", path="/srv/y/c.txt"),
        doc("d", "fourth", title="gamma", path="/srv/y/d.txt"),
    )
    with store.snapshot() as snapshot:

        def listed(k: int, where: str | None, sort: Sort) -> tuple[list[str], int]:
            passages, matched = snapshot.first_passages(k, where and parse(where), sort)  # type: ignore[arg-type]
            return [passage.uri for passage in snapshot.passages_by_id([*passages])], matched

        assert listed(10, None, "newest") == (["c", "a", "d", "b"], 4)
        assert listed(10, None, "title") == (["b", "a", "c", "d"], 4)  # one without a title by its uri
        assert listed(1, "n = 1", "title") == (["b"], 2)
        assert snapshot.paths() == ["/srv/x/b.txt", "/srv/y/c.txt", "/srv/y/d.txt"]
        assert snapshot.paths(parse("n = 2")) == ["/srv/y/c.txt"]


def test_many_dates_in_a_list(store: Store) -> None:
    days = [date(2020, 1, 1) + timedelta(days=number) for number in range(300)]
    put(store, *(doc(day.isoformat(), "t", metadata={"day": f"{day:%d %B %Y}"}) for day in days))
    with store.snapshot() as snapshot:
        some = [*days[::3], *days[:10], *(day + timedelta(days=5_000) for day in days)]
        where = filter_tree({"day": {"in": some}})
        assert where is not None
        assert snapshot.count(where) == 106
        assert snapshot.count(filter_tree({"day": {"not in": some}}) or where) == 194


def flat(value: Any, path: str = "") -> dict[str, list[Any]]:
    """Metadata as `matches` takes it; written apart from the code under test."""
    if isinstance(value, dict):
        members = [flat(member, f"{path}.{key}" if path else key) for key, member in value.items()]
    elif isinstance(value, list):
        members = [flat(element, path) for element in value]
    else:
        reserved = path.split(".", maxsplit=1)[0] in (*COLUMNS, "metadata")
        return {} if value is None else {f"metadata.{path}" if reserved else path: [value]}
    merged: dict[str, list[Any]] = {}
    for member in members:
        for name, values in member.items():
            merged.setdefault(name, []).extend(values)
    return merged


def fits(where: Where, known: Mapping[str, list[Any]]) -> bool:
    """Return whether every condition of a filter names a field that some document has, with a value of one of its
    types."""
    if isinstance(where, And | Or):
        return all(fits(part, known) for part in where.parts)
    if isinstance(where, Not):
        return fits(where.part, known)
    if isinstance(where, Exists):
        return where.field in COLUMNS or any(f"{name}.".startswith(f"{where.field}.") for name in known)
    if isinstance(where, Under):
        return True
    if isinstance(where, TextMatch):
        return where.field in COLUMNS or str in {kind(value) for value in known.get(where.field, [])}
    return has_types(where, known)


def has_types(where: Compare | In, known: Mapping[str, list[Any]]) -> bool:
    """Return whether a field has the types of all values of a condition."""
    values = where.values if isinstance(where, In) else (where.value,)
    kinds = {kind(value) for value in known.get(where.field, [])}
    texts = sorted(value for value in known.get(where.field, []) if isinstance(value, str) and value)
    if any(read_date(text) for text in texts):
        kinds.add(Date)
    if where.field in COLUMNS:
        kinds = {str}
    if where.field == "modified" or only_dates(*(texts[:1] or [None]), *(texts[-1:] or [None])):
        kinds |= {Date}
        is_number = float in kinds
        if any(isinstance(value, str) and value and not is_date(value, is_number) for value in values):
            return False
        kinds |= {str} if any(isinstance(value, str) for value in values) else set()
    is_ordered = isinstance(where, Compare) and where.op not in ("=", "!=")
    if is_ordered and float in kinds and where.value in ("1", "2020"):  # a number in quotes
        return False
    return {kind(value) for value in values} <= kinds


def is_date(text: str, is_number: bool) -> bool:
    """Return whether a text is a date for a field that has numbers, or none."""
    date = read_date(text)
    return date is not None and not (is_number and date.precision == "year")


def kind(value: Any) -> type:
    return float if type(value) in (int, float) else type(value)


def snapshot_types(known: Mapping[str, list[Any]]) -> dict[str, Collection[Type]]:
    """The types of each field, as a store gives them to `check_filter`."""
    kinds: dict[type, Type] = {float: "number", bool: "boolean", str: "text"}
    types: dict[str, Collection[Type]] = {}
    for name, values in known.items():
        texts = sorted(value for value in values if isinstance(value, str) and value)
        dates: set[Type] = {"date"} if any(map(read_date, texts)) else set()
        types[name] = {kinds[kind(value)] for value in values} | dates
        if texts and only_dates(texts[0], texts[-1]):
            types[name] = {*types[name]} - {"text"}
    return types


FEW = [0, 1, 2, -3, 0.5, 1.0, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e300, 0.1]
TEXTS = ["", "a", "b", "é", "1", "true", "🦉", "aB", "É%", "ΣΑς", "Straße", "ŉ", "\U0010ffff", "\ud7ffa"]
parts = st.sampled_from(
    [
        *TEXTS,
        "%",
        "_",
        "%A%",
        "b%",
        "σας",
        "%SS_",
        "strasse",
        "_n",
        "\\%",
        "%\\%",
        "-",
        "20",
        "\U0010ffff\U0010ffff",
        "\ud7ff",
    ]
)
PATHS = [None, "", "a", "/a", "/a/b", "/a/bc/d", "/a/b/c"]
DAYS = ["2020", "2020-02", "2020-02-01", "1-Feb-2020", "Feb 29, 2020", "2020-02-01T02:00+0300"]
few_values = st.one_of(st.sampled_from(FEW), st.booleans(), st.sampled_from(TEXTS), st.sampled_from(DAYS))
compared = st.one_of(few_values, st.sampled_from([read for day in DAYS if (read := read_date(day))]))
keys = st.sampled_from(["x", "y", "y.z", "title", "metadata", "z", "ü"])
nested = st.recursive(
    st.one_of(few_values, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=4,
)
columns = st.fixed_dictionaries(
    {
        "path": st.sampled_from(PATHS),
        "format": st.sampled_from([None, "", "a", "b"]),
        "modified": st.sampled_from([None, "", *DAYS]),
    }
)
collections = st.lists(
    st.tuples(columns, st.sampled_from(["", "a", "b"]), st.dictionaries(keys, nested, max_size=4)),
    min_size=1,
    max_size=6,
)
fields = st.sampled_from(
    ["x", "y", "y.z", "z", "x.y", "ü", "metadata.title", "metadata.metadata", "title", "path", "modified"]
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
    max_leaves=5,
)


@given(collections, st.lists(wheres, min_size=12, max_size=16))
@hypothesis_settings(
    deadline=None, max_examples=15, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_filter_leaves_what_the_tree_says(
    store: Store, collection: list[tuple[dict[str, Any], str, dict[str, Any]]], filters: list[Where]
) -> None:
    with store.writer() as writer:
        writer.remove([document.uri for document in store.iterate()])
        items = [
            doc(f"d{number}", "t", title=title, metadata=metadata, **members)
            for number, (members, title, metadata) in enumerate(collection)
        ]
        writer.put(Batch(items))
    seen = {
        item.document.uri: {**flat(item.document.metadata), **{name: getattr(item.document, name) for name in COLUMNS}}
        for item in items
    }
    known: dict[str, list[Any]] = {}
    for found in seen.values():
        for name, values in found.items():
            if name not in COLUMNS:
                known.setdefault(name, []).extend(values)
    with store.snapshot() as snapshot:
        for where in filters:
            if not fits(where, known):
                with pytest.raises(FilterError):
                    snapshot.dense(AXES[0], 9, where, "document", False)
                continue
            ranking = snapshot.dense(AXES[0], 9, where, "document", False)
            resolved = check_filter(where, snapshot_types(known))
            expected = [uri for uri in seen if matches(resolved, seen[uri])]
            assert uris(snapshot, ranking) == expected, render(where)
            assert [uri for uri in seen if snapshot.matches(uri, where)] == expected, render(where)
