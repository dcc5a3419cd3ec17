"""An index in a database as a store: its address, its snapshots and its writers, and how another takes its place.

The answers of a snapshot are in snapshot.py, the changes of a writer in writer.py.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from indexer.encoders.cache import cache_folder
from indexer.errors import BadInput, IndexLocked, NotAnIndex
from indexer.filters.tree import Where
from indexer.records import Document
from indexer.settings import Settings
from indexer.stores.analysis import code
from indexer.stores.document_rows import chosen_in_pages, in_pages, views_of_one_index
from indexer.stores.port import PLACES, EmbeddedDocument, Hashes, Place
from indexer.stores.postgres import queries
from indexer.stores.postgres.address import Address, parse_address
from indexer.stores.postgres.connections import WORK_SECONDS, Connections, DeadlineConnection, connect, translated
from indexer.stores.postgres.leftovers import hold, tables_size, unfinished_name
from indexer.stores.postgres.schema import (
    BESIDE_MARK,
    is_being_replaced,
    is_true,
    lock_alone,
    prepare_database,
    statement,
    unlock_alone,
)
from indexer.stores.postgres.snapshot import PostgresSnapshot
from indexer.stores.postgres.tables import (
    copy_counts,
    copy_tables,
    create_draft,
    create_tables,
    discard_draft,
    forget_beside,
    register,
    rename,
    sweep,
)
from indexer.stores.postgres.views import View, Views, read_row
from indexer.stores.postgres.words import WordReplicas
from indexer.stores.postgres.writer import PostgresWriter
from indexer.stores.setting_rows import to_rows

T = TypeVar("T")

_NO_HASHES = Hashes(b"", b"")


class PostgresStore:
    """A `Store` in a database. Reads are safe from any thread, and any number of processes write at once."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connections = Connections(address)
        self._views = Views(address, self._connections)
        self._words = WordReplicas()
        self._process, self._lock, self._writer = os.getpid(), threading.RLock(), PostgresWriter(self._views)
        self._depth = 0
        self._beside: dict[Place, PostgresStore] = {}

    @classmethod
    def open(cls, address: str) -> PostgresStore:
        return cls(parse_address(address))

    @classmethod
    def create(cls, address: str, settings: Settings) -> PostgresStore:
        """Make an empty index. It appears complete or not at all.

        Raises:
            BadInput: an index of this name exists already, or there is no stemmer for the language.
            StorageError: the server cannot be reached, or refuses.
        """
        where = parse_address(address)
        settings = replace(settings, language=code(settings.language))
        with translated(where), connect(where) as connection:
            prepare_database(connection)
            with connection.transaction():
                register(connection, where.index, create_tables(connection, settings.dimensions, to_rows(settings)))
        return cls(where)

    @staticmethod
    def exists(address: str) -> bool:
        """Return whether there is an index of this name.

        Raises:
            StorageError: the server cannot be reached, or refuses.
        """
        where = parse_address(address)
        with translated(where), connect(where) as connection:
            try:
                read_row(connection, where)
            except NotAnIndex:
                return False
            return True

    @property
    def address(self) -> str:
        return self._address.shown

    def artifacts(self) -> Path:
        with self._views.view() as view:
            recipe = view.state.settings.recipe
        identity = recipe.identity if recipe else ""
        return cache_folder() / "encoders" / hashlib.sha256(identity.encode()).hexdigest()[:32]

    def derived(self) -> Path:
        with self._views.view() as view:
            return cache_folder() / "derived" / view.state.row.history

    def close(self) -> None:
        self._words.close()
        self._connections.close()
        for other in list(self._beside.values()):
            other.close()

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        with self._views.view() as view:
            yield PostgresSnapshot(view, self._words, self._address)

    @contextmanager
    def writer(self, *, wait: bool = True, on_wait: Callable[[str], None] | None = None) -> Iterator[PostgresWriter]:
        # Other processes write at the same time; the threads of this one share a writer and take turns.
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._process, self._lock, self._depth = os.getpid(), threading.RLock(), 0
        lock = self._lock
        if not lock.acquire(blocking=wait):
            raise IndexLocked(f"{self.address}: another thread of this process is writing to it")
        try:
            if not self._depth:
                with self._connections.connection() as connection:
                    tables = read_row(connection, self._address).tables
                    replaced = is_being_replaced(connection, tables)
                if replaced and not wait:
                    raise IndexLocked(f"{self.address}: another process is rebuilding it")
                if replaced and on_wait is not None:
                    on_wait(f"{self.address}: another process is rebuilding it; waiting until it is done")
                self._writer = PostgresWriter(self._views, tables)
            self._depth += 1
            try:
                yield self._writer
            finally:
                self._depth -= 1
        finally:
            if lock is self._lock:  # not in a child that was forked inside the block
                lock.release()

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        views = self._views_of_one_index()
        if where is None:
            yield from in_pages(views, queries.documents_after, lambda view, page: [document for _, document in page])
            return
        with views() as view:
            ids = view.document_ids(where)
        yield from chosen_in_pages(views, ids, queries.documents_of)

    def export(self) -> Iterator[EmbeddedDocument]:
        return in_pages(
            self._views_of_one_index(),
            queries.documents_after,
            lambda view, page: [
                EmbeddedDocument(document, _NO_HASHES, *queries.spans_and_vectors(view, id_)) for id_, document in page
            ],
        )

    def _views_of_one_index(self) -> Callable[[], AbstractContextManager[View]]:
        return views_of_one_index(self.address, self._views.view, lambda view: view.state.row.history)

    @contextmanager
    def successor(self, settings: Settings) -> Iterator[PostgresStore]:
        settings = replace(settings, language=code(settings.language))
        with translated(self._address), connect(self._address) as guard:
            sweep(guard)
            self._keep_writers_out(guard)
            name = create_draft(guard, self._address.index, settings.dimensions, to_rows(settings))
            store = PostgresStore(replace(self._address, index=name))
            try:
                yield store
                with guard.transaction():
                    self._unregister(guard)
                    rename(guard, name, self._address.index)
            except BaseException:
                discard_draft(guard, name)
                raise
            finally:
                store.close()
                if not guard.closed:
                    sweep(guard)

    def _keep_writers_out(self, guard: DeadlineConnection) -> None:
        """Have nobody write to this index while the connection lives."""
        while True:
            tables = read_row(guard, self._address).tables
            lock_alone(guard, tables)
            if read_row(guard, self._address).tables == tables:
                return
            unlock_alone(guard, tables)  # another successor took its place meanwhile

    def beside(self, place: Place) -> PostgresStore | None:
        with self._connections.connection() as connection:
            if not self._has(connection, place):
                return None
        if place not in self._beside:
            shown = f"{self._address.shown} ({place})"
            self._beside.setdefault(place, PostgresStore(replace(self._address, index=self._name(place), shown=shown)))
        return self._beside[place]

    def make_beside(self, settings: Settings) -> PostgresStore:
        settings = replace(settings, language=code(settings.language))
        with self._connections.connection() as connection:
            if any(self._has(connection, place) for place in PLACES):
                raise BadInput(f"{self.address}: an index stands beside it already: remove that first")
            sweep(connection)
            with connection.transaction():
                tables = create_tables(connection, settings.dimensions, to_rows(settings))
                register(connection, self._name("next"), tables)
        made = self.beside("next")
        assert made is not None
        return made

    @contextmanager
    def exchange(self, place: Place) -> Iterator[None]:
        with translated(self._address), connect(self._address) as guard:
            self._keep_writers_out(guard)
            if not self._has(guard, place):
                raise BadInput(f"{self.address}: has no index at the place {place!r} beside it")
            if place == "next" and self._has(guard, "previous"):
                raise BadInput(f"{self.address}: the index before this one is kept beside it: remove that first")
            yield
            aside = f"{self._address.index}{BESIDE_MARK}{secrets.token_hex(8)}"
            with guard.transaction():
                rename(guard, self._address.index, aside)
                rename(guard, self._name(place), self._address.index)
                rename(guard, aside, self._name("previous"))

    def drop(self, place: Place) -> None:
        with self._connections.connection() as connection:
            if not self._has(connection, place):
                raise BadInput(f"{self.address}: has no index at the place {place!r} beside it")
            connection.execute("DELETE FROM likewise.index WHERE name = %s", (self._name(place),))
            sweep(connection)

    def _unregister(self, connection: DeadlineConnection) -> None:
        """Forget this index and what stands beside it, in the caller's transaction; `sweep` drops the tables."""
        names = [self._address.index, *(self._name(place) for place in PLACES)]
        connection.execute("DELETE FROM likewise.index WHERE name = ANY(%s)", (names,))

    def _name(self, place: Place) -> str:
        """Return the name of an index beside this one, which no address can have."""
        return f"{self._address.index}{BESIDE_MARK}{place}"

    def _has(self, connection: DeadlineConnection, place: Place) -> bool:
        return self._is_registered(connection, self._name(place))

    def free_bytes(self) -> int | None:
        return None

    def backup(self, destination: str) -> tuple[str, ...]:
        target = parse_address(destination)
        if target.conninfo != self._address.conninfo:
            raise BadInput(f"{target.shown}: is in another database: use likewise copy")
        self._copy_here(target)
        return ()

    def _copy_here(self, destination: Address) -> None:
        """Copy the index inside its database, as of one commit, with all ids."""
        with translated(self._address), connect(self._address) as connection:
            connection.seconds = WORK_SECONDS
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            row = read_row(connection, self._address)
            dimensions = connection.execute(
                statement("SELECT value FROM {tables}.setting WHERE name = 'dimensions'", row.tables)
            ).fetchone()
            copy = create_tables(connection, int(dimensions[0]) if dimensions else 0, {})
            copy_tables(connection, row.tables, copy)
            register(connection, destination.index, copy)
            copy_counts(connection, row, destination.index)
            connection.execute("COMMIT")

    @classmethod
    @contextmanager
    def draft(cls, address: str, settings: Settings) -> Iterator[PostgresStore]:
        """Make an empty index that appears at its address when the block ends well."""
        where = parse_address(address)
        settings = replace(settings, language=code(settings.language))
        with translated(where), connect(where) as guard:
            prepare_database(guard)
            sweep(guard)
            if guard.execute("SELECT FROM likewise.index WHERE name = %s", (where.index,)).fetchone() is not None:
                raise BadInput(f"{where.shown}: exists already")
            name = create_draft(guard, where.index, settings.dimensions, to_rows(settings))
            store = cls(replace(where, index=name))
            try:
                yield store
                with guard.transaction():
                    rename(guard, name, where.index)
                    forget_beside(guard, where.index)
            except BaseException:
                discard_draft(guard, name)
                raise
            finally:
                store.close()
                if not guard.closed:
                    sweep(guard)

    @classmethod
    @contextmanager
    def kept_draft(cls, address: str, settings: Settings) -> Iterator[PostgresStore]:
        """As `draft`, but what a block that failed has written is kept under a hidden name, for the next one.

        It is thrown away if it was made with another model or other passages.

        Raises:
            IndexLocked: another process is at it.
        """
        where = parse_address(address)
        settings = replace(settings, language=code(settings.language))
        name = unfinished_name(where.index)
        with translated(where), connect(where) as guard:
            prepare_database(guard)
            hold(guard, where, name)
            if cls.exists(address):
                raise BadInput(f"{where.shown}: exists already")
            store = cls(replace(where, index=name))
            try:
                if cls._is_registered(guard, name):
                    with store.snapshot() as snapshot:
                        fits = snapshot.settings.kind == settings.kind
                    if not fits:
                        guard.execute("DELETE FROM likewise.index WHERE name = %s", (name,))
                        sweep(guard)
                if not cls._is_registered(guard, name):
                    with guard.transaction():
                        register(guard, name, create_tables(guard, settings.dimensions, to_rows(settings)))
                yield store
            finally:
                store.close()
            with guard.transaction():
                rename(guard, name, where.index)
                forget_beside(guard, where.index)

    @staticmethod
    def drop_unfinished(address: str) -> int:
        """Remove what an interrupted copy to an address has left; return its size in bytes.

        Raises:
            BadInput: there is no such thing.
            IndexLocked: another process is filling it.
        """
        where = parse_address(address)
        name, size = unfinished_name(where.index), 0
        with translated(where), connect(where) as guard:
            if is_true(guard, "SELECT to_regclass('likewise.index') IS NOT NULL"):
                hold(guard, where, name)
                size = tables_size(guard, name)
                guard.execute("DELETE FROM likewise.index WHERE name = %s", (name,))
                sweep(guard)
        if not size:
            raise BadInput(f"{where.shown}: no unfinished copy is there")
        return size

    @staticmethod
    def _is_registered(connection: DeadlineConnection, name: str) -> bool:
        return is_true(connection, "SELECT EXISTS (SELECT FROM likewise.index WHERE name = %s)", name)

    def remove_index(self) -> None:
        """Remove the index from its database. Tests use it."""
        with self._connections.connection() as connection:
            row = read_row(connection, self._address)
            with connection.transaction():
                self._unregister(connection)
                connection.execute(statement("DROP SCHEMA {tables} CASCADE", row.tables))
