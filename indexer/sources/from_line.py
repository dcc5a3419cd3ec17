"""The line "From SENDER DATE" with which each message of an mbox begins, and by which a file is known to be an mbox."""

from __future__ import annotations

import re

_WEEKDAY, _MONTH = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME, _ZONE = rb"\d\d?:\d\d(?::\d\d)?", rb"(?: +(?:[+-]\d{4}|[A-Z]{1,5}|\([^()\n]{1,40}\))){0,3}"
_DATE = (
    rb"(?:%b,? +%b +\d\d? +%b%b +\d{4}%b" % (_WEEKDAY, _MONTH, _TIME, _ZONE, _ZONE)  # asctime, as RFC 4155 has it
    + rb"|(?:%b,? +)?\d\d?[ -]%b[ -]\d{4} +%b%b" % (_WEEKDAY, _MONTH, _TIME, _ZONE)
    + rb"|\d{4}-\d\d-\d\d[ T]%b(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?%b)" % (_TIME, _ZONE)
)
_FROM = (
    rb"From (?:\S{1,300} (?:at \S{1,300} )?|\"[^\"\n]{1,100}\"\S{0,300} )? *%b(?: remote from \S+)?[ \t]*\r?\n" % _DATE
)
FROM_LINE = re.compile(_FROM)
BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*")
UUCP_LINES = re.compile(rb"(?:>From [^\n]*\n)*")
_HEADER_LINE = re.compile(rb"[!-9;-~]+[ \t]*:")


def is_mbox(head: bytes) -> bool:
    """Return whether a file is an mbox by its first bytes: a "From " line with a date, and a line of a header below."""
    line = FROM_LINE.match(head, BEGINNING.match(head).end())  # type: ignore[union-attr]
    if line is None:
        return False
    return _HEADER_LINE.match(head, UUCP_LINES.match(head, line.end()).end()) is not None  # type: ignore[union-attr]
