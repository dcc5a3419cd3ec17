"""The messages of an mbox file, one in memory at a time.

A message begins with a line "From SENDER DATE" at the start of the file or after a blank line. Python's `mailbox` keeps
the offsets of all messages and divides at every line that begins with "From ", also within a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from indexer.sources.message import HEADER_END, Message

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
_FROM_LINE = re.compile(_FROM)
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*")
_UUCP_LINES = re.compile(rb"(?:>From [^\n]*\n)*")
_HEADER_LINE = re.compile(rb"[!-9;-~]+[ \t]*:")
_CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,15})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)

_CHUNK_BYTES = 2**20
_LINE_BYTES = 1024
"""Maximum bytes of a "From " line."""
_HEAD_BYTES = 2**16
"""Number of bytes that are read from a message over the limit, to find its id."""


def is_mbox(head: bytes) -> bool:
    """Return whether a file is an mbox by its first bytes: a "From " line with a date, and a line of a header below."""
    line = _FROM_LINE.match(head, _BEGINNING.match(head).end())  # type: ignore[union-attr]
    if line is None:
        return False
    return _HEADER_LINE.match(head, _UUCP_LINES.match(head, line.end()).end()) is not None  # type: ignore[union-attr]


def message_places(stream: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield where each message begins and ends, its "From " line included."""
    begin: int | None = None
    for offset in _divisions(stream):
        if begin is not None:
            yield begin, offset
        begin = offset


def read_message(stream: BinaryIO, begin: int, end: int, limit: int) -> Message:
    """Return a message. If it has more bytes than the limit, only its beginning is read."""
    stream.seek(begin)
    raw = stream.read(end - begin if end - begin <= limit else _HEAD_BYTES)
    start = _UUCP_LINES.match(raw, raw.find(b"\n") + 1).end()  # type: ignore[union-attr]
    message = Message(raw[start:].rstrip(b"\r\n"))
    body = message.data[len(message.header) :]
    return Message(message.header + _QUOTED_FROM.sub(b"", body))


def _divisions(stream: BinaryIO) -> Iterator[int]:
    """Yield the offset of each "From " line that begins a message, and last the end of the file."""
    size = stream.seek(0, 2)
    stream.seek(0)
    begin = _BEGINNING.match(stream.read(_LINE_BYTES)).end()  # type: ignore[union-attr]
    yield begin
    body_end, position = -1, begin  # body_end: as Content-Length says; -1 if it was not looked at yet
    while position < size:
        stream.seek(position)
        chunk = stream.read(_CHUNK_BYTES)
        is_last = position + len(chunk) >= size or not chunk
        searched = len(chunk) if is_last else len(chunk) - _LINE_BYTES
        found = chunk.find(b"\nFrom ", 0, searched)
        while found >= 0:
            blank = chunk[found - 1 : found] == b"\n" or chunk[found - 2 : found] == b"\n\r"
            if blank and position + found >= begin and _FROM_LINE.match(chunk, found + 1):
                if body_end < 0:
                    head = chunk[begin - position : found] if begin >= position else _read_at(stream, begin)
                    body_end = _declared_end(stream, begin, head[:_HEAD_BYTES], size)
                if position + found + 1 >= body_end:
                    begin, body_end = position + found + 1, -1
                    yield begin
            found = chunk.find(b"\nFrom ", found + 1, searched)
        if is_last:
            break
        position += searched - len(b"\n\r\nFrom ")
    yield size


def _read_at(stream: BinaryIO, offset: int) -> bytes:
    stream.seek(offset)
    return stream.read(_HEAD_BYTES)


def _declared_end(stream: BinaryIO, begin: int, head: bytes, size: int) -> int:
    """Return the end of the message that begins here, by its Content-Length; 0 if the length is missing or wrong.

    The length is right if the file ends there or another message begins. Programs that write it do not quote "From "
    lines.
    """
    header_end = HEADER_END.search(head)
    length = _CONTENT_LENGTH.search(head, 0, header_end.end(1)) if header_end else None
    if header_end is None or length is None:
        return 0
    end = begin + header_end.end() + int(length[1])
    after = _read_at(stream, min(end, size))
    blank = re.match(rb"[\r\n]*", after)
    assert blank is not None
    is_right = end <= size and (blank.end() == len(after) or _FROM_LINE.match(after, blank.end()) is not None)
    return end if is_right else 0
