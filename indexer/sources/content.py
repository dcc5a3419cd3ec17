"""The result of a reader, its two errors, and the text that a reader assembles from parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from indexer.ledger import NO_REASON, Code, Reason
from indexer.records import Section


class Refused(Exception):
    """Something that cannot become a document.

    Attributes:
        reason: the reason for the ledger.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text())
        self.reason = reason


class Unreadable(Refused):
    """The file is damaged, encrypted or over a bound: it failed."""


class Skip(Refused):
    """The file is sound and holds nothing to index."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one file.

    Attributes:
        text: the extracted text. A reader that was given text returns exactly this text.
        title: the title; empty if the file has none.
        sections: in order of their start.
        metadata: JSON values.
        note: reason for the ledger, if the file was read in an unusual way.
        unread: notes for the ledger on parts that were not read, such as pages without text.
        unread_pages: numbers of the pages without text, and of those that are pictures with hardly any text.
    """

    text: str
    title: str = ""
    sections: tuple[Section, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: Reason = NO_REASON
    unread: tuple[Reason, ...] = ()
    unread_pages: tuple[int, ...] = ()


class Reader(Protocol):
    """The function that reads one format in the worker process, found by `doors.find("readers", NAME)`.

    A package adds one by an entry point of the group `likewise.readers`. Its name is the extension of the files without
    the dot, such as "ldif", and becomes the format of their documents.
    """

    def __call__(self, path: str, /) -> Content:
        """Return the text of a file, given its absolute path.

        Raises:
            Unreadable: the file is damaged, encrypted or over a bound. Other exceptions are reported as damage.
            Skip: it holds nothing to index.
        """


class Headings:
    """Turns headings and their levels into paths such as "Guide > Setup"."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> str:
        """Return the path of the heading that begins now."""
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, " ".join(title.split())))
        return " > ".join(title for _, title in self._open if title)


class Assembly:
    """Extracted text that is put together from blocks with blank lines between them, and its sections."""

    max_characters: ClassVar[int] = sys.maxsize
    """Maximum characters of a text. The worker process sets it for each file, so that no text is larger than its
    memory."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._parts: list[str] = []
        self.length = 0  # characters that were written so far

    def section(self, heading: str = "", page: int | None = None) -> None:
        """Begin a section with the next block."""
        self._close_empty()
        start = self.length + 2 if self._parts else 0
        self.sections.append(Section(start, heading, page))

    def add(self, block: str, newlines: int = 2) -> None:
        """Append a block, `newlines` after the previous one. A blank block is left out."""
        block = clean(block)
        if not block:
            return
        if self._parts:
            gap = 2 if self.sections and self.sections[-1].start > self.length else newlines
            self._parts.append("\n" * gap)
            self.length += gap
        self._parts.append(block)
        self.length += len(block)
        if self.length > self.max_characters:
            raise Unreadable(Code.TEXT_OVER_LIMIT(f"{self.max_characters:,}"))

    def content(self, title: str = "", metadata: Mapping[str, Any] | None = None) -> Content:
        self._close_empty()
        return Content("".join(self._parts), title, tuple(lead_in(self.sections)), metadata or {})

    def _close_empty(self) -> None:
        """Remove the last section if nothing was written since it began."""
        if self.sections and self.sections[-1].start >= self.length:
            self.sections.pop()


def lead_in(sections: list[Section]) -> list[Section]:
    """Return the sections, with a first one without heading for any text before them."""
    return [Section(0), *sections] if sections and sections[0].start else sections


_NEWLINES = re.compile("\r\n|[\r\v\f]")
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")


def clean(extracted: str) -> str:
    """Return extracted text without control characters, lone surrogates and surrounding blanks."""
    if _UNCLEAN.search(extracted):  # quicker than the substitutions, and most blocks have none
        extracted = _UNWANTED.sub("", _NEWLINES.sub("\n", extracted))
    return extracted.strip()
