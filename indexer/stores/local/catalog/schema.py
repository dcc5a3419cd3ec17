"""The catalog's schema as migrations: the first creates it, later ones change it. docs/format.md explains it.

Only writers use this file. Readers check `PRAGMA user_version` and refuse formats newer than FORMAT_VERSION
(connections.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from indexer.filters.dates import MAX_CHARACTERS, Date, read_date
from indexer.ledger import from_stored
from indexer.stores.local.catalog.filter_sql import TABLES as FIELD_TABLES
from indexer.stores.local.disk.failpoint import MIGRATED, failpoint

_MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = []
"""In the order in which they are applied; as a decorator `append` adds one. Catalogs store the names of theirs."""

# The table that sqlite-utils made in the catalogs of earlier versions.
_APPLIED = (
    "CREATE TABLE IF NOT EXISTS _sqlite_migrations"
    " (id INTEGER PRIMARY KEY, migration_set TEXT, name TEXT, applied_at TEXT)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx__sqlite_migrations_migration_set_name"
    " ON _sqlite_migrations (migration_set, name)",
)


@contextmanager
def atomic(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction of a connection in autocommit mode; an error rolls it back."""
    connection.execute("BEGIN")
    with connection:
        yield


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the migrations that this catalog lacks, each in one transaction with the record of it."""
    for statement in _APPLIED:
        connection.execute(statement)
    applied = {name for (name,) in connection.execute("SELECT name FROM _sqlite_migrations")}
    for migration in _MIGRATIONS:
        if migration.__name__ not in applied:
            with atomic(connection):
                migration(connection)
                connection.execute(
                    "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('likewise', ?, ?)",
                    (migration.__name__, str(datetime.now(UTC))),
                )


_VERSION_1 = f"""
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE document (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uri          TEXT NOT NULL UNIQUE,
    title        TEXT NOT NULL,
    path         TEXT,
    format       TEXT,
    modified     TEXT,
    metadata     TEXT NOT NULL,      -- JSON object
    content_hash BLOB NOT NULL,      -- decides embedding
    row_hash     BLOB NOT NULL,      -- decides rewriting this row
    tokens       INTEGER NOT NULL    -- that the encoder read, over all passages
);
-- The text stands apart so that scanning documents does not read it.
CREATE TABLE document_text (
    document_id INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    text        TEXT NOT NULL,
    sections    TEXT NOT NULL        -- JSON: [start, heading, page] of each
);
CREATE TABLE passage (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- crosses to FAISS and the word index; never reused
    document_id INTEGER NOT NULL REFERENCES document(id) ON DELETE CASCADE,
    start       INTEGER NOT NULL,    -- code points in the document's text
    end         INTEGER NOT NULL,
    line        INTEGER,             -- 1-based, of `start`
    heading     TEXT NOT NULL,
    page        INTEGER,
    checksum    BLOB NOT NULL,       -- over the passage's text and vector
    vector      BLOB NOT NULL        -- float16, little-endian, unit length
);
CREATE INDEX passage_document ON passage(document_id);

CREATE TABLE segment (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    file     TEXT NOT NULL UNIQUE,   -- segments/FILE.faiss and segments/FILE.ids
    kind     TEXT NOT NULL,          -- exact | approximate
    count    INTEGER NOT NULL,
    size     INTEGER NOT NULL,       -- bytes of both files
    sha256   TEXT NOT NULL,          -- of both files, one after the other
    stamp    TEXT NOT NULL,          -- device, inode, size and times when the sha256 was last seen to be right
    parameters TEXT NOT NULL,        -- JSON: how an approximate one is searched
    first_id INTEGER NOT NULL,       -- it holds every passage of this range that existed when it was built
    last_id  INTEGER NOT NULL
);
-- Passages that are in a segment but exist no more.
CREATE TABLE dead (passage_id INTEGER PRIMARY KEY);

CREATE TABLE file (
    id       INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,
    size     INTEGER NOT NULL,       -- -1: to be read again
    mtime_ns INTEGER NOT NULL,
    inode    INTEGER NOT NULL,
    read_ns  INTEGER NOT NULL
);
CREATE TABLE ledger (
    id      INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
    uri     TEXT NOT NULL,
    state   TEXT NOT NULL,           -- indexed | unchanged | updated | skipped | failed | gone
    reason  TEXT NOT NULL,           -- JSON object: code, arguments, line; empty without a reason
    run     INTEGER NOT NULL
);
CREATE INDEX ledger_file ON ledger(file_id);
CREATE INDEX ledger_uri ON ledger(uri);
{FIELD_TABLES}
"""


@_MIGRATIONS.append
def version_1(connection: sqlite3.Connection) -> None:
    # One statement at a time: executescript would commit the migration's transaction.
    for statement in _VERSION_1.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")


_WORDS = """
-- The word index that stands in words/NAME; at most one row.
CREATE TABLE word_index (
    name     TEXT NOT NULL,
    analysis TEXT NOT NULL,          -- how its text became terms
    last_id  INTEGER NOT NULL,       -- it holds every passage up to this id that existed when it was written
    removed  INTEGER NOT NULL,       -- passages deleted from it since it was last made
    appended INTEGER NOT NULL,       -- times it was caught up since
    files    TEXT NOT NULL,          -- JSON: names below words/NAME and the sha256 of each
    stamp    TEXT NOT NULL           -- of these files, when they were last seen to be right
);
-- Passages that are in the word index but exist no more.
CREATE TABLE dead_word (passage_id INTEGER PRIMARY KEY);
"""


@_MIGRATIONS.append
def words(connection: sqlite3.Connection) -> None:
    # The word index is derived, and earlier versions do without it: the format stays the same.
    for statement in _WORDS.split(";\n"):
        if statement.strip():
            connection.execute(statement)


@_MIGRATIONS.append
def dates(connection: sqlite3.Connection) -> None:
    """Version 2: texts that read as dates have a second row with their first microsecond, `modified` too."""
    # A write comes first, so that what is read afterwards cannot change; readers load the fields again at a new number.
    connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
    for id_, name in connection.execute("SELECT id, name FROM field WHERE type = 'text' ORDER BY id").fetchall():
        # As bytes: a text that is damaged must not keep the writer from opening the index and repairing it.
        texts = connection.execute(
            "SELECT DISTINCT CAST(value AS BLOB) FROM field_value WHERE field_id = ? AND length(value) <= ?",
            (id_, MAX_CHARACTERS),
        )
        found = [(date.start, date.text) for (text,) in texts if (date := _date_of(text))]
        if found:
            insert = (
                "INSERT OR IGNORE INTO field_value (field_id, value, document_id)"
                " SELECT ?, ?, document_id FROM field_value WHERE field_id = ? AND value = ?"
            )
            date_id = _date_field(connection, name)
            connection.executemany(insert, ((date_id, start, id_, text) for start, text in found))
    if connection.execute("SELECT 1 FROM document WHERE modified <> '' LIMIT 1").fetchone():
        insert = "INSERT INTO field_value (field_id, value, document_id) VALUES (?, ?, ?)"
        connection.executemany(insert, _modified_rows(connection, _date_field(connection, "modified")))
    connection.execute("PRAGMA user_version = 2")
    failpoint(MIGRATED)


_WHOLE_TEXT = """
-- One row: passages up to this id were embedded, and are found by their words, with their link targets and comments.
CREATE TABLE whole_text (last_id INTEGER NOT NULL)
"""


@_MIGRATIONS.append
def whole_text(connection: sqlite3.Connection) -> None:
    # Only words are indexed by it, and earlier versions do without it: the format stays the same.
    connection.execute(_WHOLE_TEXT)
    connection.execute(
        "INSERT INTO whole_text SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'passage'"
    )


_ORIGIN = """
-- Documents that were taken from another index: the content hash they were stored with, and the one they have there.
CREATE TABLE origin (
    document_id  INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    content_hash BLOB NOT NULL,
    origin       BLOB NOT NULL
)
"""


@_MIGRATIONS.append
def origin(connection: sqlite3.Connection) -> None:
    # Only a change of the model needs it, and earlier versions do without it: the format stays the same.
    connection.execute(_ORIGIN)


@_MIGRATIONS.append
def reasons(connection: sqlite3.Connection) -> None:
    """Version 3: the ledger stores the code of a reason with its arguments instead of its sentence."""
    connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
    # As bytes: see `dates`.
    rows = connection.execute("SELECT id, CAST(reason AS BLOB) FROM ledger WHERE reason <> ''").fetchall()
    connection.executemany(
        "UPDATE ledger SET reason = ? WHERE id = ?",
        ((from_stored(sentence.decode("utf-8", "replace")).stored(), id_) for id_, sentence in rows),
    )
    connection.execute("PRAGMA user_version = 3")
    failpoint(MIGRATED)


@_MIGRATIONS.append
def notes(connection: sqlite3.Connection) -> None:
    """Version 4: the ledger has the reader of each entry, and notes on what was not read."""
    connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
    # Format and version, such as pdf/2; empty if the file was not opened, or if an earlier likewise read it.
    connection.execute("ALTER TABLE ledger ADD COLUMN reader TEXT NOT NULL DEFAULT ''")
    # JSON list of objects as in `reason`; empty without a note.
    connection.execute("ALTER TABLE ledger ADD COLUMN notes TEXT NOT NULL DEFAULT ''")
    connection.execute("PRAGMA user_version = 4")
    failpoint(MIGRATED)


def _date_field(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute("INSERT INTO field (name, type) VALUES (?, 'date')", (name,)).lastrowid or 0)


def _modified_rows(connection: sqlite3.Connection, field_id: int) -> Iterator[tuple[int, int, int]]:
    times = connection.execute("SELECT id, CAST(modified AS BLOB) FROM document WHERE modified <> ''")
    for document_id, modified in times:
        if date := _date_of(modified):
            yield field_id, date.start, document_id


def _date_of(text: bytes) -> Date | None:
    return read_date(text.decode("utf-8", "replace"))
