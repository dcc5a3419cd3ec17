"""Moves the files that an index has read: their paths in a copy of its catalog, and the hashes that cover a path.

Written apart from likewise, by docs/format.md, so that it also pins what is hashed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = "/golden/sources"
"""The recorded folder of the files of a golden index."""

PATHS = (("document", "uri"), ("document", "path"), ("file", "path"), ("ledger", "uri"))
RECORDS = {"json", "jsonl", "csv", "tsv"}


def row_hash(uri: str, path: str | None, form: str | None, modified: str | None, metadata: dict[str, Any]) -> bytes:
    """BLAKE2b, 16 bytes, of a JSON list; the time of a record's file is left out."""
    record = form in RECORDS and uri != path
    row = json.dumps([metadata, path, form, None if record else modified], sort_keys=True)
    return hashlib.blake2b(row.encode(), digest_size=16).digest()


def move(catalog: Path, before: str, after: str) -> None:
    """Record what lies under the folder `before` as lying under `after`.

    Raises:
        AssertionError: a hash in the catalog is another than the one that `row_hash` gives.
    """
    with closing(sqlite3.connect(catalog)) as connection, connection:
        assert wrong_rows(connection) == []
        for table, column in PATHS:
            connection.execute(
                f"UPDATE {table} SET {column} = :after || substr({column}, length(:before) + 1)"
                f" WHERE substr({column}, 1, length(:before) + 1) = :before || '/'",
                {"after": after, "before": before},
            )
        connection.execute("UPDATE setting SET value = replace(value, ?, ?) WHERE name = 'sources'", (before, after))
        for id_, *row, metadata in connection.execute(
            "SELECT id, uri, path, format, modified, metadata FROM document"
        ).fetchall():
            new = row_hash(*row, json.loads(metadata))
            connection.execute("UPDATE document SET row_hash = ? WHERE id = ?", (new, id_))


def wrong_rows(connection: sqlite3.Connection) -> list[str]:
    """Uris of the documents whose stored row hash is not that of their row."""
    rows = connection.execute("SELECT row_hash, uri, path, format, modified, metadata FROM document")
    return [uri for stored, uri, *row, metadata in rows if row_hash(uri, *row, json.loads(metadata)) != stored]
