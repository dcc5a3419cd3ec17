"""Values that every folder uses: documents, passages, files that were read, and what a call changed.

All are frozen. Nothing here depends on models or databases.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.ledger import LedgerState, Reason

Vector = NDArray[np.float32]
"""One row, or rows, of float32."""


@dataclass(frozen=True, slots=True)
class Section:
    """The beginning of a part of a document, which reaches to the start of the next part.

    Attributes:
        start: offset of its first character in the document's text, in code points.
        heading: path of headings from the outermost in, joined by " > "; empty for none.
        page: page, slide or sheet number, counted from 1; None if the format has no pages.
    """

    start: int
    heading: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of a collection, identified by its uri.

    Attributes:
        uri: its name, unique in an index.
        text: the whole text; offsets count its code points.
        title: embedded before each passage; may be empty. None is accepted as no title.
        metadata: JSON values to filter by; a dotted path names a member of a nested object.
        path: absolute path of the file it came from; None for records from elsewhere.
        format: short name of the file's format, such as "markdown" or "pdf".
        modified: when the file changed last, ISO 8601 in UTC.
        sections: its parts in order of `start`, for formats that have any.
    """

    uri: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None
    format: str | None = None
    modified: str | None = None
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        if self.title is None:  # as many programs write what is missing
            object.__setattr__(self, "title", "")


OPTIONAL = tuple(member.name for member in fields(Document) if member.default is None)
"""The members of a document that are a string or None. Every store has a column for each."""

RECORD_FORMATS = frozenset({"csv", "json", "jsonl", "tsv"})
"""Formats of files that hold many documents of one kind."""


@dataclass(frozen=True, slots=True)
class Span:
    """A passage before it is stored: `text[start:end]` of its document.

    Attributes:
        start, end: offsets in the document's text, in code points.
        prefix: text that is embedded before the passage (title, heading path); may be empty.
        tokens: how many tokens the encoder reads for prefix and passage, with special tokens and prompt.
        heading, page: heading and page of the section in which the passage begins.
    """

    start: int
    end: int
    prefix: str = ""
    tokens: int = 0
    heading: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that a call made: uris in the order given.

    Attributes:
        added: new documents.
        replaced: documents with new content, which were embedded again.
        updated: documents whose metadata alone changed; nothing was embedded.
        unchanged: documents that are the same as before.
        notes: sentences that the caller should read, such as what could not be done as asked; usually none.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, later: Changes) -> Changes:
        return Changes(
            self.added + later.added,
            self.replaced + later.replaced,
            self.updated + later.updated,
            self.unchanged + later.unchanged,
            tuple(dict.fromkeys(self.notes + later.notes)),
        )


_SETTLED_NS = 2_000_000_000
"""FAT stores times in steps of 2 seconds. A younger file may change again without a change of its time."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size, time and inode of a file when it was read, by which a later change is noticed.

    Attributes:
        size: size in bytes.
        mtime_ns, inode: from `os.stat`.
        read_ns: `time.time_ns()` before reading began.
    """

    size: int
    mtime_ns: int
    inode: int
    read_ns: int

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return whether a file with this status has not changed since it was read. Its time must have been old enough
        to be trusted."""
        return self.matches(status) and self.mtime_ns <= self.read_ns - _SETTLED_NS

    def matches(self, status: os.stat_result) -> bool:
        """Return whether size, time and inode are as they were, however young the file was then."""
        return self.size == status.st_size and self.mtime_ns == status.st_mtime_ns and self.inode == status.st_ino


UNREAD = Stamp(-1, 0, 0, 0)
"""The stamp of a file that the next run over its source must open."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file in the ledger.

    Attributes:
        entries: (uri, state, reason) of each of its entries.
        readers: the readers of its entries (`LedgerRow.reader`); "" for entries that do not say it.
        notes: the notes of each of its entries that has any, by uri.
    """

    stamp: Stamp
    entries: tuple[tuple[str, LedgerState, Reason], ...]
    readers: frozenset[str] = frozenset()
    notes: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)


def broken_at(text: str) -> int | None:
    """Return the offset of a lone surrogate, which is half a character and cannot be stored; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None
