"""A commit under way: the statements that one change of an index takes, and what it adds to the counts."""

from __future__ import annotations

import json
import secrets
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from psycopg import errors, sql

from indexer.errors import BadInput, Message, NotAnIndex, NotPermitted
from indexer.ledger import STORED_LEFT_OUT, Code, notes_stored
from indexer.records import RECORD_FORMATS, Changes, Stamp
from indexer.settings import Settings
from indexer.stores.commits import changed_settings, changes_of, passage_rows, settings_of
from indexer.stores.fields.flatten import scalars, with_dates
from indexer.stores.move import Move
from indexer.stores.port import Batch, EmbeddedDocument, LedgerRow, RunOutcome
from indexer.stores.reading.document_rows import MEMBERS, member_values
from indexer.stores.vectors import require_matching_shapes
from likewise.postgres import schema
from likewise.postgres.address import with_role
from likewise.postgres.citus import MARKS, STUCK_SECONDS, unfinished_commit
from likewise.postgres.connections import DeadlineConnection
from likewise.postgres.filter_sql import erase_fields, write_fields
from likewise.postgres.vectors import to_binary
from likewise.postgres.views import Views, read_row

_DOCUMENT_LOCKS = 1024
"""Number of locks that the documents of a distributed index share. A server's table of locks holds about 6,400 of
them, in its default settings."""


class Commit:
    """A transaction under way. `begin` opens it, and `finish` counts it."""

    def __init__(self, connection: DeadlineConnection, views: Views, tables: str) -> None:
        self._connection, self._views, self._tables = connection, views, tables
        self._changed: set[int] = set()
        self._distributed = views.is_distributed(connection, tables)
        self._for_update = "" if self._distributed else " FOR UPDATE"
        self._added = {"documents": 0, "passages": 0, "tokens": 0}
        self._sets: dict[str, Any] = {}
        self._counts = False
        self.without_effect = False

    @classmethod
    def begin(cls, connection: DeadlineConnection, views: Views, tables: str) -> Commit:
        row = read_row(connection, views.address)
        schema.lock_shared(connection, row.tables)
        # The index was replaced while this writer waited, or while the vectors to be written were made.
        if read_row(connection, views.address).tables != row.tables or row.tables != (tables or row.tables):
            raise NotAnIndex(f"{views.address.shown}: was replaced by another index; run it again")
        schema.require_format(row, views.address)  # the snapshots that come before a commit check the mark
        commit = cls(connection, views, row.tables)
        if commit._distributed:
            commit._wait_until_whole(row.generation)
        if row.format_version < schema.FORMAT_VERSION:
            commit._migrate(row.format_version)
        return commit

    def _wait_until_whole(self, generation: int) -> None:
        """Wait until every node has the commit of this number, after a crash of one until Citus has recovered it."""
        end = time.monotonic() + STUCK_SECONDS
        while any(mark < generation for (mark,) in self._run(MARKS)):
            if time.monotonic() > end:
                raise unfinished_commit(self._views.address)
            time.sleep(schema.POLL_SECONDS)

    def _lock_documents(self, uris: Iterable[str]) -> None:
        """Keep other writers from these documents, where the server cannot: a uri is not unique over several nodes."""
        if self._distributed:
            slots = sorted({int.from_bytes(schema.key_of(uri)[:8], "big") % _DOCUMENT_LOCKS for uri in uris})
            lock = "SELECT pg_advisory_xact_lock(hashtext(%s), slot) FROM unnest(%s::integer[]) AS slot"
            self._run(lock, f"{self._tables}.document", slots)

    def _run(self, text: str, *parameters: Any) -> list[Any]:
        cursor = self._connection.execute(schema.statement(text, self._tables), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def _run_many(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows."""
        with self._connection.cursor() as cursor:
            cursor.executemany(schema.statement(text, self._tables), list(rows))

    def finish(self) -> None:
        """Count the commit. From here to the end of the transaction, other writers wait for this writer."""
        if self.without_effect:
            return
        values = {
            **{name: sql.SQL(f"{name} + {int(more)}") for name, more in self._added.items() if more},
            **self._sets,
        }
        if self._counts:
            for name, counted in (("documents", "count(*)"), ("passages", "sum(passages)"), ("tokens", "sum(tokens)")):
                values[name] = schema.statement(
                    f"(SELECT coalesce({counted}, 0)::bigint FROM {{tables}}.document)", self._tables
                )
        assignments = [sql.SQL("generation = generation + 1")]
        assignments += [sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in values.items()]  # type: ignore[misc]
        counted_row = self._connection.execute(
            sql.SQL("UPDATE likewise.index SET {} WHERE name = {} AND tables = {} RETURNING generation").format(
                sql.SQL(", ").join(assignments), sql.Literal(self._views.address.index), sql.Literal(self._tables)
            )
        ).fetchone()
        if counted_row is None:
            raise NotAnIndex(f"{self._views.address.shown}: was replaced by another index; run it again")
        (generation,) = counted_row
        if self._distributed:
            self._run("UPDATE {tables}.shard SET generation = %s", generation)
        changed = sorted(self._changed)
        self._run(
            "INSERT INTO {tables}.change SELECT * FROM unnest(%s::bigint[], %s::bigint[])"
            " ON CONFLICT (document_id) DO UPDATE SET generation = excluded.generation",
            [-generation, *changed],
            [-1 - secrets.randbits(62), *[generation] * len(changed)],
        )

    def _migrate(self, version: int) -> None:
        """Bring an index of an earlier format to the current one.

        Raises:
            NotPermitted: this role is not the owner of the tables.
        """
        ((owner, may_alter),) = self._run(
            "SELECT pg_get_userbyid(relowner), pg_has_role(relowner, 'USAGE') FROM pg_class"
            " WHERE oid = '{tables}.ledger'::regclass"
        )
        if not may_alter:
            address = self._views.address
            raise NotPermitted(
                Message(
                    f"{address.shown}: has format {version}, and only the role {owner}, which owns its tables, may "
                    f"bring it to format {schema.FORMAT_VERSION}: let {owner} write once",
                    f": likewise compact {shlex.quote(with_role(address, owner))}",
                )
            )
        # The lock on a table makes another writer that also finds this format wait, and then find the rows migrated.
        # It comes before that on the row in the registry, as in every commit.
        for migration in schema.MIGRATIONS[version - 1 :]:
            self._run(migration)
        self._connection.execute(
            "UPDATE likewise.index SET format_version = %s WHERE name = %s",
            (schema.FORMAT_VERSION, self._views.address.index),
        )

    # documents

    def put(self, batch: Batch) -> Changes:
        documents = batch.documents
        if not (documents or batch.rows or batch.finished or batch.removed):
            self.without_effect = True
            return Changes()
        self._lock_documents([*batch.removed, *(item.document.uri for item in documents)])
        self._remove_documents(batch.removed)
        self._run("DELETE FROM {tables}.ledger WHERE key = ANY(%s)", [schema.key_of(uri) for uri in batch.removed])
        settings = settings_of(self._views.address.shown, self._setting_rows())
        require_matching_shapes(documents, settings.dimensions)
        keys = {item.document.uri: schema.key_of(item.document.uri) for item in documents}
        known: dict[str, Any] = {
            uri: rest
            for uri, *rest in self._run(
                "SELECT uri, id, passages, tokens, content_hash FROM {tables}.document WHERE key = ANY(%s)"
                f" ORDER BY key{self._for_update}",
                list(keys.values()),
            )
        }
        if not settings.columns_searched and any(item.document.format in RECORD_FORMATS for item in documents):
            formats = "SELECT 1 FROM {tables}.document WHERE format = ANY(%s) LIMIT 1"
            if not self._run(formats, sorted(RECORD_FORMATS)):  # these are the first records
                self._run("INSERT INTO {tables}.setting VALUES ('columns', '1') ON CONFLICT (name) DO NOTHING")
        whole = [item for item in documents if item.spans is not None]
        changes = changes_of(documents, known)
        flat = {
            item.document.uri: with_dates(scalars(item.document.uri, item.document.metadata), item.document.modified)
            for item in documents
        }
        for uri, fields in flat.items():
            for name, _, value in fields:
                if "\0" in name or (isinstance(value, str) and "\0" in value):
                    raise BadInput(f"{uri}: metadata field {name[:40]!r} holds a NUL, which PostgreSQL cannot hold")
        ids = {uri: known[uri][0] for uri in keys if uri in known}
        if changes.replaced:
            erased = [ids[uri] for uri in changes.replaced]
            self._run("DELETE FROM {tables}.passage WHERE document_id = ANY(%s)", erased)
        if ids:
            erase_fields(self._connection, self._tables, list(ids.values()))
        ids |= self._insert_documents(documents, keys, ids)
        self._insert_passages(whole, ids)
        write_fields(self._connection, self._tables, ((ids[uri], fields) for uri, fields in flat.items()))
        for item in whole:
            _, passages, tokens, _ = known.get(item.document.uri, (0, 0, 0, b""))
            self._added["passages"] += len(item.spans or ()) - passages
            self._added["tokens"] += sum(span.tokens for span in item.spans or ()) - tokens
        self._added["documents"] += len(changes.added)
        self._changed.update(ids.values())
        files = {row.file for row in batch.rows} | set(batch.finished)
        self._lock_files(files)
        self._write_ledger(batch.rows, batch.run)
        if not batch.rows:
            self._forget_stamps(keys.values())
        self._finish_files(batch.finished)
        return changes

    def _insert_documents(
        self, documents: Sequence[EmbeddedDocument], keys: Mapping[str, bytes], ids: Mapping[str, int]
    ) -> dict[str, int]:
        """Write the rows of new and known documents; return the ids of the new ones by uri."""
        fresh = [item.document.uri for item in documents if item.document.uri not in ids]
        numbers = self._run(
            "SELECT nextval(%s::regclass) FROM generate_series(1, %s)", f"{self._tables}.document_id", len(fresh)
        )
        new = dict(zip(fresh, (number for (number,) in numbers), strict=True))
        columns = (*MEMBERS, "row_hash", "text", "raw", "sections")
        rows: dict[bytes, tuple[Any, ...]] = {}
        updates = []
        for item in documents:
            document, spans = item.document, item.spans
            for name in ("uri", *MEMBERS):
                value = getattr(document, name)
                if isinstance(value, str) and "\0" in value:
                    raise BadInput(
                        f"{document.uri[:80]!r}: its {name} holds the character NUL: PostgreSQL cannot hold it"
                    )
            nul = "\0" in document.text
            sections = _json([(section.start, section.heading, section.page) for section in document.sections])
            values = (
                *member_values(document, _json),
                *(item.hashes.row, document.text.replace("\0", " ") if nul else document.text),
                *(document.text.encode() if nul else None, sections),
            )
            if document.uri in ids:
                updates.append((*values, item.hashes.content, *_counts(spans), ids[document.uri]))
            else:
                rows[keys[document.uri]] = (
                    *(new[document.uri], keys[document.uri], document.uri, item.hashes.content, *_counts(spans)),
                    *values,
                )
        names = ", ".join(columns)
        assignments = ", ".join(f"{name} = %s" for name in columns)
        # Where the metadata alone changed, passages and tokens stay as they were counted.
        self._run_many(
            f"UPDATE {{tables}}.document SET {assignments}, content_hash = %s, passages = coalesce(%s, passages),"
            " tokens = coalesce(%s, tokens) WHERE id = %s",
            updates,
        )
        command = f"COPY {{tables}}.document (id, key, uri, content_hash, passages, tokens, {names}) FROM STDIN"
        try:
            with self._connection.cursor() as cursor, cursor.copy(schema.statement(command, self._tables)) as copy:
                for key in sorted(rows):
                    copy.write_row(rows[key])
        except errors.UniqueViolation as error:  # the next attempt knows the document
            raise errors.SerializationFailure("another writer added one of the documents") from error
        self._run_many(
            "INSERT INTO {tables}.origin VALUES (%s, %s, %s) ON CONFLICT (document_id) DO UPDATE SET"
            " content_hash = excluded.content_hash, origin = excluded.origin",
            (
                (ids.get(item.document.uri) or new[item.document.uri], item.hashes.content, item.origin)
                for item in documents
                if item.origin is not None
            ),
        )
        return new

    def _insert_passages(self, documents: Sequence[EmbeddedDocument], ids: Mapping[str, int]) -> None:
        rows = list(passage_rows(documents))
        if not rows:
            return
        binaries = to_binary([row.blob for row in rows])
        numbers = self._run(
            "SELECT nextval(%s::regclass) FROM generate_series(1, %s)", f"{self._tables}.passage_id", len(rows)
        )
        names = "id, document_id, start, stop, line, heading, page, checksum, vector"
        command = schema.statement(f"COPY {{tables}}.passage ({names}) FROM STDIN (FORMAT BINARY)", self._tables)
        with self._connection.cursor() as cursor, cursor.copy(command) as copy:
            # A vector goes as the bytes that it is in binary.
            copy.set_types(["int8", "int8", "int4", "int4", "int4", "text", "int4", "bytea", "bytea"])
            for row, (number,), binary in zip(rows, numbers, binaries, strict=True):
                if "\0" in row.span.heading:
                    raise BadInput(f"{row.uri}: a heading holds the character NUL")
                copy.write_row(
                    (
                        *(number, ids[row.uri], row.span.start, row.span.end, row.line, row.span.heading),
                        *(row.span.page, row.checksum, binary),
                    )
                )

    def remove(self, uris: Sequence[str]) -> int:
        self._lock_documents(uris)
        removed = self._remove_documents(uris)
        keys = [schema.key_of(uri) for uri in uris]
        left_out = self._run(
            "DELETE FROM {tables}.ledger WHERE key = ANY(%s) AND reason LIKE %s RETURNING id", keys, STORED_LEFT_OUT
        )
        self.without_effect = not removed and not left_out
        return removed

    def _remove_documents(self, uris: Sequence[str]) -> int:
        """Remove documents and their rows of the ledger; return how many of the uris were documents."""
        if not uris:
            return 0
        found = self._run(
            "SELECT id, key, passages, tokens FROM {tables}.document WHERE key = ANY(%s)"
            f" ORDER BY key{self._for_update}",
            [schema.key_of(uri) for uri in dict.fromkeys(uris)],
        )
        if not found:
            return 0
        ids, held = [row[0] for row in found], [row[1] for row in found]
        self._forget_stamps(held)
        erase_fields(self._connection, self._tables, ids)
        self._run("DELETE FROM {tables}.document WHERE id = ANY(%s)", ids)
        self._run("DELETE FROM {tables}.origin WHERE document_id = ANY(%s)", ids)
        self._run("DELETE FROM {tables}.ledger WHERE key = ANY(%s)", held)
        self._added["documents"] -= len(found)
        self._added["passages"] -= sum(row[2] for row in found)
        self._added["tokens"] -= sum(row[3] for row in found)
        self._changed.update(ids)
        return len(found)

    # settings

    def _setting_rows(self, lock: str = "") -> dict[str, str]:
        return dict(self._run(f"SELECT name, value FROM {{tables}}.setting ORDER BY name {lock}"))

    def change(self, update: Callable[[Settings], Settings]) -> Settings:
        rows = self._setting_rows("FOR UPDATE")
        changes = changed_settings(self._views.address.shown, rows, update)
        self.without_effect = not (changes.written or changes.deleted)
        self._run_many(
            "INSERT INTO {tables}.setting VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            list(changes.written.items()),
        )
        self._run("DELETE FROM {tables}.setting WHERE name = ANY(%s)", list(changes.deleted))
        if "dimensions" in changes.written:  # the first vectors decide it
            column = f"halfvec{schema.width(changes.settings.dimensions).as_string()}"
            self._run(f"ALTER TABLE {{tables}}.passage ALTER COLUMN vector TYPE {column}")
        return changes.settings

    def set_ef_search(self, ef_search: int | None) -> None:
        self._sets["ef_search"] = sql.Literal(ef_search)

    def move(self, old: str, new: str) -> int:
        """Do what `indexer.stores.reading.store.Writer.move` says."""
        is_file = bool(self._run("SELECT id FROM {tables}.file WHERE key = %s", schema.key_of(old)))
        move = Move.named(old, new, is_file=is_file)
        documents = [
            (id_, (move.place(uri), move.place(path), move.rehash(recorded, metadata, uri=uri, path=path, **members)))
            for id_, uri, path, format_, modified, metadata, recorded in self._run(
                "SELECT id, uri, path, format, modified, metadata, row_hash FROM {tables}.document"
                f" WHERE starts_with(uri, %s) OR starts_with(path, %s) ORDER BY key{self._for_update}",
                *(move.old, move.old),
            )
            for members in ({"format": format_, "modified": modified},)
            if (move.place(uri), move.place(path)) != (uri, path)
        ]
        self._lock_documents(uri for _, (uri, _, _) in documents)
        keys = [schema.key_of(uri) for _, (uri, _, _) in documents]
        ids = [id_ for id_, _ in documents]
        others = "SELECT uri FROM {tables}.document WHERE key = ANY(%s) AND id <> ALL(%s::bigint[])"
        if taken := [uri for (uri,) in self._run(others, keys, ids)]:
            raise move.taken(taken)
        # In two steps: on the way to its new key, a row may meet another row that has not moved yet.
        self._run("UPDATE {tables}.document SET key = decode(md5(id::text), 'hex') WHERE id = ANY(%s)", ids)
        self._run_many(
            "UPDATE {tables}.document SET key = %s, uri = %s, path = %s, row_hash = %s WHERE id = %s",
            ((key, *values, id_) for key, (id_, values) in zip(keys, documents, strict=True)),
        )
        files = self._moved_names("file", "path", move)
        self._run(
            "DELETE FROM {tables}.file WHERE key = ANY(%s) AND id <> ALL(%s::bigint[])",
            [key for key, _, _ in files],
            [id_ for _, _, id_ in files],
        )
        self._run(
            "UPDATE {tables}.file SET key = decode(md5(id::text), 'hex') WHERE id = ANY(%s)", [f[2] for f in files]
        )
        self._run_many("UPDATE {tables}.file SET key = %s, path = %s WHERE id = %s", files)
        rows = self._moved_names("ledger", "uri", move)
        self._run_many("UPDATE {tables}.ledger SET key = %s, uri = %s WHERE id = %s", rows)
        sources = self._setting_rows("FOR UPDATE").get("sources", "[]")
        self._run("UPDATE {tables}.setting SET value = %s WHERE name = 'sources'", move.sources(sources))
        if not (documents or files or rows) and move.sources(sources) == sources:
            raise move.unknown()
        return len(documents)

    def _moved_names(self, table: str, column: str, move: Move) -> list[tuple[bytes, str, int]]:
        """Return new key, new name and id of the rows that move."""
        rows = self._run(f"SELECT id, {column} FROM {{tables}}.{table} WHERE starts_with({column}, %s)", move.old)
        return [(schema.key_of(move.place(n)), move.place(n), id_) for id_, n in rows if move.place(n) != n]

    # ledger

    def begin_run(self) -> int:
        (row,) = self._connection.execute(
            "UPDATE likewise.index SET run = run + 1 WHERE name = %s AND tables = %s RETURNING run",
            (self._views.address.index, self._tables),
        ).fetchall()
        return int(row[0])

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        """Write everything that the end of a run decides; return how many files are to be read again."""
        touched = sorted({schema.key_of(path) for path in (*outcome.read, *outcome.unchanged, *outcome.finished)})
        self._run("SELECT FROM {tables}.file WHERE key = ANY(%s) ORDER BY key FOR UPDATE", touched)
        self._finish_files(outcome.finished)
        read = [schema.key_of(path) for path in outcome.read]
        stale = "file_id IN (SELECT id FROM {tables}.file WHERE key = ANY(%s)) AND run < %s"
        left_out = f"{stale} AND state IN ('skipped', 'failed')"
        keys = [key for (key,) in self._run(f"SELECT key FROM {{tables}}.ledger WHERE {left_out}", read, run)]
        held = [key for (key,) in self._run("SELECT key FROM {tables}.document WHERE key = ANY(%s)", keys)]
        self._run(f"DELETE FROM {{tables}}.ledger WHERE {left_out} AND key <> ALL(%s::bytea[])", read, run, held)
        self._run(f"UPDATE {{tables}}.ledger SET state = 'gone' WHERE {stale}", read, run)
        reread = self._run(
            "UPDATE {tables}.file SET size = -1 WHERE id IN (SELECT l.file_id FROM {tables}.ledger l"
            " JOIN {tables}.ledger g ON g.key = l.key WHERE g.state = 'gone' AND (l.state IN ('indexed', 'updated',"
            " 'unchanged') OR (l.state = 'skipped' AND l.reason = %s))) RETURNING id",
            Code.DUPLICATE().stored(),
        )
        self._run(
            "UPDATE {tables}.ledger SET state = 'unchanged' WHERE state IN ('indexed', 'updated')"
            " AND file_id IN (SELECT id FROM {tables}.file WHERE key = ANY(%s))",
            [schema.key_of(path) for path in outcome.unchanged],
        )
        self._sets["finished_run"] = sql.SQL(f"greatest(finished_run, {int(run)})")
        return len(reread)

    def _lock_files(self, paths: Iterable[str]) -> None:
        """Make the rows of files, and keep others from changing them and their entries, until the transaction ends."""
        rows = sorted((schema.key_of(path), path) for path in paths)
        for _, path in rows:
            if "\0" in path:
                raise BadInput(f"{path[:80]!r}: a path with the character NUL cannot be in PostgreSQL")
        self._run_many(
            "INSERT INTO {tables}.file (key, path, size, mtime_ns, inode, read_ns) VALUES (%s, %s, -1, 0, 0, 0)"
            " ON CONFLICT (key) DO UPDATE SET path = excluded.path",
            rows,
        )

    def _write_ledger(self, rows: Sequence[LedgerRow], run: int) -> None:
        if not rows:
            return
        keys = [schema.key_of(row.uri) for row in rows]
        files = dict(
            self._run("SELECT path, id FROM {tables}.file WHERE key = ANY(%s)", [schema.key_of(r.file) for r in rows])
        )
        with (
            self._connection.cursor() as cursor,
            cursor.copy(
                schema.statement(
                    "COPY {tables}.ledger (file_id, key, uri, state, reason, run, reader, notes) FROM STDIN",
                    self._tables,
                )
            ) as copy,
        ):
            for row, key in zip(rows, keys, strict=True):
                # A NUL, which PostgreSQL cannot hold, is only in entries that never become a document.
                uri = row.uri.replace("\0", "\N{REPLACEMENT CHARACTER}")
                entry = (row.state, row.reason.stored(), run, row.reader, notes_stored(row.notes))
                copy.write_row((files[row.file], key, uri, *entry))
        # If two runs at once read the same file, the entries of the run that began last stay.
        self._run(
            "DELETE FROM {tables}.ledger l USING unnest(%s::bigint[], %s::bytea[]) AS given (file_id, key)"
            " WHERE l.key = given.key AND l.file_id = given.file_id AND EXISTS (SELECT FROM {tables}.ledger m"
            " WHERE m.key = l.key AND m.file_id = l.file_id AND m.run > l.run)",
            [files[row.file] for row in rows],
            keys,
        )
        # A file that had the document before and no longer has it: the document is this file's now.
        taken = [schema.key_of(row.uri) for row in rows if row.state in ("indexed", "updated", "unchanged")]
        self._run("DELETE FROM {tables}.ledger WHERE key = ANY(%s) AND state = 'gone' AND run < %s", taken, run)

    def _forget_stamps(self, keys: Iterable[bytes]) -> None:
        """Make the next run read the files that have these documents again, because something else has changed the
        documents."""
        self._run(
            "UPDATE {tables}.file SET size = -1 WHERE id IN"
            " (SELECT f.id FROM {tables}.file f WHERE f.id IN"
            " (SELECT file_id FROM {tables}.ledger WHERE key = ANY(%s) AND state <> 'gone')"
            " ORDER BY f.key FOR UPDATE)",
            list(keys),
        )

    def _finish_files(self, stamps: Mapping[str, Stamp]) -> None:
        """Record files as read to their end, so that the next run can skip them unread."""
        self._run_many(
            "INSERT INTO {tables}.file (key, path, size, mtime_ns, inode, read_ns) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (key) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,"
            " inode = excluded.inode, read_ns = excluded.read_ns",
            sorted((schema.key_of(path), path, *astuple(stamp)) for path, stamp in stamps.items()),
        )

    # repair

    def repair(self, damaged: Sequence[str], wrong_fields: Sequence[str]) -> None:
        keys = [schema.key_of(uri) for uri in damaged]
        self._run("UPDATE {tables}.document SET content_hash = %s WHERE key = ANY(%s)", bytes(16), keys)
        self._forget_stamps(keys)
        found = self._run(
            "SELECT id, uri, metadata, modified FROM {tables}.document WHERE key = ANY(%s)",
            [schema.key_of(uri) for uri in wrong_fields],
        )
        erase_fields(self._connection, self._tables, [row[0] for row in found])
        rows = (
            (id_, with_dates(scalars(uri, json.loads(metadata)), modified)) for id_, uri, metadata, modified in found
        )
        write_fields(self._connection, self._tables, rows)
        self._counts = True


_json = json.JSONEncoder(ensure_ascii=True, sort_keys=True, default=dict).encode  # ASCII: a NUL is written as \u0000


def _counts(spans: Sequence[Any] | None) -> tuple[int | None, int | None]:
    """Return the numbers of passages and tokens of a document; None if its passages stay as they are."""
    return (None, None) if spans is None else (len(spans), sum(span.tokens for span in spans))
