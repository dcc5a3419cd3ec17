"""The values of reading: the entries that it yields, and the options that it follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from indexer.errors import BadInput
from indexer.ledger import NO_REASON, Code, Reason
from indexer.passages.cut import unbroken_in_passages
from indexer.passages.unbroken import is_unbroken
from indexer.sources.content import Content, Skip, Unreadable

if TYPE_CHECKING:
    from indexer.exchange import Embedded
    from indexer.records import Document, Stamp
    from indexer.sources.formats import Program

EntryState = Literal["read", "unchanged", "skipped", "failed"]

_MAX_LIMIT_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a file, a record of a file, or a folder that was left out.

    Attributes:
        uri: absolute path of a file; id of a record, or "FILE:LINE" if the record has no id (stdin: "-:LINE"). If
            several JSON records begin in one line, the second is "FILE:LINE:2". See mailbox.py for messages.
        file: absolute path of the file that it is in, "-" for stdin.
        state: "read" has a document, "unchanged" has none because its file was not opened, or is a mailbox in which
            the message is as it was.
        reason: the reason and what to do, for "skipped" and "failed". For "read", it is usually `NO_REASON`; otherwise
            it names an unusual way of reading.
        document: the document, only for "read".
        vector: the record's own member "vector".
        embedded: the passages of an exported record, with their vectors.
        stamp: stamp of the file; None for stdin, and for a file or folder that was not looked into.
        opened: False if the file has not changed and the entry comes from the ledger.
        ignored: whether it was left out because of a rule (folders/ignores.py). A folder then stands for all its files.
        reader: format and version of its reader (`formats.reader_of`); empty for a file that was not opened.
        notes: what was not read of a document, such as pages without text.
        left: bytes of its file that were not read yet.
        is_exported: whether `likewise export` wrote the record, whose id is the address of a document.
    """

    uri: str
    file: str
    state: EntryState
    reason: Reason = NO_REASON
    document: Document | None = None
    vector: list[float] | None = None
    embedded: Embedded | None = None
    stamp: Stamp | None = None
    opened: bool = True
    ignored: bool = False
    reader: str = ""
    notes: tuple[Reason, ...] = ()
    left: int = 0
    is_exported: bool = False

    def at(self, uri: str) -> Entry:
        """Return the entry with another address."""
        return replace(self, uri=uri, document=self.document and replace(self.document, uri=uri))

    def noted(self, *notes: Reason) -> Entry:
        """Return this entry with these notes too."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self


def content_or_entry(read_content: Callable[[], Content], uri: str, file: str, stamp: Stamp | None) -> Content | Entry:
    """Return what a reader makes of a file or message, or the entry that says why it has no document."""
    try:
        content = read_content()
        if not content.text.strip():
            raise Skip(Code.NO_TEXT())
        if is_unbroken(content.text):
            raise Skip(Code.UNBROKEN())
    except Skip as skip:
        return Entry(uri, file, "skipped", skip.reason, stamp=stamp)
    except Unreadable as error:
        return Entry(uri, file, "failed", error.reason, stamp=stamp)
    except OSError as error:
        return Entry(uri, file, "failed", Code.CANNOT_BE_READ(error.strerror or error), stamp=stamp)
    return content


def entry_of(
    document: Document, file: str, stamp: Stamp | None, reason: Reason = NO_REASON, unread: tuple[Reason, ...] = ()
) -> Entry:
    """Return the entry of a document that is to be embedded, with a note on the part of its text that no passage has.

    Args:
        unread: the notes of its reader.
    """
    if unbroken := unbroken_in_passages(document.text, document.format):
        share = sum(end - start for start, end in unbroken) / len(document.text)
        unread = (*unread, Code.UNBROKEN_LEFT_OUT(f"{min(99, max(1, round(100 * share)))}"))
    return Entry(document.uri, file, "read", reason, document=document, stamp=stamp, notes=unread)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read.

    Attributes:
        glob: patterns. In a folder, a file is read only if its name, or its path below the folder, matches a pattern.
        max_file_mb: largest size of a file, or of one record of a file, in megabytes (2**20 bytes).
        id_field, title_field, text_field: members of records to use; None for the usual names.
        rehash: read files even if their stamp says that they have not changed.
        ignore: leave out files of folders that .gitignore, .likewiseignore or the default list names.
        extractors: programs that read what no reader knows. They are never stored: who reads again names them again.
    """

    glob: tuple[str, ...] = ()
    max_file_mb: float = 64
    id_field: str | None = None
    title_field: str | None = None
    text_field: str | None = None
    rehash: bool = False
    ignore: bool = True
    extractors: tuple[Program, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.max_file_mb <= _MAX_LIMIT_MB:
            raise BadInput(f"max file MB is {self.max_file_mb}: give a number above 0, up to {_MAX_LIMIT_MB:,}")

    @property
    def max_bytes(self) -> int:
        return int(self.max_file_mb * 2**20)
