"""The catalog as its one writer sees it: every statement that changes it, each inside one transaction.

A document, vector or file exists if a row of the catalog names it. Readers use views.py.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from indexer.columns import searched_columns
from indexer.ledger import HELD, STORED_LEFT_OUT, Code, notes_stored
from indexer.records import RECORD_FORMATS, UNREAD, Changes, Stamp
from indexer.settings import Settings
from indexer.stores.commits import changed_settings, changes_of
from indexer.stores.fields.flatten import scalars, with_dates
from indexer.stores.local.catalog import filter_sql, moves
from indexer.stores.local.catalog.connections import damaged, require_format, write_error
from indexer.stores.local.catalog.database import LOCK_TIMEOUT_SECONDS, Database, open_for_writing
from indexer.stores.local.catalog.generation import Generation, GenerationFile, loss, read_generation
from indexer.stores.local.catalog.rows import erase_passages, renew_passages, write_documents, write_passages
from indexer.stores.local.catalog.schema import migrate
from indexer.stores.local.catalog.word_files import WordFiles
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.port import Batch, EmbeddedDocument, LedgerRow, RunOutcome
from indexer.stores.setting_rows import to_rows
from indexer.stores.vectors import require_matching_shapes

_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "wal_autocheckpoint = 8000")


class Catalog:
    """The writing connection. Use under the writer lock, from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._notes: list[str] = []
        self._db = db = open_for_writing(path)
        self._file: GenerationFile | None = None
        with self._file_errors():
            self._file = GenerationFile(path.parent)
        try:
            with self._errors():
                for name in _PRAGMAS:
                    db.execute(f"PRAGMA {name}").fetchall()
                require_format(db.conn, path.parent)
                # Before the migrations, whose commits would hide the loss of as many.
                self._record_loss()
                migrate(db)
                generation = self._generation()
                if generation is not None and generation != read_generation(path.parent):
                    self._acknowledge(generation)
                if (lost := _settings(db).get("lost")) is not None:
                    self._notes.append(loss(path.parent, int(lost)))
                self._follow()
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
        self._db.close()
        if self._file is not None:
            self._file.close()

    def _checkpoint(self) -> None:
        # Most questions end within this time. Longer reads are not waited for, and the log stays for the next time.
        self._db.execute("PRAGMA busy_timeout = 100").fetchall()
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {1000 * LOCK_TIMEOUT_SECONDS}").fetchall()

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
        rows = dict(self._db.execute("SELECT name, value FROM setting WHERE name IN ('generation', 'history')"))
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
            with self.transaction() as db:
                before = int(_settings(db).get("lost", 0))
                _set(db, {"lost": str(before + lost), "history": secrets.token_hex(8)})

    def _follow(self) -> None:
        """Record the new addresses of files that have moved with the index."""
        home = moves.recorded_home(self._db.conn)
        move = moves.find_move(self._db.conn, self._path.parent, home)
        if move is not None and not moves.strangers(self._db.conn, move):
            with self.transaction() as db:
                moves.carry(db.conn, move)
                _set(db, {"home": moves.home_of(self._path.parent)})

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Run the block as one commit. It begins with a write, so that nothing it reads afterwards can change."""
        with self._errors(), self._db.atomic() as db:
            db.execute("UPDATE setting SET value = value + 1 WHERE name = 'generation'")
            failpoint("commit.begun")
            yield db
            generation = self._generation()
            failpoint("commit.written")
        failpoint("commit.done")
        self._acknowledge(generation)
        failpoint("commit.acknowledged")

    def initialise(self, settings: Settings) -> None:
        with self._errors(), self._db.atomic() as db:
            counts = dict.fromkeys(("generation", "documents", "run", "finished_run"), "0")
            _set(db, {**to_rows(settings), **counts, "history": secrets.token_hex(8)})
        self._acknowledge(self._generation())

    def set(self, name: str, value: str) -> None:
        with self.transaction() as db:
            _set(db, {name: value})

    def change(self, update: Callable[[Settings], Settings]) -> Settings:
        """Write the settings that differ. Without a difference nothing is committed."""
        with self._errors():
            rows = _settings(self._db)
        changes = changed_settings(self._path, rows, update)
        if not (changes.written or changes.deleted):
            return changes.settings
        with self.transaction() as db:
            _set(db, changes.written)
            for name in changes.deleted:
                db.table("setting").delete_where("name = ?", [name])
        return changes.settings

    def vacuum(self) -> None:
        with self._errors():
            self._db.vacuum()
            self._checkpoint()

    # documents

    def put(self, batch: Batch) -> Changes:
        documents = batch.documents
        with self.transaction() as db:
            (dimensions,) = db.execute("SELECT value FROM setting WHERE name = 'dimensions'").fetchone()
            require_matching_shapes(documents, int(dimensions))
            _remove_documents(db, batch.removed)
            db.conn.executemany("DELETE FROM ledger WHERE uri = ?", ((uri,) for uri in batch.removed))
            uris = json.dumps([item.document.uri for item in documents])
            find = "SELECT uri, id FROM document WHERE uri IN (SELECT value FROM json_each(?))"
            known: dict[str, int] = dict(db.execute(find, (uris,)))
            changes = changes_of(documents, known)
            for uri in changes.replaced:
                erase_passages(db.conn, known[uri])
            if _searches_columns(db, documents):
                _renew_columns(db, documents, known)
            filter_sql.erase(db.conn, known.values())
            ids = write_documents(db.conn, documents, known)
            write_passages(db.conn, documents, ids)
            _add_to_count(db, len(changes.added))
            _write_ledger(db, batch.rows, batch.run)
            if not batch.rows:
                _forget_stamps(db, [item.document.uri for item in documents])
            _finish_files(db, batch.finished)
        return changes

    def remove(self, uris: Iterable[str]) -> int:
        with self.transaction() as db:
            given = list(dict.fromkeys(uris))
            removed = _remove_documents(db, given)
            db.conn.executemany(
                "DELETE FROM ledger WHERE uri = ? AND reason LIKE ?", ((uri, STORED_LEFT_OUT) for uri in given)
            )
        return removed

    def move(self, old: str, new: str) -> int:
        with self.transaction() as db:
            return moves.move(db.conn, old, new)

    # ledger

    def begin_run(self) -> int:
        with self.transaction() as db:
            rows = _settings(db)
            run = int(rows["run"]) + 1
            moved = not moves.is_at(self._path.parent, rows.get("home", ""))
            _set(db, {"run": str(run), **({"home": moves.home_of(self._path.parent)} if moved else {})})
        return run

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        """Commit everything that the end of a run decides; return how many files are to be read again."""
        with self.transaction() as db:
            _finish_files(db, outcome.finished)
            _mark_gone(db, outcome.read, run)
            reread = _reread_duplicates(db)
            _mark_unchanged(db, outcome.unchanged)
            _set(db, {"finished_run": str(run)})
        return reread

    def mark_damaged(self, uris: Iterable[str]) -> None:
        """Make the next run over the source of these documents embed them again, even if the source has not changed."""
        with self.transaction() as db:
            for uri in uris:
                db.execute("UPDATE document SET content_hash = zeroblob(16) WHERE uri = ?", (uri,))
                files = "UPDATE file SET size = -1 WHERE id IN (SELECT file_id FROM ledger WHERE uri = ?)"
                db.execute(files, (uri,))

    def rewrite_fields(self, uris: Iterable[str]) -> None:
        """Write the filter fields of these documents again from their metadata."""
        with self.transaction() as db:
            for uri in uris:
                (row,) = db.table("document").rows_where("uri = ?", [uri], select="id, metadata, modified")
                filter_sql.erase(db.conn, [row["id"]])
                rows = with_dates(scalars(uri, json.loads(row["metadata"])), row["modified"])
                filter_sql.write(db.conn, [(row["id"], rows)])

    def forget_loss(self) -> None:
        """Stop reporting missing commits."""
        with self.transaction() as db:
            db.table("setting").delete_where("name = 'lost'")

    def recount(self) -> None:
        with self.transaction() as db:
            _set(db, {"documents": str(db.table("document").count)})

    # segments

    def add_segment(self, segment: SegmentFile, first_id: int, last_id: int) -> None:
        """Record a sealed segment, which holds every passage of its range, and forget the segments it replaces."""
        ids = {"first_id": first_id, "last_id": last_id}
        inside = "BETWEEN :first_id AND :last_id"
        with self.transaction() as db:
            db.table("segment").delete_where(f"first_id {inside}", ids)
            db.table("dead").delete_where(f"passage_id {inside}", ids)
            if segment.count:
                db.table("segment").insert(asdict(segment) | ids)
            failpoint("seal.recorded")

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Record new stamps of segments after their files were compared with their checksums.

        Args:
            stamps: by the segment's file name.
        """
        with self.transaction() as db:
            for file, stamp in stamps.items():
                db.execute("UPDATE segment SET stamp = ? WHERE file = ?", (stamp, file))

    def add_words(self, recorded: WordFiles) -> None:
        with self.transaction() as db:
            db.table("word_index").delete_where()
            db.table("dead_word").delete_where()
            db.table("word_index").insert(recorded._asdict())
            failpoint("words.recorded")

    def restamp_words(self, stamp: str) -> None:
        with self.transaction() as db:
            db.execute("UPDATE word_index SET stamp = ?", (stamp,))


def _settings(db: Database) -> dict[str, str]:
    return {row["name"]: row["value"] for row in db.table("setting").rows}


def _set(db: Database, settings: Mapping[str, str]) -> None:
    rows = ({"name": name, "value": value} for name, value in settings.items())
    db.table("setting").upsert_all(rows, pk="name")


def _remove_documents(db: Database, uris: Iterable[str]) -> int:
    """Remove documents and their rows of the ledger; return how many of the uris were documents."""
    removed = [(uri, row[0]) for uri in uris for row in db.execute("SELECT id FROM document WHERE uri = ?", (uri,))]
    _forget_stamps(db, [uri for uri, _ in removed])
    for uri, document_id in removed:
        erase_passages(db.conn, document_id)
        filter_sql.erase(db.conn, [document_id])
        db.execute("DELETE FROM document WHERE id = ?", (document_id,))
        db.execute("DELETE FROM ledger WHERE uri = ?", (uri,))
    _add_to_count(db, -len(removed))
    return len(removed)


def _add_to_count(db: Database, more: int) -> None:
    """Add to the stored number of documents.

    It is stored because counting a million rows after every commit would cost readers a tenth of a second.
    """
    db.execute("UPDATE setting SET value = value + ? WHERE name = 'documents'", (more,))


def _write_ledger(db: Database, rows: Sequence[LedgerRow], run: int) -> None:
    files = list(dict.fromkeys(row.file for row in rows))
    stamp = asdict(UNREAD)
    db.table("file").insert_all(({"path": file, **stamp} for file in files), ignore=True)
    find = "SELECT path, id FROM file WHERE path = ?"
    ids = dict(db.execute(find, (file,)).fetchone() for file in files)
    # The plus keeps SQLite from using the index of files: a file may have 100,000 rows, and each would read all of
    # them.
    same = "uri = ? AND +file_id = ? AND run < ?"
    # Each once: a table may have one id in all of its rows, and a deletion reads all rows of the ledger with this id.
    db.conn.executemany(f"DELETE FROM ledger WHERE {same}", {(row.uri, ids[row.file], run) for row in rows})
    db.table("ledger").insert_all(
        {
            **{"file_id": ids[row.file], "uri": row.uri, "state": row.state, "reason": row.reason.stored()},
            **{"run": run, "reader": row.reader, "notes": notes_stored(row.notes)},
        }
        for row in rows
    )
    # A file that had the document before and no longer has it: the document is this file's now.
    taken = ((row.uri, run) for row in rows if row.state in HELD)
    db.conn.executemany("DELETE FROM ledger WHERE uri = ? AND state = 'gone' AND run < ?", taken)


def _forget_stamps(db: Database, uris: Sequence[str]) -> None:
    """Make the next run read the files that have these documents again, because something else has changed the
    documents."""
    db.conn.executemany(
        "UPDATE file SET size = -1 WHERE id IN (SELECT file_id FROM ledger WHERE uri = ? AND state <> 'gone')",
        ((uri,) for uri in uris),
    )


def _finish_files(db: Database, stamps: Mapping[str, Stamp]) -> None:
    """Record files as read to their end, so that the next run can skip them unread."""
    db.table("file").upsert_all(({"path": path, **asdict(stamp)} for path, stamp in stamps.items()), pk="path")


def _mark_gone(db: Database, files: Iterable[str], run: int) -> None:
    """Mark everything that this run did not meet in these files as gone."""
    stale = "file_id = (SELECT id FROM file WHERE path = ?) AND run < ?"
    pairs = [(file, run) for file in files]
    without = "state IN ('skipped', 'failed') AND NOT EXISTS (SELECT 1 FROM document d WHERE d.uri = ledger.uri)"
    db.conn.executemany(f"DELETE FROM ledger WHERE {stale} AND {without}", pairs)
    db.conn.executemany(f"UPDATE ledger SET state = 'gone' WHERE {stale}", pairs)


def _searches_columns(db: Database, documents: Sequence[EmbeddedDocument]) -> bool:
    """Return `Settings.columns_searched`, and turn it on for the first records."""
    if db.execute("SELECT 1 FROM setting WHERE name = 'columns'").fetchone() is not None:
        return True
    if not any(item.document.format in RECORD_FORMATS for item in documents):
        return False
    formats = "SELECT 1 FROM document WHERE format IN (SELECT value FROM json_each(?)) LIMIT 1"
    is_first = db.execute(formats, (json.dumps(sorted(RECORD_FORMATS)),)).fetchone() is None
    if is_first:
        _set(db, {"columns": "1"})
    return is_first


def _renew_columns(db: Database, documents: Sequence[EmbeddedDocument], known: Mapping[str, int]) -> None:
    """Give the passages of a document new ids if its metadata alone is written and changes the words it is found by."""
    for document in (item.document for item in documents if item.spans is None):
        id_ = known[document.uri]
        stored = db.execute("SELECT format, metadata FROM document WHERE id = ?", (id_,)).fetchone()
        if searched_columns(*stored) != searched_columns(document.format, document.metadata):
            renew_passages(db.conn, id_)


def _mark_unchanged(db: Database, files: Iterable[str]) -> None:
    """Mark files that were not read again, and all their records, as unchanged."""
    db.conn.executemany(
        "UPDATE ledger SET state = 'unchanged' WHERE file_id = (SELECT id FROM file WHERE path = ?)"
        " AND state IN ('indexed', 'updated')",
        ((file,) for file in files),
    )


def _reread_duplicates(db: Database) -> int:
    """Make the next run read files again that hold a uri which is gone from another file: the stored document may come
    from the other file.

    The gone row stays until then, because the document may have to be removed too.

    Returns:
        How many files.
    """
    others = (
        # Not a join: a table may have one id in all of its rows.
        "SELECT DISTINCT file_id FROM ledger WHERE uri IN (SELECT uri FROM ledger WHERE state = 'gone')"
        " AND (state IN ('indexed', 'updated', 'unchanged') OR (state = 'skipped' AND reason = ?))"
    )
    files = db.execute(others, (Code.DUPLICATE().stored(),)).fetchall()
    db.conn.executemany("UPDATE file SET size = -1 WHERE id = ?", files)
    return len(files)
