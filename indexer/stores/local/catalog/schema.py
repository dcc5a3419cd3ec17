"""The catalog's schema as migrations: the first creates it, later ones change it. docs/format.md explains it.

Only writers use this file. Readers check the marks in the file's header (`require_format` in connections.py). Tables
are written in SQL: it has AUTOINCREMENT, WITHOUT ROWID and cascades, and people see its comments in the file.
"""

from __future__ import annotations

from indexer.stores.local.catalog import connections
from indexer.stores.local.catalog.database import Database, Migrations
from indexer.stores.local.catalog.filter_sql import TABLES as FIELD_TABLES
from indexer.stores.local.disk.failpoint import MIGRATED, failpoint

MIGRATIONS = Migrations("likewise")
"""One for each format, in their order. A catalog has the names of its own in `_sqlite_migrations`."""


def migrate(db: Database) -> None:
    """Bring a catalog to the newest format, in one transaction."""
    if MIGRATIONS.pending(db):
        with db.atomic():
            # A write comes first, so that what is read afterwards cannot change.
            db.execute(f"PRAGMA user_version = {connections.FORMAT_VERSION}")
            MIGRATIONS.apply(db)
            # Readers load what they keep again at a new number.
            db.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
            failpoint(MIGRATED)


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
    tokens       INTEGER NOT NULL,   -- that the encoder read, over all passages
    passages     INTEGER NOT NULL
);
-- The text stands apart so that scanning documents does not read it.
CREATE TABLE document_text (
    document_id INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    text        TEXT NOT NULL,
    raw         BLOB,                -- null: only PostgreSQL has texts that the column `text` cannot hold
    sections    TEXT NOT NULL        -- JSON: [start, heading, page] of each
);
-- Documents that were taken from another index: the content hash they were stored with, and the one they have there.
CREATE TABLE origin (
    document_id  INTEGER PRIMARY KEY REFERENCES document(id) ON DELETE CASCADE,
    content_hash BLOB NOT NULL,
    origin       BLOB NOT NULL
);
CREATE TABLE passage (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- crosses to FAISS and the word index; never reused
    document_id INTEGER NOT NULL REFERENCES document(id) ON DELETE CASCADE,
    start       INTEGER NOT NULL,    -- code points in the document's text
    stop        INTEGER NOT NULL,
    line        INTEGER,             -- 1-based, of `start`
    heading     TEXT NOT NULL,
    page        INTEGER,
    checksum    BLOB NOT NULL,       -- over the passage's text and vector
    vector      BLOB NOT NULL        -- float16, little-endian, unit length
);

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
    run     INTEGER NOT NULL,
    reader  TEXT NOT NULL,           -- format and version, such as pdf/2; empty if the file was not opened
    notes   TEXT NOT NULL            -- what was not read: JSON list of objects as in `reason`; empty without a note
);
{FIELD_TABLES}
"""


@MIGRATIONS()
def version_1(db: Database) -> None:
    for statement in _VERSION_1.split(";\n"):  # `executescript` of sqlite-utils takes as long again
        db.execute(statement)
    db.table("passage").create_index(["document_id"], "passage_document")
    db.table("ledger").create_index(["file_id"], "ledger_file")
    db.table("ledger").create_index(["uri"], "ledger_uri")
    db.execute(f"PRAGMA application_id = {connections.APPLICATION_ID}")
