"""An index in a database as a `Store`: its snapshots and its writers.

The answers of a snapshot are in view.py and in stores/reading/snapshot.py, the changes of a writer in writer.py.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.deadline import NEVER, Deadline
from indexer.encoders.machine.user_folders import cache_folder
from indexer.errors import IndexLocked
from indexer.listener import SILENT, Listener
from indexer.stores.reading.store import Engine, Store
from likewise.postgres.address import Address
from likewise.postgres.connections import Connections
from likewise.postgres.schema import is_being_replaced
from likewise.postgres.view import PostgresView
from likewise.postgres.views import Views, read_row
from likewise.postgres.words import WordReplicas
from likewise.postgres.writer import PostgresWriter


class PostgresStore(Store):
    """A `Store` in a database. Reads are safe from any thread, and any number of processes write at once."""

    def __init__(self, address: Address, engine: Engine) -> None:
        self.address, self.engine = address.shown, engine
        self._address = address
        self._connections = Connections(address)
        self._views = Views(address, self._connections)
        self._words = WordReplicas(self._views)
        self._process, self._lock, self._writer = os.getpid(), threading.RLock(), PostgresWriter(self._views)
        self._depth = 0

    @property
    def is_building_words(self) -> bool:
        return self._words.is_building

    def committed_at(self) -> float | None:
        with self._connections.connection() as connection:
            row = connection.execute(
                "SELECT CASE WHEN current_setting('track_commit_timestamp')::boolean"
                " THEN extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 END"
                " FROM likewise.index WHERE name = %s",
                (self._address.index,),
            ).fetchone()
        return row[0] if row else None

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

    @contextmanager
    def _view(self, deadline: Deadline = NEVER) -> Iterator[PostgresView]:
        with self._views.view(deadline) as view:
            yield PostgresView(view.connection, view.state, self._address, self._words)

    @contextmanager
    def writer(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[PostgresWriter]:
        # Other processes write at the same time; the threads of this process share a writer and take turns.
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
                if replaced:
                    listener.waiting(f"{self.address}: another process is rebuilding it; waiting until it is done")
                self._writer = PostgresWriter(self._views, tables)
            self._depth += 1
            try:
                yield self._writer
            finally:
                self._depth -= 1
        finally:
            if lock is self._lock:  # not in a child that was forked inside the block
                lock.release()

    def free_bytes(self) -> int | None:
        return None
