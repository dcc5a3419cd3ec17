"""The statements that read the ledger: the outcome of every file and record."""

from __future__ import annotations

from collections.abc import Iterator

from indexer.ledger import LedgerState, Reason, from_stored
from indexer.records import KnownFile, Stamp
from indexer.stores.local.views import View
from indexer.stores.port import LedgerRow, ReasonCount


def files(view: View) -> dict[str, KnownFile]:
    """Return every file of the ledger by its path; entries that are gone are left out."""
    by_id: dict[int, tuple[str, Stamp, list[tuple[str, LedgerState, Reason]]]] = {
        id_: (path, Stamp(size, mtime_ns, inode, read_ns), [])
        for id_, path, size, mtime_ns, inode, read_ns in view.connection.execute(
            "SELECT id, path, size, mtime_ns, inode, read_ns FROM file"
        )
    }
    for file_id, uri, state, reason in view.connection.execute(
        "SELECT file_id, uri, state, reason FROM ledger WHERE state <> 'gone' ORDER BY id"
    ):
        by_id[file_id][2].append((uri, state, from_stored(reason)))
    return {path: KnownFile(stamp, tuple(entries)) for path, stamp, entries in by_id.values()}


def rows(view: View, state: str | None = None) -> Iterator[LedgerRow]:
    """Return the rows in the order they were written; with a state only those of it."""
    selected = view.connection.execute(
        "SELECT f.path, l.uri, l.state, l.reason FROM ledger l JOIN file f ON f.id = l.file_id"
        " WHERE :state IS NULL OR l.state = :state ORDER BY l.id",
        {"state": state},
    ).fetchall()
    return (LedgerRow(file, uri, state, from_stored(reason)) for file, uri, state, reason in selected)


def counts(view: View) -> dict[str, int]:
    return dict(view.connection.execute("SELECT state, count(*) FROM ledger GROUP BY state ORDER BY state"))


def reasons(view: View) -> list[ReasonCount]:
    selected = view.connection.execute(
        "SELECT state, reason, count(*) FROM ledger WHERE reason <> '' GROUP BY state, reason"
    )
    return [ReasonCount(state, from_stored(reason), count) for state, reason, count in selected]


def rows_of_documents(view: View) -> Iterator[LedgerRow]:
    """Return the rows whose uri is a document."""
    selected = view.connection.execute(
        "SELECT f.path, l.uri, l.state, l.reason FROM ledger l JOIN file f ON f.id = l.file_id"
        " JOIN document d ON d.uri = l.uri"
    ).fetchall()
    return (LedgerRow(file, uri, state, from_stored(reason)) for file, uri, state, reason in selected)
