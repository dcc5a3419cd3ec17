"""The catalog as its one writer sees it: every statement that changes it, each inside one transaction.

A document, vector or file exists if a row of the catalog names it. Readers use views.py.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path

from indexer.ledger import STORED_LEFT_OUT, Code, notes_stored
from indexer.records import Changes, Stamp
from indexer.settings import Settings
from indexer.stores.commits import changed_settings, changes_of
from indexer.stores.fields.flatten import scalars, with_dates
from indexer.stores.local.catalog import filter_sql
from indexer.stores.local.catalog.connections import damaged, require_format, write_error
from indexer.stores.local.catalog.generation import Generation, GenerationFile, loss, read_generation
from indexer.stores.local.catalog.rows import erase_passages, write_documents, write_passages
from indexer.stores.local.catalog.schema import atomic, migrate
from indexer.stores.local.catalog.word_files import WordFiles
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.port import Batch, LedgerRow, RunOutcome
from indexer.stores.setting_rows import to_rows
from indexer.stores.vectors import require_matching_shapes

_LOCK_TIMEOUT_SECONDS = 60
"""Maximum seconds that a write waits for SQLite's own lock, which others hold only briefly."""

_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "wal_autocheckpoint = 8000")


class Catalog:
    """The writing connection. Use under the writer lock, from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._notes: list[str] = []
        self._connection = connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=_LOCK_TIMEOUT_SECONDS
        )
        self._file: GenerationFile | None = None
        with self._file_errors():
            self._file = GenerationFile(path.parent)
        try:
            with self._errors():
                for name in _PRAGMAS:
                    connection.execute(f"PRAGMA {name}").fetchall()
                require_format(connection, path.parent)
                # Before the migrations, whose commits would hide the loss of as many.
                self._record_loss()
                migrate(connection)
                generation = self._generation()
                if generation is not None and generation != read_generation(path.parent):
                    self._acknowledge(generation)
                self._note_loss()
        except BaseException:
            self._release()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts that the caller should know: lost commits, and a file that could not be written."""
        return tuple(self._notes)

    def close(self) -> None:
        """Move the write-ahead log into the catalog, so that a read-only folder can be searched."""
        # On a full disk the log stays: what was committed is safe in it, and the next writer tries again.
        with suppress(sqlite3.OperationalError):
            self._checkpoint()
        self._release()

    def _release(self) -> None:
        self._connection.close()
        if self._file is not None:
            self._file.close()

    def _checkpoint(self) -> None:
        # Most questions end within this time. Longer reads are not waited for, and the log stays for the next time.
        self._connection.execute("PRAGMA busy_timeout = 100").fetchall()
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {1000 * _LOCK_TIMEOUT_SECONDS}").fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise write_error(self._path, error) from error
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            raise damaged(self._path, f"is damaged ({error})") from error

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        """Note an error of the file `generation`: the catalog is complete without it."""
        try:
            yield
        except OSError as error:
            note = f"{self._path.parent}/generation: cannot be written ({error.strerror}); a damaged log goes unnoticed"
            if note not in self._notes:
                self._notes.append(note)

    def _generation(self) -> Generation | None:
        """Return the commit that this connection sees; None if there is no commit yet, or if its row is damaged."""
        rows = dict(self._connection.execute("SELECT name, value FROM setting WHERE name IN ('generation', 'history')"))
        try:
            return Generation(str(rows["history"]), int(rows["generation"]))
        except (KeyError, TypeError, ValueError):
            return None

    def _acknowledge(self, generation: Generation | None) -> None:
        """Record a commit that is durable, so that its loss would be noticed."""
        if generation is not None and self._file is not None:
            with self._file_errors():
                self._file.write(generation)

    def _record_loss(self) -> None:
        """Record commits that were acknowledged and are missing; readers report them until a repair confirms it.

        The numbers and ids of the lost commits will be used again, so from now on the catalog has another history.
        """
        acknowledged = read_generation(self._path.parent)
        present = None if acknowledged is None else self._generation()
        if acknowledged is None or present is None or present.history != acknowledged.history:
            return
        if (lost := acknowledged.number - present.number) > 0:
            with self.transaction() as connection:
                connection.execute("INSERT OR IGNORE INTO setting VALUES ('lost', '0')")
                connection.execute("UPDATE setting SET value = value + ? WHERE name = 'lost'", (lost,))
                connection.execute("UPDATE setting SET value = ? WHERE name = 'history'", (secrets.token_hex(8),))

    def _note_loss(self) -> None:
        row = self._connection.execute("SELECT value FROM setting WHERE name = 'lost'").fetchone()
        if row is not None:
            self._notes.append(loss(self._path.parent, int(row[0])))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one commit. It begins with a write, so that nothing it reads afterwards can change."""
        with self._errors(), atomic(self._connection):
            self._connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
            failpoint("commit.begun")
            yield self._connection
            generation = self._generation()
            failpoint("commit.written")
        failpoint("commit.done")
        self._acknowledge(generation)
        failpoint("commit.acknowledged")

    def initialise(self, settings: Settings) -> None:
        with self._errors(), atomic(self._connection):
            rows = {
                **to_rows(settings),
                "generation": "0",
                "documents": "0",
                "run": "0",
                "finished_run": "0",
                "history": secrets.token_hex(8),
            }
            self._connection.executemany("INSERT INTO setting VALUES (?, ?)", rows.items())
        self._acknowledge(self._generation())

    def set(self, name: str, value: str) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    def change(self, update: Callable[[Settings], Settings]) -> Settings:
        """Write the settings that differ. Without a difference nothing is committed."""
        with self._errors():
            rows = dict(self._connection.execute("SELECT name, value FROM setting"))
        changes = changed_settings(self._path, rows, update)
        if not (changes.written or changes.deleted):
            return changes.settings
        with self.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", changes.written.items())
            connection.executemany("DELETE FROM setting WHERE name = ?", ((name,) for name in changes.deleted))
        return changes.settings

    def vacuum(self) -> None:
        with self._errors():
            self._connection.execute("VACUUM")
            self._checkpoint()

    # documents

    def put(self, batch: Batch) -> Changes:
        documents = batch.documents
        with self.transaction() as connection:
            (dimensions,) = connection.execute("SELECT value FROM setting WHERE name = 'dimensions'").fetchone()
            require_matching_shapes(documents, int(dimensions))
            _remove_documents(connection, batch.removed)
            connection.executemany("DELETE FROM ledger WHERE uri = ?", ((uri,) for uri in batch.removed))
            uris = json.dumps([item.document.uri for item in documents])
            find = "SELECT uri, id FROM document WHERE uri IN (SELECT value FROM json_each(?))"
            known: dict[str, int] = dict(connection.execute(find, (uris,)))
            changes = changes_of(documents, known)
            for uri in changes.replaced:
                erase_passages(connection, known[uri])
            filter_sql.erase(connection, known.values())
            ids = write_documents(connection, documents, known)
            write_passages(connection, documents, ids)
            _add_to_count(connection, len(changes.added))
            _write_ledger(connection, batch.rows, batch.run)
            if not batch.rows:
                _forget_stamps(connection, [item.document.uri for item in documents])
            _finish_files(connection, batch.finished)
        return changes

    def remove(self, uris: Iterable[str]) -> int:
        with self.transaction() as connection:
            given = list(dict.fromkeys(uris))
            removed = _remove_documents(connection, given)
            connection.executemany(
                "DELETE FROM ledger WHERE uri = ? AND reason LIKE ?", ((uri, STORED_LEFT_OUT) for uri in given)
            )
        return removed

    # ledger

    def begin_run(self) -> int:
        with self.transaction() as connection:
            connection.execute("UPDATE setting SET value = value + 1 WHERE name = 'run'")
            (run,) = connection.execute("SELECT value FROM setting WHERE name = 'run'").fetchone()
        return int(run)

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        """Commit everything that the end of a run decides; return how many files are to be read again."""
        with self.transaction() as connection:
            _finish_files(connection, outcome.finished)
            _mark_gone(connection, outcome.read, run)
            reread = _reread_duplicates(connection)
            _mark_unchanged(connection, outcome.unchanged)
            connection.execute("UPDATE setting SET value = ? WHERE name = 'finished_run'", (str(run),))
        return reread

    def mark_damaged(self, uris: Iterable[str]) -> None:
        """Make the next run over the source of these documents embed them again, even if the source has not changed."""
        with self.transaction() as connection:
            for uri in uris:
                connection.execute("UPDATE document SET content_hash = zeroblob(16) WHERE uri = ?", (uri,))
                files = "UPDATE file SET size = -1 WHERE id IN (SELECT file_id FROM ledger WHERE uri = ?)"
                connection.execute(files, (uri,))

    def rewrite_fields(self, uris: Iterable[str]) -> None:
        """Write the filter fields of these documents again from their metadata."""
        with self.transaction() as connection:
            for uri in uris:
                query = "SELECT id, metadata, modified FROM document WHERE uri = ?"
                document_id, metadata, modified = connection.execute(query, (uri,)).fetchone()
                filter_sql.erase(connection, [document_id])
                rows = with_dates(scalars(uri, json.loads(metadata)), modified)
                filter_sql.write(connection, [(document_id, rows)])

    def forget_loss(self) -> None:
        """Stop reporting missing commits."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM setting WHERE name = 'lost'")

    def recount(self) -> None:
        with self.transaction() as connection:
            connection.execute("UPDATE setting SET value = (SELECT count(*) FROM document) WHERE name = 'documents'")

    # segments

    def add_segment(self, segment: SegmentFile, first_id: int, last_id: int) -> None:
        """Record a sealed segment, which holds every passage of its range, and forget the segments it replaces."""
        inside = "BETWEEN ? AND ?"
        with self.transaction() as connection:
            connection.execute(f"DELETE FROM segment WHERE first_id {inside}", (first_id, last_id))
            connection.execute(f"DELETE FROM dead WHERE passage_id {inside}", (first_id, last_id))
            if segment.count:
                connection.execute(
                    "INSERT INTO segment (file, kind, count, size, sha256, stamp, parameters, first_id, last_id)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*astuple(segment), first_id, last_id),
                )
            failpoint("seal.recorded")

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Record new stamps of segments after their files were compared with their checksums.

        Args:
            stamps: by the segment's file name.
        """
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE segment SET stamp = ? WHERE file = ?", ((stamp, file) for file, stamp in stamps.items())
            )

    def add_words(self, recorded: WordFiles) -> None:
        with self.transaction() as connection:
            connection.execute("DELETE FROM word_index")
            connection.execute("DELETE FROM dead_word")
            connection.execute("INSERT INTO word_index VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(recorded))
            failpoint("words.recorded")

    def restamp_words(self, stamp: str) -> None:
        with self.transaction() as connection:
            connection.execute("UPDATE word_index SET stamp = ?", (stamp,))


def _remove_documents(connection: sqlite3.Connection, uris: Iterable[str]) -> int:
    """Remove documents and their rows of the ledger; return how many of the uris were documents."""
    removed = [
        (uri, row[0]) for uri in uris for row in connection.execute("SELECT id FROM document WHERE uri = ?", (uri,))
    ]
    _forget_stamps(connection, [uri for uri, _ in removed])
    for uri, document_id in removed:
        erase_passages(connection, document_id)
        filter_sql.erase(connection, [document_id])
        connection.execute("DELETE FROM document WHERE id = ?", (document_id,))
        connection.execute("DELETE FROM ledger WHERE uri = ?", (uri,))
    _add_to_count(connection, -len(removed))
    return len(removed)


def _add_to_count(connection: sqlite3.Connection, more: int) -> None:
    """Add to the stored number of documents.

    It is stored because counting a million rows after every commit would cost readers a tenth of a second.
    """
    connection.execute("UPDATE setting SET value = value + ? WHERE name = 'documents'", (more,))


def _write_ledger(connection: sqlite3.Connection, rows: Sequence[LedgerRow], run: int) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO file (path, size, mtime_ns, inode, read_ns) VALUES (?, -1, 0, 0, 0)",
        ((file,) for file in {row.file for row in rows}),
    )
    # The plus keeps SQLite from using the index of files: a file may have 100,000 rows, and each would read all of
    # them.
    same = "uri = ? AND +file_id = (SELECT id FROM file WHERE path = ?) AND run < ?"
    connection.executemany(f"DELETE FROM ledger WHERE {same}", ((row.uri, row.file, run) for row in rows))
    connection.executemany(
        "INSERT INTO ledger (file_id, uri, state, reason, run, reader, notes)"
        " SELECT id, ?, ?, ?, ?, ?, ? FROM file WHERE path = ?",
        ((row.uri, row.state, row.reason.stored(), run, row.reader, notes_stored(row.notes), row.file) for row in rows),
    )
    # A file that had the document before and no longer has it: the document is this file's now.
    taken = ((row.uri, run) for row in rows if row.state in ("indexed", "updated", "unchanged"))
    connection.executemany("DELETE FROM ledger WHERE uri = ? AND state = 'gone' AND run < ?", taken)


def _forget_stamps(connection: sqlite3.Connection, uris: Sequence[str]) -> None:
    """Make the next run read the files that have these documents again, because something else has changed the
    documents."""
    connection.executemany(
        "UPDATE file SET size = -1 WHERE id IN (SELECT file_id FROM ledger WHERE uri = ? AND state <> 'gone')",
        ((uri,) for uri in uris),
    )


def _finish_files(connection: sqlite3.Connection, stamps: Mapping[str, Stamp]) -> None:
    """Record files as read to their end, so that the next run can skip them unread."""
    connection.executemany(
        "INSERT INTO file (path, size, mtime_ns, inode, read_ns) VALUES (?, ?, ?, ?, ?) ON CONFLICT (path)"
        " DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode,"
        " read_ns = excluded.read_ns",
        ((path, *astuple(stamp)) for path, stamp in stamps.items()),
    )


def _mark_gone(connection: sqlite3.Connection, files: Iterable[str], run: int) -> None:
    """Mark everything that this run did not meet in these files as gone."""
    stale = "file_id = (SELECT id FROM file WHERE path = ?) AND run < ?"
    pairs = [(file, run) for file in files]
    without = "state IN ('skipped', 'failed') AND NOT EXISTS (SELECT 1 FROM document d WHERE d.uri = ledger.uri)"
    connection.executemany(f"DELETE FROM ledger WHERE {stale} AND {without}", pairs)
    connection.executemany(f"UPDATE ledger SET state = 'gone' WHERE {stale}", pairs)


def _mark_unchanged(connection: sqlite3.Connection, files: Iterable[str]) -> None:
    """Mark files that were not read again, and all their records, as unchanged."""
    connection.executemany(
        "UPDATE ledger SET state = 'unchanged' WHERE file_id = (SELECT id FROM file WHERE path = ?)"
        " AND state IN ('indexed', 'updated')",
        ((file,) for file in files),
    )


def _reread_duplicates(connection: sqlite3.Connection) -> int:
    """Make the next run read files again that hold a uri which is gone from another file: the stored document may come
    from the other file.

    The gone row stays until then, because the document may have to be removed too.

    Returns:
        How many files.
    """
    others = (
        "SELECT DISTINCT l.file_id FROM ledger l JOIN ledger g ON g.uri = l.uri WHERE g.state = 'gone' AND"
        " (l.state IN ('indexed', 'updated', 'unchanged') OR (l.state = 'skipped' AND l.reason = ?))"
    )
    files = connection.execute(others, (Code.DUPLICATE().stored(),)).fetchall()
    connection.executemany("UPDATE file SET size = -1 WHERE id = ?", files)
    return len(files)
