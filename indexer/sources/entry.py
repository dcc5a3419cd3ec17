"""What reading a source yields, and what it is told: entries and options. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from indexer.errors import BadInput

if TYPE_CHECKING:
    from indexer.exchange import Embedded
    from indexer.records import Document, Stamp

State = Literal["read", "unchanged", "skipped", "failed"]

_MOST_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a file, a record of a file, or a folder that was left out.

    Attributes:
        uri: of a file its absolute path; of a record its id, without one "FILE:LINE" (stdin: "-:LINE").
        file: absolute path of the file it lies in, "-" for stdin.
        state: "read" has a document, "unchanged" has none because its file was not opened.
        reason: for skipped and failed, one line: what it is and what to do.
        document: of "read" alone.
        vector: a record's own "vector" member.
        embedded: the passages of an exported record, with their vectors.
        stamp: of the file; None for stdin and for what was never looked into.
        opened: false where the file has not changed, and the entry stands as the ledger has it.
    """

    uri: str
    file: str
    state: State
    reason: str = ""
    document: Document | None = None
    vector: list[float] | None = None
    embedded: Embedded | None = None
    stamp: Stamp | None = None
    opened: bool = True


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read.

    Attributes:
        glob: of a folder, keep only files whose path below it, or name, matches one of these.
        max_file_mb: megabytes (2**20 bytes) that a file, or one record of a file, may have.
        id_field, title_field, text_field: members of records to use; None for the usual names.
        rehash: read files even when their stamp says that they have not changed.
    """

    glob: tuple[str, ...] = ()
    max_file_mb: float = 64
    id_field: str | None = None
    title_field: str | None = None
    text_field: str | None = None
    rehash: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.max_file_mb <= _MOST_MB:
            raise BadInput(f"max file MB is {self.max_file_mb}: give a number above 0, up to {_MOST_MB:,}")

    @property
    def max_bytes(self) -> int:
        return int(self.max_file_mb * 2**20)
