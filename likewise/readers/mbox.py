"""The messages of an mbox file, one in memory at a time.

A message begins with a line "From SENDER DATE" at the start of the file or after a blank line. Python's `mailbox` keeps
the offsets of all messages and divides at every line that begins with "From ", also within a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from indexer.sources.from_line import BEGINNING, FROM_LINE, UUCP_LINES
from likewise.readers.message import HEADER_END, Message

_CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,15})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)

_CHUNK_BYTES = 2**20
_LINE_BYTES = 1024
"""Maximum bytes of a "From " line."""
_HEAD_BYTES = 2**16
"""Number of bytes that are read from a message over the limit, to find its id."""


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
    message = _message(raw)
    return Message(message.header + _QUOTED_FROM.sub(b"", message.data[len(message.header) :]))


def read_id(stream: BinaryIO, begin: int, end: int) -> str:
    """Return the id of a message, of which no more than the header is read: its body may have many megabytes."""
    return _message(_read_at(stream, begin)[: end - begin]).id


def _message(raw: bytes) -> Message:
    start = UUCP_LINES.match(raw, raw.find(b"\n") + 1).end()  # type: ignore[union-attr]
    return Message(raw[start:].rstrip(b"\r\n"))


def _divisions(stream: BinaryIO) -> Iterator[int]:
    """Yield the offset of each "From " line that begins a message, and last the end of the file."""
    size = stream.seek(0, 2)
    stream.seek(0)
    begin = BEGINNING.match(stream.read(_LINE_BYTES)).end()  # type: ignore[union-attr]
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
            if blank and position + found >= begin and FROM_LINE.match(chunk, found + 1):
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
    is_right = end <= size and (blank.end() == len(after) or FROM_LINE.match(after, blank.end()) is not None)
    return end if is_right else 0
