"""Addresses that move: with the folder that holds an index, or because a person says where files are now.

The setting `home` is the folder that holds the index, as the last indexing run saw it. If that folder was renamed or
copied, the recorded files below it are below another folder now. Until the next writer records their new addresses, in
one transaction, each reading connection translates them: temporary views have the names of the tables. Only such a
connection pays for it. Addresses stored relative to `home` would be translated by each reader and writer, and in the
hashes that cover a path.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from indexer.stores.move import Move
from indexer.stores.port import SIDE_SLOTS

_SAMPLE_FILES = 200
"""Maximum recorded files that are looked for to see whether they have moved with the index."""


def _add_functions(connection: sqlite3.Connection, move: Move) -> None:
    """Register what the statements of this file call."""

    def rehash(recorded: Any, uri: Any, path: Any, format_: Any, modified: Any, metadata: Any) -> Any:
        return move.rehash(recorded, metadata, uri=uri, path=path, format=format_, modified=modified)

    connection.create_function("place", 1, move.place, deterministic=True)
    connection.create_function("place_sources", 1, move.sources, deterministic=True)
    connection.create_function("rehash", 6, rehash, deterministic=True)


_REHASH = "rehash(row_hash, uri, path, format, modified, metadata)"

_VIEWS = f"""
CREATE TEMP VIEW document AS SELECT id, place(uri) AS uri, title, place(path) AS path, format, modified, metadata,
    content_hash, {_REHASH} AS row_hash, tokens, passages, uri AS stored FROM main.document;
CREATE TEMP VIEW file AS SELECT id, place(path) AS path, size, mtime_ns, inode, read_ns FROM main.file;
CREATE TEMP VIEW ledger AS SELECT id, file_id, place(uri) AS uri, state, reason, run, reader, notes, uri AS stored
    FROM main.ledger;
CREATE TEMP VIEW setting AS SELECT name, iif(name = 'sources', place_sources(value), value) AS value FROM main.setting;
"""


def home_of(folder: Path) -> str:
    """Return the folder that holds an index. Bytes that are not UTF-8 are escaped, because SQLite cannot keep them.

    An index at "next" or "previous" is held by the index around it.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - pathlib keeps ".."
    is_side = folder.name in SIDE_SLOTS and (folder.parent / "catalog.db").exists()
    return str((folder.parent if is_side else folder).parent).encode(errors="backslashreplace").decode()


def recorded_home(connection: sqlite3.Connection) -> str | None:
    """Return the setting `home`; None before the first indexing run."""
    row = connection.execute("SELECT value FROM main.setting WHERE name = 'home'").fetchone()
    return None if row is None else str(row[0])


def is_at(folder: Path, home: str) -> bool:
    """Return whether an index is still in its recorded home, perhaps by another path."""
    here = home_of(folder)
    with suppress(OSError):
        return here == home or os.path.samefile(here, home)  # noqa: PTH121
    return False


def find_move(connection: sqlite3.Connection, folder: Path, home: str | None) -> Move | None:
    """Return how an index and its files have moved together; None if they have not.

    If the index alone was moved or copied, its files are where they were, and are not found where it is now, or are
    other files that it has already.

    Args:
        home: the setting of this name.
    """
    if home is None or is_at(folder, home):
        return None
    move = Move(home.rstrip(os.sep), home_of(folder).rstrip(os.sep))
    below = "SELECT path FROM main.file WHERE path >= ? || '/' AND path < ? || '0' LIMIT ?"
    paths = [path for (path,) in connection.execute(below, (move.old, move.old, _SAMPLE_FILES))]
    places = list(map(move.place, paths))
    recorded = "SELECT path FROM main.file WHERE path IN (SELECT value FROM json_each(?))"
    if any(move.place(path) == path for (path,) in connection.execute(recorded, (json.dumps(places),))):
        return None
    found = sum(map(os.path.lexists, places))
    return move if found and found >= sum(map(os.path.lexists, paths)) else None


def translate(connection: sqlite3.Connection, move: Move) -> None:
    """Let a reading connection see all addresses as they are now."""
    _add_functions(connection, move)
    connection.executescript(_VIEWS)


def move(connection: sqlite3.Connection, old: str, new: str) -> int:
    """Do what `indexer.stores.reading.store.Writer.move` says, inside of the caller's transaction."""
    is_file = connection.execute("SELECT 1 FROM file WHERE path = ?", (old,)).fetchone() is not None
    named = Move.named(old, new, is_file=is_file)
    if taken := strangers(connection, named):
        raise named.taken(taken)
    before = connection.total_changes
    count = carry(connection, named)
    if connection.total_changes == before:
        raise named.unknown()
    return count


def strangers(connection: sqlite3.Connection, move: Move) -> list[str]:
    """Return the new addresses that documents which do not move have already."""
    _add_functions(connection, move)
    taken = (
        "SELECT uri FROM document WHERE place(uri) = uri AND uri IN"
        " (SELECT place(uri) FROM document WHERE uri BETWEEN ? AND ? AND place(uri) <> uri)"
    )
    return [uri for (uri,) in connection.execute(taken, move.range)]


def carry(connection: sqlite3.Connection, move: Move) -> int:
    """Record the new addresses, inside of the caller's transaction; return the number of documents that have them."""
    _add_functions(connection, move)
    moves = "{0} BETWEEN ? AND ? AND place({0}) <> {0}"
    uri, path = moves.format("uri"), moves.format("path")
    (count,) = connection.execute(f"SELECT count(*) FROM document WHERE ({uri}) OR ({path})", move.range * 2).fetchone()
    connection.execute(f"UPDATE document SET path = place(path), row_hash = {_REHASH} WHERE {path}", move.range)
    # Files of the new place that were recorded without a document would stand in the way.
    connection.execute(
        f"DELETE FROM file WHERE place(path) = path AND path IN (SELECT place(path) FROM file WHERE {path})", move.range
    )
    for table, column in (("document", "uri"), ("file", "path")):
        # In two steps: on the way to its new address, a row may meet another row that has not moved yet.
        where = moves.format(column)
        connection.execute(f"UPDATE {table} SET {column} = CAST(place({column}) AS BLOB) WHERE {where}", move.range)
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS TEXT) WHERE {column} >= x''")
    connection.execute(f"UPDATE ledger SET uri = place(uri) WHERE {uri}", move.range)
    connection.execute(
        "UPDATE setting SET value = place_sources(value) WHERE name = 'sources' AND place_sources(value) <> value"
    )
    return int(count)
