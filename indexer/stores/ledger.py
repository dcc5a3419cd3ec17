"""The statements that read the ledger: the outcome of every file and record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from indexer.ledger import LedgerState, Reason, from_stored
from indexer.records import KnownFile, Stamp
from indexer.stores.port import LedgerRow, ReasonCount
from indexer.stores.view import View

_ROWS = "SELECT f.path, l.uri, l.state, l.reason FROM {tables}.ledger l JOIN {tables}.file f ON f.id = l.file_id"


class LedgerReader:
    """The part of a snapshot that reads the ledger."""

    _view: View

    def files(self) -> dict[str, KnownFile]:
        """Return every file of the ledger by its path; entries that are gone are left out."""
        by_id: dict[int, tuple[str, Stamp, list[tuple[str, LedgerState, Reason]]]] = {
            id_: (path, Stamp(size, mtime_ns, int(inode), read_ns), [])
            for id_, path, size, mtime_ns, inode, read_ns in self._view.rows(
                "SELECT id, path, size, mtime_ns, inode, read_ns FROM {tables}.file ORDER BY id"
            )
        }
        for file_id, uri, state, reason in self._view.stream(
            "SELECT file_id, uri, state, reason FROM {tables}.ledger WHERE state <> 'gone' ORDER BY id"
        ):
            by_id[file_id][2].append((uri, state, from_stored(reason)))
        return {path: KnownFile(stamp, tuple(entries)) for path, stamp, entries in by_id.values()}

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        """Return the rows in the order they were written; with a state only the rows of this state."""
        if state is None:
            return _read(self._view.rows(f"{_ROWS} ORDER BY l.id"))
        return _read(self._view.rows(f"{_ROWS} WHERE l.state = %s ORDER BY l.id", state))

    def ledger_of_documents(self) -> Iterator[LedgerRow]:
        """Return the rows whose uri is a document."""
        return _read(self._view.rows(f"{_ROWS} JOIN {{tables}}.document d ON d.{{key}} = l.{{key}}"))

    def ledger_counts(self) -> dict[str, int]:
        """Return the number of rows of each state."""
        return dict(self._view.rows("SELECT state, count(*) FROM {tables}.ledger GROUP BY state ORDER BY state"))

    def ledger_reasons(self) -> list[ReasonCount]:
        """Return every reason that is not empty, with the number of its rows."""
        selected = self._view.rows(
            "SELECT state, reason, count(*) FROM {tables}.ledger WHERE reason <> '' GROUP BY state, reason"
        )
        return [ReasonCount(state, from_stored(reason), count) for state, reason, count in selected]


def _read(selected: Iterable[tuple[Any, ...]]) -> Iterator[LedgerRow]:
    return (LedgerRow(file, uri, state, from_stored(reason)) for file, uri, state, reason in selected)
