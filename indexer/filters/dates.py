"""Dates as people write them, as spans of microseconds. No order of day and month is ever guessed.

What is read: ISO 8601 with every precision and offset, 2000/9/25 (a year in front is followed by the month), and dates
with a month's name: RFC 2822, 25-Sep-2000, Sept 25, 2000, September 2000, Mon Sep 25 10:30:00 2000. Everything else
stays text: 01/02/2003, 2019.2.1, 20200501, Sep, 10:30. A date without an offset is in UTC.

A filter compares moments as moments. A year, month or day of a filter is compared with the day that a stored date
writes: 2024-05-01T23:30:00-08:00 is on 2024-05-01, which is the next day in UTC.

A store keeps rows for texts that are dates, and `check` compares these rows with the metadata. So this file has rules
of its own, because the rules of a library, and of Python's `fromisoformat`, change from version to version.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal

from indexer.lazy_pattern import lazy_pattern

Precision = Literal["year", "month", "day", "hour", "minute", "second", "microsecond"]
Order = Literal["<", "<=", ">", ">="]

_SECOND = 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND
_EPOCH = date(1970, 1, 1).toordinal()
_PRECISIONS: tuple[tuple[int, Precision], ...] = (
    *((1, "microsecond"), (_SECOND, "second"), (_MINUTE, "minute")),
    *((_HOUR, "hour"), (_DAY, "day"), (31 * _DAY, "month")),
)


@dataclass(frozen=True, slots=True)
class Date:
    """A date or moment that a filter compares with.

    Attributes:
        text: as a filter writes it.
        start, end: the span [start, end) that its precision leaves open, in microseconds since 1970 in UTC. A stored
            date counts with its start.
        offset: microseconds that its clock is ahead of UTC.
    """

    text: str
    start: int
    end: int
    offset: int = 0

    @property
    def precision(self) -> Precision:
        return next((name for length, name in _PRECISIONS if self.end - self.start <= length), "year")

    @property
    def has_clock(self) -> bool:
        return self.end - self.start < _DAY

    def place(self, stored: Date) -> int:
        """Return where a stored date is compared with this one: its moment, or the time on its own clock."""
        return stored.start if self.has_clock else stored.start + stored.offset

    def holds(self, instant: int) -> bool:
        """Return whether a stored date equals this date."""
        return self.start <= instant < self.end

    def bound(self, order: Order) -> tuple[Literal["<", ">="], int]:
        """Return a comparison of instants: "after a day" means "at or after the end of the day"."""
        return "<" if order in ("<", "<=") else ">=", self.start if order in ("<", ">=") else self.end


MAX_CHARACTERS = 80
"""Maximum characters of a text that is read as a date. JavaScript's dates, with the name of the zone in parentheses,
have up to 75."""

_CACHED_TEXTS = 1 << 14
"""Maximum texts whose dates are kept in memory (4 MB), because records repeat the same days. Reading a date takes 3 to
8 µs."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONES = {"z": 0, "ut": 0, "utc": 0, "gmt": 0}
_ZONES |= {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
"""Hours from UTC of the zones that RFC 2822 names. Other abbreviations have several meanings."""

_OFFSET = r"(?:utc|gmt)?[+-]\d\d(?::?\d\d)?"
_ZONE = rf"(?: ?(?P<zone>{_OFFSET}|{'|'.join(_ZONES)}))?"
_TIME = (
    r"(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,12}))?)?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?"
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_GLUED_MONTH = _MONTH.replace(r"\b", "")
_DAY_OF_MONTH = r"(?P<day>\d\d?)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_CLOCK = rf"(?:(?P<before>,? |t|:|,? at ){_TIME}{_ZONE}(?: \([^()]*\))?)?"

_FORMS = tuple(
    lazy_pattern(form, re.ASCII | re.IGNORECASE)
    for form in (
        rf"{_YEAR}(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:(?P<before>[t ]){_TIME}{_ZONE})?)?)?",
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)(?P<before>t)(?P<hour>\d\d)(?:(?P<minute>\d\d)"
        rf"(?:(?P<second>\d\d)(?:[.,](?P<fraction>\d{{1,12}}))?)?)?{_ZONE}",
        rf"{_YEAR}/(?P<month>\d\d?)/(?P<day>\d\d?)(?:(?P<before>[t ]){_TIME}{_ZONE})?",
        rf"{_WEEKDAY}{_DAY_OF_MONTH}(?: of)?[-/. ]{{0,2}}{_GLUED_MONTH}[-/, ]{{0,2}}{_YEAR}{_CLOCK}",
        rf"{_WEEKDAY}{_MONTH}[-/ ]{_DAY_OF_MONTH}(?:, ?|[-/ ]){_YEAR}{_CLOCK}",
        rf"{_YEAR}[-/ ]{_MONTH}(?:[-/ ]{_DAY_OF_MONTH}{_CLOCK})?",
        rf"{_MONTH}(?:, ?|[-/ ]){_YEAR}",
        rf"{_WEEKDAY}{_MONTH} {_DAY_OF_MONTH} {_TIME}{_ZONE} {_YEAR}(?: (?P<after>{_OFFSET}))?",
    )
)
_PROMISING = lazy_pattern(
    r"\s*(?:[0-9]{4}(?:[-/\s]|$|[0-9]{4}t)|(?:[0-9]{1,2}(?![0-9])"
    rf"|{'|'.join(_MONTHS)}|mon|tue|wed|thu|fri|sat|sun)(?=.*[0-9]{{4}}))",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of every form. It shows in 0.2 µs that most texts are not dates."""


def read_date(text: str) -> Date | None:
    """Return the date that the whole text is; None if the text is not a date."""
    if 4 <= len(text) <= MAX_CHARACTERS and _PROMISING.match(text):
        return _read(text)
    return None


@lru_cache(_CACHED_TEXTS)
def _read(text: str) -> Date | None:
    plain = " ".join(text.split())
    for form in _FORMS:
        if match := form.fullmatch(plain):
            span = _span(match.groupdict())
            return Date(text, *span) if span else None
    return None


def _span(parts: dict[str, str | None]) -> tuple[int, int, int] | None:
    """Return start, end and offset of a date in microseconds; None if the calendar or the clock has no such date.

    Args:
        parts: the groups of a form; a group that the text does not have is None.
    """
    year, month = int(parts["year"] or 0), parts.get("month")
    number = 0 if month is None else int(month) if month.isdigit() else 1 + _MONTHS.index(month[:3].lower())
    day = parts.get("day")
    try:
        first = date(year, 1 if month is None else number, int(day or "1")).toordinal()
    except ValueError:
        return None
    start = (first - _EPOCH) * _DAY
    if month is None:
        return start, start + (366 if isleap(year) else 365) * _DAY, 0
    if day is None:
        return start, start + monthrange(year, number)[1] * _DAY, 0
    if parts.get("hour") is None:
        return start, start + _DAY, 0
    clock, offset = _clock(parts), _offset(parts)
    if clock is None or offset is None:
        return None
    return start + clock[0] - offset, start + clock[0] + clock[1] - offset, offset


def _clock(parts: dict[str, str | None]) -> tuple[int, int] | None:
    """Return the time since midnight and its precision, in microseconds; None if no clock shows this time."""
    hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
    if half := parts.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in "pP" else 0)
    # An hour alone is a time only after a T: a number may stand behind a date for anything.
    elif parts.get("minute") is None and (parts.get("before") or "").lower() != "t":
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    since_midnight = hour * _HOUR + minute * _MINUTE + second * _SECOND
    if fraction := parts.get("fraction"):
        return since_midnight + int(fraction[:6].ljust(6, "0")), 1
    if parts.get("second") is not None:
        return since_midnight, _SECOND
    return since_midnight, _HOUR if parts.get("minute") is None else _MINUTE


def _offset(parts: dict[str, str | None]) -> int | None:
    """Return the offset from UTC in microseconds; None if there is no such offset, or if the text has two offsets."""
    zone, after = (parts.get("zone") or "").lower(), parts.get("after")
    if after is not None:
        if zone:
            return None
        zone = after.lower()
    if not zone or zone in _ZONES:
        return _ZONES.get(zone, 0) * _HOUR
    digits = zone.lstrip("utcgm+-").replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or "0")
    if hours > 23 or minutes > 59:
        return None
    return (hours * _HOUR + minutes * _MINUTE) * (-1 if "-" in zone else 1)


def from_datetime(value: date) -> Date:
    """Return a `datetime.date` as its day, and a `datetime` as its microsecond, in UTC where it has no time zone.

    Raises:
        ValueError: with its offset, the moment is before the year 1 or after 9999.
    """
    if isinstance(value, datetime):
        try:
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("the moment is outside the years 1 to 9999") from error
        text = moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "+00:00"
    else:
        text = date(value.year, value.month, value.day).isoformat()
    known = read_date(text)
    assert known is not None  # both forms are ISO 8601
    return known


Unit = Literal["h", "d", "w", "mo", "y"]


def before_now(count: int, unit: Unit) -> Date:
    """Return the moment this long ago, to the second: hours, days of 24 hours, weeks, calendar months or years.

    If the month lacks the day, the result is the last day of the month. The text of the result is the moment itself, so
    that a stored filter means the same later.

    Raises:
        ValueError: the moment is before the year 1.
    """
    moment = now().replace(microsecond=0)
    try:
        if unit in ("mo", "y"):
            months = 12 * moment.year + moment.month - 1 - count * (12 if unit == "y" else 1)
            year, month = months // 12, months % 12 + 1
            moment = moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))
        else:
            moment -= timedelta(hours=count * {"h": 1, "d": 24, "w": 168}[unit])
    except OverflowError as error:
        raise ValueError("the moment is before the year 1") from error
    known = read_date(moment.replace(tzinfo=None).isoformat() + "+00:00")
    assert known is not None  # the form is ISO 8601
    return known


def day_of(instant: int) -> str:
    """Return the day in UTC, in ISO 8601, of a moment in microseconds since 1970.

    An offset can move a moment out of the years 1 to 9999 by hours. The result is then the nearest day within them.
    """
    ordinal = _EPOCH + instant // _DAY
    return date.fromordinal(min(max(ordinal, 1), date.max.toordinal())).isoformat()


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)
