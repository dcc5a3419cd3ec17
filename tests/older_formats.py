"""Bring an index back to the format that it had before the ledger had readers and notes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
from postgres_server import server_uri

from indexer.stores.postgres.address import parse_address


def forget_readers(address: Path | str) -> None:
    """Make the ledger one of format 3 of a folder, or of format 2 of a database."""
    if isinstance(address, Path):
        with closing(sqlite3.connect(address / "catalog.db")) as connection, connection:
            connection.execute("ALTER TABLE ledger DROP COLUMN reader")
            connection.execute("ALTER TABLE ledger DROP COLUMN notes")
            connection.execute("DELETE FROM _sqlite_migrations WHERE name = 'notes'")
            connection.execute("PRAGMA user_version = 3")
        return
    name = parse_address(address).index
    with psycopg.connect(server_uri(), autocommit=True) as database:
        ((tables,),) = database.execute("SELECT tables FROM likewise.index WHERE name = %s", (name,)).fetchall()
        database.execute(f"ALTER TABLE {tables}.ledger DROP COLUMN reader, DROP COLUMN notes")  # type: ignore[call-overload]
        database.execute("UPDATE likewise.index SET format_version = 2 WHERE name = %s", (name,))
