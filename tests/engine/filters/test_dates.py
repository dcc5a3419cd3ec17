"""Texts that read as dates, with the moment and the precision of each; and texts that must stay text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from dateutil import parser
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.filters.dates import MAX_CHARACTERS, Date, from_datetime, read_date

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(moment: datetime) -> int:
    """Microseconds since 1970, of a moment without a time zone in UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "precision", "start"),
    [
        ("2000", "year", "2000-01-01"),
        ("1999-02", "month", "1999-02-01"),
        ("2000-09-25", "day", "2000-09-25"),
        (" 2000-09-25\n", "day", "2000-09-25"),
        ("2000-09-25T10", "hour", "2000-09-25T10:00"),
        ("2000-09-25T10+02", "hour", "2000-09-25T08:00"),
        ("2000-09-25T10:30", "minute", "2000-09-25T10:30"),
        ("2000-09-25 10:30", "minute", "2000-09-25T10:30"),
        ("2000-09-25 10:30 +0530", "minute", "2000-09-25T05:00"),
        ("2000-09-25T10:30:15Z", "second", "2000-09-25T10:30:15"),
        ("2000-09-25t10:30:15z", "second", "2000-09-25T10:30:15"),
        ("2000-09-25T10:30:15-09:30", "second", "2000-09-25T20:00:15"),
        ("2000-09-25 10:30:15 UTC", "second", "2000-09-25T10:30:15"),
        ("2000-09-25T10:30:15.5", "microsecond", "2000-09-25T10:30:15.500000"),
        ("2000-09-25T10:30:15,123456789Z", "microsecond", "2000-09-25T10:30:15.123456"),
        ("20000925T103015Z", "second", "2000-09-25T10:30:15"),
        ("20000925T1030+0200", "minute", "2000-09-25T08:30"),
        ("2000/9/25", "day", "2000-09-25"),
        ("2000/09/05 7:05", "minute", "2000-09-05T07:05"),
        ("25-Sep-2000", "day", "2000-09-25"),
        ("5-Sep-2000", "day", "2000-09-05"),
        ("25 SEPTEMBER 2000", "day", "2000-09-25"),
        ("25. September 2000", "day", "2000-09-25"),
        ("25/Sep/2000:10:30:15 +0200", "second", "2000-09-25T08:30:15"),
        ("25SEP2000", "day", "2000-09-25"),
        ("Sept 25, 2000", "day", "2000-09-25"),
        ("Sept. 25, 2000", "day", "2000-09-25"),
        ("September 25th, 2000", "day", "2000-09-25"),
        ("the 25th of September", None, ""),
        ("1st of May 2000", "day", "2000-05-01"),
        ("Monday, May 1, 2000", "day", "2000-05-01"),
        ("Sep 25, 2000 5pm", "hour", "2000-09-25T17:00"),
        ("Sep 25, 2000, 12:30 a.m.", "minute", "2000-09-25T00:30"),
        ("Sep 25, 2000 at 12:30 PM EST", "minute", "2000-09-25T17:30"),
        ("2000-Sep-25", "day", "2000-09-25"),
        ("2000 Sep", "month", "2000-09-01"),
        ("September 2000", "month", "2000-09-01"),
        ("Sep-2000", "month", "2000-09-01"),
        ("May, 2000", "month", "2000-05-01"),
        ("Mon, 25 Sep 2000 10:30:15 +0200", "second", "2000-09-25T08:30:15"),
        ("Mon, 25 Sep 2000 10:30:15 -0400 (EDT)", "second", "2000-09-25T14:30:15"),
        ("25 Sep 2000 10:30 GMT", "minute", "2000-09-25T10:30"),
        ("Mon Sep 25 10:30:15 2000", "second", "2000-09-25T10:30:15"),
        ("Mon Sep  5 10:30:15 PDT 2000", "second", "2000-09-05T17:30:15"),
        ("Mon Sep 25 10:30:15 2000 +0200", "second", "2000-09-25T08:30:15"),
        (
            "Mon Sep 25 2000 10:30:15 GMT+0200 (Central European Summer Time)",
            *("second", "2000-09-25T08:30:15"),
        ),
        ("2000-02-29", "day", "2000-02-29"),
        ("1900-02-29", None, ""),
        ("31-Apr-2000", None, ""),
        ("0001-01-01", "day", "0001-01-01"),
        ("0000-01-01", None, ""),
    ],
)
def test_a_date_has_a_moment_and_a_precision(text: str, precision: str | None, start: str) -> None:
    date = read_date(text)
    if precision is None:
        assert date is None
        return
    assert date is not None
    assert (date.text, date.precision) == (text, precision)
    assert date.start == instant(datetime.fromisoformat(start))
    assert date.holds(date.start)
    assert date.holds(date.end - 1)
    assert not date.holds(date.end)


@pytest.mark.parametrize(
    "text",
    [
        *("01/02/2003", "25/09/2000", "09-25-2000", "25.9.2000", "2000-9-25", "2019.2.1", "2000/13/1", "2000/9"),
        *("00/9/25", "20200501", "202005", "1600000000", "12345", "2000-", "2000-13", "2000-00", "2000-09-00"),
        *("2020-W05-1", "2020-123", "2000-09-25T24:00", "2000-09-25T10:60", "2000-09-25T10:30:60", "2000-9-25T10:30"),
        *("2000-09-25 10", "2000-09-25T", "2000-09-25T10:30 CET", "2000-09-25x", "v2000", "2000 pages", "2000-09-25 2"),
        *("Sep", "Sep 25", "25 Sep", "25-Sep-00", "Sep 25, 00", "10:30", "Monday", "May", "may be 2000", "Mayor 2000"),
        *("21-Mar-2001, 29-Jul-2002", "Sep 2000 10:30", "Sep 25 2000 13pm", "Sep 25 2000 10", "in September 2000"),
        *("25 Mai 2000", "25 Sep 2000 BC", "Sep 31 2000", "Mon Sep 25 10:30:15 EST 2000 +0200"),
        *("25 Sep 20000", "Sep2000", "", "    ", "２０００", "٢٠٠٠-٠٩-٢٥", "2000\x00", "2000-09-25\x00"),
        *("1 Sep 2000 - 2 Sep 2000", "2000-09-25/2000-09-26"),
        "Sep 25, 2000" + " " * MAX_CHARACTERS,
    ],
)  # fmt: skip
def test_what_is_not_clearly_a_date_stays_text(text: str) -> None:
    assert read_date(text) is None


zones = st.one_of(st.none(), st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))))
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones)


@given(moments, st.sampled_from(["auto", "microseconds", "seconds", "minutes", "hours"]), st.sampled_from("T "))
@settings(deadline=None)
def test_iso_8601_is_read_as_datetime_reads_it(moment: datetime, precision: str, between: str) -> None:
    text = moment.isoformat(between, precision)
    read = read_date(text)
    if precision == "hours" and between == " ":
        assert read is None
        return
    assert read is not None
    assert read.start == instant(datetime.fromisoformat(text))
    if precision != "auto":
        assert f"{read.precision}s" == precision
    day = read_date(text[:10])
    assert day == Date(
        text[:10], *(instant(datetime.combine(moment.date(), datetime.min.time())) + n for n in (0, DAY))
    )


DAY = 86_400_000_000


@given(moments.filter(lambda moment: moment.year >= 1000))
@settings(deadline=None)
def test_mail_is_read_as_the_standard_library_reads_it(moment: datetime) -> None:
    text = format_datetime(moment)
    read = read_date(text)
    assert read is not None
    assert read.start == instant(parsedate_to_datetime(text))


FORMS = [
    *("%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d %Y", "%a, %d %b %Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y-%b-%d"),
    *("%A, %B %d, %Y %I:%M %p", "%Y/%m/%d %H:%M", "%d%b%Y", "%d/%b/%Y", "%d %b. %Y %I%p"),
]


@given(st.datetimes(datetime(1000, 1, 1)), st.sampled_from(FORMS))
@settings(deadline=None)
def test_dates_with_a_month_by_name_are_read_as_dateutil_reads_them(moment: datetime, form: str) -> None:
    text = moment.strftime(form)
    read = read_date(text)
    assert read is not None
    assert read.start == instant(parser.parse(text, default=datetime(1, 1, 1)))


ALPHABET = [
    *"0123456789 -/:.,+TZ()",
    "2000",
    "Sep",
    "25",
    "May ",
    "mon, ",
    "10:30",
    " at ",
    "th",
    " of ",
    "pm",
    "GMT",
    "é",
]


@given(st.lists(st.sampled_from(ALPHABET), max_size=12).map("".join))
@settings(deadline=None, max_examples=200)
def test_reading_never_fails(text: str) -> None:
    read = read_date(text)
    assert read is None or read.start < read.end


def test_python_dates() -> None:
    assert from_datetime(date(2000, 9, 25)) == read_date("2000-09-25")
    moment = from_datetime(datetime(2000, 9, 25, 10, 30, 15, 7))
    assert (moment.text, moment.precision) == ("2000-09-25T10:30:15.000007+00:00", "microsecond")
    offset = from_datetime(datetime(2000, 9, 25, 10, 30, tzinfo=timezone(timedelta(hours=-2, minutes=-30))))
    assert (offset.text, offset.end - offset.start) == ("2000-09-25T13:00:00.000000+00:00", 1)
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        from_datetime(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
