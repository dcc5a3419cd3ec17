"""Documents that their sources no longer have: what `--prune` removes, what it keeps, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from indexer.errors import BadInput
from indexer.indexing.ingest import Seen, left_out_rows
from indexer.ledger import Code
from indexer.stores.port import LedgerRow
from indexer.stores.reading.snapshot import Snapshot

_NAMED = 5
"""Maximum files that a message names. Further files are counted."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The documents that the sources of a run no longer have.

    Attributes:
        uris: uris of the documents that pruning removes.
        elsewhere: uris that only the index with the other model still has. Pruning removes their rows of the ledger.
        ignored: uris of documents whose file exists but is ignored now. These documents are kept.
        doubtful: files with documents and with something that failed, and folders that cannot be listed. Their
            documents are kept, because they may still be there.
        unlisted: SOURCE arguments that are missing or cannot be listed. If there is one, nothing is pruned.
        total: how many documents the index has.
    """

    uris: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    total: int = 0

    @property
    def is_most(self) -> bool:
        """True if these are more than half of the documents of the index. Pruning removes them only if confirmed."""
        return 2 * len(self.uris) > self.total

    def refusal(self, *, yes: bool) -> BadInput | None:
        """Return the error that says why nothing is pruned; None if pruning is possible."""
        if self.unlisted:
            return BadInput(
                f"{', '.join(self.unlisted)}: missing or cannot be listed, so nothing was pruned: make it readable, "
                "or leave it out"
            )
        if self.is_most and not yes:
            return BadInput(
                f"pruning would remove {len(self.uris):,} of {self.total:,} documents, more than half: nothing was "
                "pruned; add --yes if that is meant"
            )
        return None

    def notes(self) -> tuple[str, ...]:
        """Return what the user of a run that prunes should know."""
        if not self.doubtful or self.unlisted:
            return ()
        named = ", ".join(self.doubtful[:_NAMED])
        more = f" and {len(self.doubtful) - _NAMED:,} more" if len(self.doubtful) > _NAMED else ""
        return (f"pruning keeps the documents of files and folders that could not be read whole: {named}{more}",)


def find_lost(snapshot: Snapshot, seen: Sequence[Seen]) -> Lost:
    """Return the documents that the sources of runs cover but no longer contain, or skip now.

    Args:
        seen: what runs have seen that have read their sources to the end, one after the other, under one lock or
            without writing.
    """
    lost: dict[str, None] = {}
    ignored: set[str] = set()
    doubtful: dict[str, None] = {}

    def covers(file: str) -> bool:
        return any(each.covers(file) for each in seen)

    def doubt_of(file: str) -> str | None:
        """Return the file itself or the folder above it that could not be read whole; None if there is none."""
        return next((doubt for each in seen if (doubt := each.doubt(file)) is not None), None)

    def is_ignored(file: str) -> bool:
        return any(each.ignores(file) for each in seen)

    def is_kept(row: LedgerRow) -> bool:
        is_missing = row.state == "gone" or (row.state == "skipped" and row.reason.code is not Code.DUPLICATE)
        return not is_missing or not covers(row.file) or bool(doubt_of(row.file))

    def rows() -> Iterable[LedgerRow]:
        return reduce(lambda rows, each: each.after(rows), seen, snapshot.ledger_of_documents())

    for row in rows():  # There are as many rows as documents, so only the lost ones are held.
        if (doubt := doubt_of(row.file)) is not None:
            doubtful[doubt] = None
        elif not is_kept(row):
            lost[row.uri] = None
            if is_ignored(row.file):
                ignored.add(row.uri)
    if lost:
        for row in rows():
            if row.uri in lost and is_kept(row):
                del lost[row.uri]
    elsewhere = [
        row.uri
        for row in left_out_rows(snapshot)
        if row.state == "gone" or (row.state == "skipped" and row.reason.code is Code.LEFT_OUT_SINCE)
        if covers(row.file) and doubt_of(row.file) is None and not is_ignored(row.file)
    ]
    return Lost(
        tuple(uri for uri in lost if uri not in ignored),
        tuple(elsewhere),
        tuple(uri for uri in lost if uri in ignored),
        tuple(sorted(doubtful)),
        tuple(argument for each in seen for argument in each.unlisted),
        snapshot.documents,
    )
