"""What became of every file and record, as the catalog remembers it: the statements that read the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from indexer.stores.snapshot import View
from indexer.stores.store import LedgerRow


def files(view: View) -> dict[str, tuple[tuple[int, int, int, int], list[tuple[str, str, str]]]]:
    """Every file the ledger knows: its stamp, and (uri, state, reason) of what lies in it; gone records left out."""
    known: dict[int, tuple[str, tuple[int, int, int, int], list[tuple[str, str, str]]]] = {
        id_: (path, (size, mtime_ns, inode, read_ns), [])
        for id_, path, size, mtime_ns, inode, read_ns in view.connection.execute(
            "SELECT id, path, size, mtime_ns, inode, read_ns FROM file"
        )
    }
    for file_id, uri, state, reason in view.connection.execute(
        "SELECT file_id, uri, state, reason FROM ledger WHERE state <> 'gone' ORDER BY id"
    ):
        known[file_id][2].append((uri, state, reason))
    return {path: (stamp, entries) for path, stamp, entries in known.values()}


def rows(view: View, state: str | None = None) -> Iterator[LedgerRow]:
    found = view.connection.execute(
        "SELECT f.path, l.uri, l.state, l.reason FROM ledger l JOIN file f ON f.id = l.file_id"
        " WHERE ?1 IS NULL OR l.state = ?1 ORDER BY l.id",
        (state,),
    ).fetchall()
    return (LedgerRow(*row) for row in found)


def counts(view: View) -> dict[str, int]:
    return dict(view.connection.execute("SELECT state, count(*) FROM ledger GROUP BY state ORDER BY state"))


def sources_of_documents(view: View) -> Iterator[tuple[str, str, str, str]]:
    """(file, uri, state, reason) of every ledger row whose uri is a document."""
    return iter(
        view.connection.execute(
            "SELECT f.path, l.uri, l.state, l.reason FROM ledger l JOIN file f ON f.id = l.file_id"
            " JOIN document d ON d.uri = l.uri"
        ).fetchall()
    )
