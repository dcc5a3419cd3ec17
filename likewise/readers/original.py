"""The original of a document: the file that it was read from, or its part of a mailbox; and pictures of its pages.

A file is opened only if the index has recorded it, and only as it was then: by size, time and inode of the opened file,
so that no link that was changed since leads elsewhere.
"""

# ruff: noqa: PTH119, PTH120, PTH122
from __future__ import annotations

import os
import stat
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, BinaryIO

from indexer.errors import BadInput, count_of
from indexer.records import Document, Stamp
from indexer.sources.content import Unreadable
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.folders.maildir import message_files
from indexer.sources.formats import EML, FORMATS, MAILDIR, MBOX, PDF
from likewise.readers.limits import MAX_PICTURE_SECONDS
from likewise.readers.mbox import message_places, read_id, read_message

MAX_BYTES = 2**28
"""Maximum bytes of an original."""

PIECE_BYTES = 1 << 18
"""Number of bytes that are read and sent together."""

MAX_UNDRAWN = 256
UNDRAWN_SECONDS = 600.0
"""Seconds in which a page that could not be drawn is not tried again, unless its file has changed."""

MAX_MAILBOXES = 4

_undrawn: dict[tuple[str, Stamp, int], tuple[float, str]] = {}
"""The pages that could not be drawn: when, and why."""

_PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_TYPES = {PDF.name: "application/pdf", **dict.fromkeys((EML.name, MBOX.name, MAILDIR.name), "message/rfc822")}
_RECORDS = frozenset(format_.name for format_ in FORMATS.values() if format_.kind == "records")
_TEXTS = frozenset(format_.name for format_ in FORMATS.values() if format_.kind == "text")


@dataclass(frozen=True)
class PagePicture:
    """The picture of a page.

    Attributes:
        png: the picture; empty if there is no such page.
        is_marked: whether the marks are drawn: they are not where the page has another text than the index.
        pages: how many pages there are.
    """

    png: bytes
    is_marked: bool
    pages: int


class NoOriginal(BadInput):
    """A document has no original, or the original is no longer as the index has read it."""

    http_status = 404
    slug = "no-original"


def original_of(document: Document, recorded: tuple[Any, Stamp] | None) -> Original:
    """Return the original of a document.

    Args:
        recorded: `LedgerRow` and stamp of its file; None if it comes from no file.

    Raises:
        NoOriginal: the document comes from no file, or it is one of many records of a file.
    """
    if recorded is None:
        raise none_of(document)
    row, stamp = recorded
    return Original(document, row.file, row.reader, row.reason.mark, stamp)


def none_of(document: Document) -> NoOriginal:
    """Return the error for a document that comes from no file, or is one of many records of a file."""
    return NoOriginal(f"{document.uri}: is a record or was added by a program: it has no file of its own")


@dataclass(frozen=True)
class Original:
    """The original of a document.

    Raises:
        NoOriginal: the document is one of many records of its file.

    Attributes:
        document: the document.
        file: path of its file in the ledger.
        reader: format and version of the reader that has read it.
        mark: hash of its message, if the file is a mailbox.
        stamp: size and times of its file when it was read.
    """

    document: Document
    file: str
    reader: str
    mark: str
    stamp: Stamp

    def __post_init__(self) -> None:
        if self.format in _RECORDS and self.format != MBOX.name:
            raise none_of(self.document)

    @property
    def format(self) -> str:
        """Short name of the format as which it was read."""
        return self.reader.partition("/")[0] or self.document.format or ""

    @property
    def media_type(self) -> str:
        """The media type; source, Markdown and other text is text/plain."""
        extension = os.path.splitext(self.file)[1].lower()
        if self.format in _TEXTS:
            return "text/plain"
        return _TYPES.get(self.format) or _PICTURES.get(extension, "application/octet-stream")

    @property
    def name(self) -> str:
        """A name for the file."""
        name = os.path.basename(self.file)
        return f"{name}.eml" if self.format in (MBOX.name, MAILDIR.name) else name

    @property
    def size(self) -> int | None:
        """Number of bytes of the file; None for a message of a mailbox, which must be read first."""
        return None if self.format == MBOX.name else self.stamp.size

    def read(self) -> bytes:
        """Return the file, or the message.

        Raises:
            NoOriginal: it is no longer there, has changed, or is too large.
        """
        with self._open() as file:
            if self.format != MBOX.name:
                return file.read()
            places, name = _places(self.file, self.stamp), self.document.uri.removeprefix(f"{self.file}#")
            for begin, end in chain([places[name]] if name in places else [], message_places(file)):
                message = read_message(file, begin, end, MAX_BYTES)
                if message.mark == self.mark:
                    places[name] = begin, end
                    return message.data
        raise NoOriginal(f"{self.document.uri}: its message is no longer in the mailbox")

    def pieces(self) -> Iterator[bytes]:
        """Yield what `read` returns in pieces: a message in one. No file is open between two pieces.

        Raises:
            NoOriginal: as `read` does, also if the file changes between two pieces.
        """
        if self.size is None:
            yield self.read()
            return
        for start in range(0, max(self.size, 1), PIECE_BYTES):
            with self._open() as file:
                file.seek(start)
                piece = file.read(PIECE_BYTES)
            yield piece

    def page(self, number: int, marks: Sequence[tuple[int, int]] = ()) -> PagePicture:
        """Return the picture of a page of a PDF.

        Args:
            number: from 1.
            marks: start and end of what is marked, in the text of the document.

        Raises:
            NoOriginal: it has no such page, or `read` raises.
            BadInput: the page cannot be drawn.
        """
        if self.format != PDF.name:
            raise NoOriginal(f"{self.document.uri}: has no pages to show: only PDF files have")
        starts = [section.start for section in self.document.sections] + [len(self.document.text)]
        text, marked = "", list[tuple[int, int]]()
        for section, end in zip(self.document.sections, starts[1:], strict=True):
            if section.page == number:
                text = self.document.text[section.start : end]
                cut = ((max(first, section.start), min(last, end)) for first, last in marks)
                marked = [(first - section.start, max(first, last) - section.start) for first, last in cut]
        key = self.file, self.stamp, number
        tried, reason = _undrawn.get(key, (-UNDRAWN_SECONDS, ""))
        if time.monotonic() <= tried + UNDRAWN_SECONDS:
            raise BadInput(reason)
        try:
            picture = _draw_page(self.read(), number, text, marked)
        except Unreadable as error:
            if len(_undrawn) >= MAX_UNDRAWN:
                _undrawn.clear()
            reason = f"{self.document.uri}: page {number} cannot be drawn: {error}"
            _undrawn[key] = time.monotonic(), reason
            raise BadInput(reason) from error
        if not picture.png:
            held = count_of(picture.pages, "page")
            raise NoOriginal(f"{self.document.uri}: there is no page {number}: it has {held}")
        return picture

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        path = self.file
        changed_error = NoOriginal(
            f"{self.document.uri}: its file has changed since it was indexed, or is gone: index it again"
        )
        if self.format == MAILDIR.name:  # the name of the file has flags, which change
            with suppress(OSError):
                path = next((file for name, file in message_files(os.path.dirname(path)) if name == path), path)
        try:
            with open(path, "rb", opener=_open_regular) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or not self.stamp.matches(status):
                    raise changed_error
                if status.st_size > MAX_BYTES and self.format != MBOX.name:
                    raise NoOriginal(f"{self.document.uri}: its file has more than {MAX_BYTES // 2**20} MB")
                yield file
        except OSError as error:
            raise changed_error from error


@lru_cache(MAX_MAILBOXES)
def _places(mailbox: str, stamp: Stamp) -> dict[str, tuple[int, int]]:
    """Return where each message is in a mailbox as it was then: the first of each id, by the name in its uri."""
    with open(mailbox, "rb", opener=_open_regular) as file:
        return {read_id(file, *place): place for place in reversed([*message_places(file)])}


def _open_regular(path: str, flags: int) -> int:
    """Open a file without following a link. O_NONBLOCK: a pipe in its place would wait forever."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _draw_page(data: bytes, page: int, text: str, marks: Sequence[tuple[int, int]]) -> PagePicture:
    """Draw a page of a PDF in the worker process. Arguments are those of `pdf_picture.draw`.

    Raises:
        Unreadable: the file is damaged, encrypted or over a bound.
    """
    request = {"part": "readers", "reader": "pdf_picture", "page": page, "text": text, "marks": marks}
    answer = EXTRACTOR.ask(request, data, MAX_PICTURE_SECONDS)
    return PagePicture(b64decode(answer["png"]), answer["is_marked"], answer["pages"])
