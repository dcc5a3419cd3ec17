"""The catalog's schema as migrations: the first creates it, later ones change it. docs/format.md explains it.

Only writers use this file. Readers check `PRAGMA user_version` and refuse formats newer than FORMAT_VERSION
(connections.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from sqlite_utils import Database, Migrations

from indexer.filters.dates import MAX_CHARACTERS, Date, read_date
from indexer.ledger import from_stored
from indexer.stores.local.catalog.filter_sql import TABLES as FIELD_TABLES
from indexer.stores.local.disk.failpoint import MIGRATED, failpoint

migrations = Migrations("likewise")

_VERSION_1 = f"""
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- What was fitted once and belongs to the recipe: `post`, safetensors.
CREATE TABLE frozen (name TEXT PRIMARY KEY, content BLOB NOT NULL);

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


@migrations()
def version_1(db: Database) -> None:
    # One statement at a time: executescript would commit the migration's transaction.
    for statement in _VERSION_1.split(";\n"):
        if statement.strip():
            db.execute(statement)
    db.execute("PRAGMA user_version = 1")


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


@migrations()
def words(db: Database) -> None:
    # The word index is derived, and earlier versions do without it: the format stays the same.
    for statement in _WORDS.split(";\n"):
        if statement.strip():
            db.execute(statement)


@migrations()
def dates(db: Database) -> None:
    """Version 2: texts that read as dates have a second row with their first microsecond, `modified` too."""
    connection = db.conn
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


@migrations()
def whole_text(db: Database) -> None:
    # Only words are indexed by it, and earlier versions do without it: the format stays the same.
    db.execute(_WHOLE_TEXT)
    db.execute("INSERT INTO whole_text SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'passage'")


_ORIGIN = """
-- Documents that were taken from another index: the content hash they were stored with, and the one they have there.
CREATE TABLE origin (
    document_id  INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    content_hash BLOB NOT NULL,
    origin       BLOB NOT NULL
)
"""


@migrations()
def origin(db: Database) -> None:
    # Only a change of the model needs it, and earlier versions do without it: the format stays the same.
    db.execute(_ORIGIN)


@migrations()
def reasons(db: Database) -> None:
    """Version 3: the ledger stores the code of a reason with its arguments instead of its sentence."""
    connection = db.conn
    connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
    # As bytes: see `dates`.
    rows = connection.execute("SELECT id, CAST(reason AS BLOB) FROM ledger WHERE reason <> ''").fetchall()
    connection.executemany(
        "UPDATE ledger SET reason = ? WHERE id = ?",
        ((from_stored(sentence.decode("utf-8", "replace")).stored(), id_) for id_, sentence in rows),
    )
    connection.execute("PRAGMA user_version = 3")
    failpoint(MIGRATED)


@migrations()
def notes(db: Database) -> None:
    """Version 4: the ledger has the reader of each entry, and notes on what was not read."""
    connection = db.conn
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
