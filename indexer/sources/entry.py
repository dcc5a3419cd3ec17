"""The values of reading: the entries that it yields, and the options that it follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from indexer.errors import BadInput
from indexer.ledger import NO_REASON, Reason

if TYPE_CHECKING:
    from indexer.exchange import Embedded
    from indexer.records import Document, Stamp

EntryState = Literal["read", "unchanged", "skipped", "failed"]

_MAX_LIMIT_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a file, a record of a file, or a folder that was left out.

    Attributes:
        uri: of a file its absolute path; of a record its id, or "FILE:LINE" where it has none (stdin: "-:LINE"). Of
            several JSON records that begin in one line the second is "FILE:LINE:2".
        file: absolute path of the file that it is in, "-" for stdin.
        state: "read" has a document, "unchanged" has none because its file was not opened.
        reason: the reason and what to do, for "skipped" and "failed". For "read" a note of its reader, such as that
            parts were left out; usually `NO_REASON`.
        document: only of "read".
        vector: the record's own member "vector".
        embedded: the passages of an exported record, with their vectors.
        stamp: stamp of the file; None for stdin, and for a file or folder that was not looked into.
        opened: False if the file has not changed, and the entry is the one that the ledger has.
        ignored: whether it was left out because of a rule (see ignores.py). A folder then stands for all its files.
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


@dataclass(frozen=True, slots=True)
class FieldOfFiles:
    """The member that is the id, title or text of the records of some files.

    Attributes:
        pattern: as in .gitignore, matched against the end of the file's path: "reviews/*.csv".
    """

    pattern: str
    id_field: str | None = None
    title_field: str | None = None
    text_field: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read.

    Attributes:
        glob: patterns; of a folder only files are read whose path below it, or name, matches one of them.
        max_file_mb: largest size of a file, or of one record of a file, in megabytes (2**20 bytes).
        id_field, title_field, text_field: members of records to use; None for the usual names.
        fields_of_files: members to use for some files instead; of several that match the last one counts.
        rehash: read files even if their stamp says that they have not changed.
        ignore: of a folder leave out what .gitignore, .likewiseignore and the default list name (ignores.py).
    """

    glob: tuple[str, ...] = ()
    max_file_mb: float = 64
    id_field: str | None = None
    title_field: str | None = None
    text_field: str | None = None
    fields_of_files: tuple[FieldOfFiles, ...] = ()
    rehash: bool = False
    ignore: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.max_file_mb <= _MAX_LIMIT_MB:
            raise BadInput(f"max file MB is {self.max_file_mb}: give a number above 0, up to {_MAX_LIMIT_MB:,}")

    @property
    def max_bytes(self) -> int:
        return int(self.max_file_mb * 2**20)

    def of_file(self, path: str) -> ReadOptions:
        """Return the options for a file, whose members are those that its path asks for."""
        options = self
        for fields in self.fields_of_files:
            if _matches(path, fields.pattern):
                options = replace(
                    options,
                    id_field=fields.id_field or options.id_field,
                    title_field=fields.title_field or options.title_field,
                    text_field=fields.text_field or options.text_field,
                )
        return options


def _matches(path: str, pattern: str) -> bool:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([f"**/{pattern.removeprefix('./').lstrip('/')}"]).match_file(path.lstrip("/"))
