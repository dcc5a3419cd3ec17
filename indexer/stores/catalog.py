"""The catalog as its one writer sees it: every statement that changes it, each inside one transaction.

What exists is what this file's rows say. Readers use snapshot.py, which needs no sqlite-utils.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sqlite_utils import Database

from indexer.errors import StorageError
from indexer.records import Changes, Document, Span
from indexer.stores import fields
from indexer.stores.schema import migrations
from indexer.stores.segments import SegmentFile
from indexer.stores.store import EmbeddedDocument, LedgerRow
from indexer.stores.vectors import checksum, to_blobs

EXTRACTED = frozenset({"html", "pdf", "docx", "pptx", "xlsx", "epub", "eml", "json", "jsonl", "csv", "tsv"})
"""Formats whose text is not the file's own: a line number in it would mislead."""


class Catalog:
    """The writing connection. Use under the writer lock, from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
        self.db = Database(connection)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        with self._errors():
            migrations.apply(self.db)

    def close(self) -> None:
        """Fold the write-ahead log into the catalog, so that a read-only folder can be searched."""
        self.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.db.conn.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"{self._path.parent}: could not be written ({error}); what was committed before is kept"
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One commit. It begins with a write, so that what it reads afterwards cannot change under it."""
        with self._errors(), self.db.atomic():
            self.db.conn.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
            yield self.db.conn

    def initialise(self, settings: Mapping[str, str]) -> None:
        with self._errors(), self.db.atomic():
            rows = {
                **settings,
                "generation": "0",
                "run": "0",
                "finished_run": "0",
                "history": secrets.token_hex(8),
            }
            self.db.table("setting").insert_all({"name": name, "value": value} for name, value in rows.items())

    def set(self, name: str, value: str) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    def vacuum(self) -> None:
        with self._errors():
            self.db.conn.execute("VACUUM")

    # documents

    def put(self, documents: Sequence[EmbeddedDocument], ledger: Sequence[LedgerRow], run: int) -> Changes:
        added: list[str] = []
        replaced: list[str] = []
        updated: list[str] = []
        with self.transaction() as connection:
            next_id = _highest(connection, "passage") + 1
            for item in documents:
                document = item.document
                known = connection.execute("SELECT id FROM document WHERE uri = ?", (document.uri,)).fetchone()
                if item.spans is None or item.vectors is None:
                    assert known is not None, f"{document.uri}: updated but not in the catalog"
                    _write_row(connection, item, known[0])
                    updated.append(document.uri)
                    continue
                if known is not None:
                    _erase_passages(connection, known[0])
                document_id = _write_row(connection, item, None if known is None else known[0])
                _write_passages(connection, document_id, next_id, document, item.spans, to_blobs(item.vectors))
                next_id += len(item.spans)
                (added if known is None else replaced).append(document.uri)
            _write_ledger(connection, ledger, run)
            if not ledger:
                _forget_stamps(connection, [item.document.uri for item in documents])
        return Changes(tuple(added), tuple(replaced), tuple(updated))

    def remove(self, uris: Iterable[str]) -> int:
        with self.transaction() as connection:
            removed = [
                (uri, row[0])
                for uri in dict.fromkeys(uris)
                for row in connection.execute("SELECT id FROM document WHERE uri = ?", (uri,))
            ]
            _forget_stamps(connection, [uri for uri, _ in removed])
            for uri, document_id in removed:
                _erase_passages(connection, document_id)
                fields.erase(connection, [document_id])
                connection.execute("DELETE FROM document WHERE id = ?", (document_id,))
                connection.execute("DELETE FROM ledger WHERE uri = ?", (uri,))
        return len(removed)

    # ledger

    def begin_run(self) -> int:
        with self.transaction() as connection:
            connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'run'")
            (run,) = connection.execute("SELECT value FROM setting WHERE name = 'run'").fetchone()
        return int(run)

    def finish_files(self, stamps: Mapping[str, tuple[int, int, int, int]]) -> None:
        """Record files as read to their end, so that the next run can pass them by."""
        with self.transaction() as connection:
            connection.executemany(
                "INSERT INTO file (path, size, mtime_ns, inode, read_ns) VALUES (?1, ?2, ?3, ?4, ?5)"
                " ON CONFLICT (path) DO UPDATE SET size = ?2, mtime_ns = ?3, inode = ?4, read_ns = ?5",
                ((path, *stamp) for path, stamp in stamps.items()),
            )

    def mark_gone(self, files: Iterable[str], run: int) -> None:
        """Say of everything in these files that this run did not meet that it is there no more."""
        stale = "file_id = (SELECT id FROM file WHERE path = ?) AND run < ?"
        pairs = [(file, run) for file in files]
        with self.transaction() as connection:
            connection.executemany(f"DELETE FROM ledger WHERE {stale} AND state IN ('skipped', 'failed')", pairs)
            connection.executemany(f"UPDATE ledger SET state = 'gone' WHERE {stale}", pairs)

    def mark_unchanged(self, files: Iterable[str]) -> None:
        """Say of files that were not read again, and of all their records, that they are unchanged."""
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE ledger SET state = 'unchanged' WHERE file_id = (SELECT id FROM file WHERE path = ?)"
                " AND state IN ('indexed', 'updated')",
                ((file,) for file in files),
            )

    def finish_run(self) -> None:
        with self.transaction() as connection:
            connection.execute(
                "UPDATE setting SET value = (SELECT value FROM setting WHERE name = 'run') WHERE name = 'finished_run'"
            )

    # segments

    def add_segment(
        self, segment: SegmentFile, passages: np.ndarray, documents: np.ndarray, replaces: Sequence[int]
    ) -> None:
        """Put a sealed segment in the place of others; passages removed meanwhile are marked dead."""
        with self.transaction() as connection:
            history = connection.execute("SELECT value FROM setting WHERE name = 'history'").fetchone()[0]
            connection.executemany("DELETE FROM segment WHERE id = ?", ((id_,) for id_ in replaces))
            if segment.count:
                connection.execute(
                    "INSERT INTO segment"
                    " (file, kind, count, size, sha256, stamp, history, last_id, passages, documents)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(
                            segment.file,
                            segment.kind,
                            segment.count,
                            segment.size,
                            segment.sha256,
                            segment.stamp,
                        ),
                        *(history, int(passages[-1]), passages.astype("<i8").tobytes()),
                        documents.astype("<i8").tobytes(),
                    ),
                )
            # The dead of the replaced segments are gone with them; what died since the rows were read is not.
            connection.execute("DELETE FROM dead")
            for (blob,) in connection.execute("SELECT passages FROM segment").fetchall():
                sealed = np.frombuffer(blob, "<i8")
                rows = connection.execute(
                    "SELECT id FROM passage WHERE id BETWEEN ? AND ?", (int(sealed[0]), int(sealed[-1]))
                )
                alive = np.fromiter((row[0] for row in rows), np.int64)
                dead = np.setdiff1d(sealed, alive, assume_unique=True)
                connection.executemany("INSERT INTO dead VALUES (?)", ((id_,) for id_ in dead.tolist()))


def _highest(connection: sqlite3.Connection, table: str) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(row[0]) if row else 0


def _write_row(connection: sqlite3.Connection, item: EmbeddedDocument, document_id: int | None) -> int:
    document = item.document
    row: dict[str, str | bytes | int | None] = {
        "uri": document.uri,
        "title": document.title,
        "path": document.path,
        "format": document.format,
        "modified": document.modified,
        "metadata": json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True),
        "content_hash": item.content_hash,
        "row_hash": item.row_hash,
    }
    if item.spans is not None:
        row["tokens"] = sum(span.tokens for span in item.spans)
    if document_id is None:
        columns = ", ".join(row)
        marks = ", ".join("?" * len(row))
        cursor = connection.execute(f"INSERT INTO document ({columns}) VALUES ({marks})", list(row.values()))
        assert cursor.lastrowid is not None
        document_id = cursor.lastrowid
    else:
        assignments = ", ".join(f"{column} = ?" for column in row)
        connection.execute(f"UPDATE document SET {assignments} WHERE id = ?", [*row.values(), document_id])
        fields.erase(connection, [document_id])
    sections = json.dumps([(section.start, section.heading, section.page) for section in document.sections])
    connection.execute("INSERT OR REPLACE INTO document_text VALUES (?, ?, ?)", (document_id, document.text, sections))
    fields.write(connection, [(document_id, fields.scalars(document.uri, document.metadata))])
    return document_id


def _write_passages(
    connection: sqlite3.Connection,
    document_id: int,
    first_id: int,
    document: Document,
    spans: Sequence[Span],
    blobs: Sequence[bytes],
) -> None:
    numbered = document.path is not None and document.format not in EXTRACTED
    line, reached = 1, 0
    rows = []
    for id_, (span, blob) in enumerate(zip(spans, blobs, strict=True), first_id):
        line += document.text.count("\n", reached, span.start) if span.start >= reached else 0
        if span.start < reached:  # an overlap goes back a little
            line -= document.text.count("\n", span.start, reached)
        reached = span.start
        passage = document.text[span.start : span.end]
        rows.append(
            (
                *(id_, document_id, span.start, span.end, line if numbered else None),
                *(span.heading, span.page, checksum(passage, blob), blob),
            )
        )
    connection.executemany("INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _erase_passages(connection: sqlite3.Connection, document_id: int) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO dead SELECT id FROM passage WHERE document_id = ?"
        " AND id <= (SELECT coalesce(max(last_id), 0) FROM segment)",
        (document_id,),
    )
    connection.execute("DELETE FROM passage WHERE document_id = ?", (document_id,))


def _write_ledger(connection: sqlite3.Connection, rows: Sequence[LedgerRow], run: int) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO file (path, size, mtime_ns, inode, read_ns) VALUES (?, -1, 0, 0, 0)",
        ((file,) for file in {row.file for row in rows}),
    )
    same = "uri = ? AND file_id = (SELECT id FROM file WHERE path = ?) AND run < ?"
    connection.executemany(f"DELETE FROM ledger WHERE {same}", ((row.uri, row.file, run) for row in rows))
    connection.executemany(
        "INSERT INTO ledger (file_id, uri, state, reason, run) SELECT id, ?, ?, ?, ? FROM file WHERE path = ?",
        ((row.uri, row.state, row.reason, run, row.file) for row in rows),
    )


def _forget_stamps(connection: sqlite3.Connection, uris: Sequence[str]) -> None:
    """Documents changed behind their files' back: the next run reads those files again."""
    connection.executemany(
        "UPDATE file SET size = -1 WHERE id IN (SELECT file_id FROM ledger WHERE uri = ?)",
        ((uri,) for uri in uris),
    )
