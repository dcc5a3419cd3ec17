"""The statements that read the ledger: the outcome of every file and record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from indexer.ledger import HELD, STORED_MARK, LedgerState, Reason, from_stored, notes_from_stored
from indexer.records import KnownFile, Stamp
from indexer.stores.port import LedgerRow, ReasonCount
from indexer.stores.reading.view import View

_STATES: dict[str, LedgerState] = {state: state for state in get_args(LedgerState)}
"""Each state by its name, so that the entries of a file share one text."""


class LedgerReader:
    """The part of a snapshot that reads the ledger."""

    _view: View

    def files(self) -> dict[str, KnownFile]:
        """Return every file of the ledger, by path. Entries that are gone are left out."""
        by_id: dict[int, tuple[str, Stamp, list[tuple[str, LedgerState, Reason]], set[str]]] = {
            id_: (path, Stamp(size, mtime_ns, int(inode), read_ns), [], set())
            for id_, path, size, mtime_ns, inode, read_ns in self._view.rows(
                "SELECT id, path, size, mtime_ns, inode, read_ns FROM {tables}.file ORDER BY id"
            )
        }
        noted: dict[int, dict[str, tuple[Reason, ...]]] = {}
        for file_id, uri, state, reason, reader, notes in self._view.stream(
            "SELECT file_id, uri, state, reason, reader, notes FROM {tables}.ledger WHERE state <> 'gone' ORDER BY id"
        ):
            _, _, entries, readers = by_id[file_id]
            entries.append((uri, _STATES[state], from_stored(reason)))
            readers.add(reader)
            if notes:
                noted.setdefault(file_id, {})[uri] = notes_from_stored(notes)
        return {
            path: KnownFile(stamp, tuple(entries), frozenset(readers), noted.get(id_, {}))
            for id_, (path, stamp, entries, readers) in by_id.items()
        }

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        """Yield the rows of the ledger in the order they were written; with a state only the rows of this state."""
        if state is None:
            return self._rows("ORDER BY l.id")
        return self._rows("WHERE l.state = %s ORDER BY l.id", state)

    def ledger_of_documents(self) -> Iterator[LedgerRow]:
        """Yield the rows of the ledger whose uri is a document, in no order, as long as the snapshot is open."""
        return self._rows("JOIN {tables}.document d ON d.{key} = l.{key}", read=self._view.stream)

    def files_of_documents(self) -> Iterator[tuple[str, str | None]]:
        """Yield the uri of each document that names the file that it comes from, with this file, and with None the uri
        of each document that no file has now."""
        return self._view.stream(
            "SELECT d.uri, f.path FROM {tables}.document d LEFT JOIN {tables}.ledger l ON l.{key} = d.{key}"
            " AND l.state <> 'gone' LEFT JOIN {tables}.file f ON f.id = l.file_id"
            " WHERE f.path IS NULL OR f.path = d.path OR (d.path IS NULL AND f.path = '-')"
        )

    def file_of(self, uri: str) -> tuple[LedgerRow, Stamp] | None:
        """Return the row of a document, and the stamp of its file; None for a document that comes from no file."""
        selected = self._view.rows(
            "SELECT f.path, l.uri, l.state, l.reason, l.reader, l.notes, f.size, f.mtime_ns, f.inode, f.read_ns"
            " FROM {tables}.ledger l JOIN {tables}.file f ON f.id = l.file_id WHERE l.{key} = %s",
            self._view.key_of(uri),
        )
        for file, _, state, reason, reader, notes, size, mtime_ns, inode, read_ns in selected:
            if state in HELD:
                row = LedgerRow(file, uri, state, from_stored(reason), reader, notes_from_stored(notes))
                return row, Stamp(size, mtime_ns, int(inode), read_ns)
        return None

    def noted(self) -> Iterator[LedgerRow]:
        """Yield the rows of the ledger that have notes, in the order they were written."""
        return self._rows("WHERE l.notes <> '' ORDER BY l.id")

    def noted_count(self) -> int:
        """Return the number of rows of the ledger that have notes."""
        ((count,),) = self._view.rows("SELECT count(*) FROM {tables}.ledger WHERE notes <> ''")
        return int(count)

    def _rows(
        self, selection: str, *parameters: str, read: Callable[..., Iterable[Any]] | None = None
    ) -> Iterator[LedgerRow]:
        selected = (read or self._view.rows)(
            "SELECT f.path, l.uri, l.state, l.reason, l.reader, l.notes"
            f" FROM {{tables}}.ledger l JOIN {{tables}}.file f ON f.id = l.file_id {selection}",
            *parameters,
        )
        return (
            LedgerRow(file, uri, state, from_stored(reason), reader, notes_from_stored(notes))
            for file, uri, state, reason, reader, notes in selected
        )

    def ledger_counts(self) -> dict[str, int]:
        """Return the number of rows of each state that occurs."""
        return dict(self._view.rows("SELECT state, count(*) FROM {tables}.ledger GROUP BY state ORDER BY state"))

    def ledger_reasons(self) -> list[ReasonCount]:
        """Return every reason of the ledger, with the number of its rows, in no particular order."""
        selected = self._view.rows(
            "SELECT state, reason, count(*) FROM {tables}.ledger WHERE reason <> '' AND reason NOT LIKE %s"
            " GROUP BY state, reason",
            STORED_MARK,
        )
        return [ReasonCount(state, from_stored(reason), count) for state, reason, count in selected]
