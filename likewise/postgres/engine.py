"""A name in a database as an `Engine`: the name of each slot, and how one index replaces another.

A slot is a name in the registry: that of the live index, or one with a control character in it, which no address has.
The name of an index that is being made is held by a lock of its connection, and is forgotten when that connection ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from weakref import WeakValueDictionary

from psycopg import errors

from indexer.errors import BadInput, IndexUnavailable, Message, NotAnIndex
from indexer.listener import SILENT, Listener
from indexer.settings import Settings
from indexer.stores.port import SIDE_SLOTS, Slot
from indexer.stores.setting_rows import to_rows
from indexer.stores.words.analysis import code
from likewise.postgres.address import Address, parse_address
from likewise.postgres.citus import shard_count, shards_for
from likewise.postgres.connections import DeadlineConnection, connect, translated
from likewise.postgres.grants import take_over_grants
from likewise.postgres.leftovers import hold, note_of, tables_size, unfinished, unfinished_name
from likewise.postgres.schema import SIDE_MARK, lock_alone, prepare_database, unlock_alone
from likewise.postgres.store import PostgresStore
from likewise.postgres.tables import (
    create_draft,
    create_tables,
    forget_side_indexes,
    has_registry,
    is_registered,
    register,
    rename,
    sweep,
    unregister,
)
from likewise.postgres.views import read_row


class PostgresEngine:
    """An `Engine` of a name in a database."""

    def __init__(self, address: Address, shards: int | None = None) -> None:
        """Use the index of a name.

        Args:
            shards: number of shards of an index that is made; 0 makes plain tables. None: as the index that it
                replaces has them, or one for each node.
        """
        self._address, self._shards = address, shards
        self.address = address.shown
        self._draft = ""
        self._guard: DeadlineConnection | None = None
        self._is_exclusive = False
        # Stores in use are shared, because a lock is re-entrant in one object alone.
        self._stores: WeakValueDictionary[Slot, PostgresStore] = WeakValueDictionary()

    @classmethod
    def at(cls, address: str, shards: int | None = None) -> PostgresEngine:
        """Return the engine of the URI of an index."""
        return cls(parse_address(address), shards)

    def close(self) -> None:
        for store in list(self._stores.values()):
            store.close()
        self._release()

    def exists(self, slot: Slot = "live") -> bool:
        if not (name := self._name(slot)):
            return False
        with translated(self._address):
            if self._guard is not None and not self._guard.closed:
                return is_registered(self._guard, name)
            with connect(self._address) as connection:
                return is_registered(connection, name)

    def open(self, slot: Slot = "live") -> PostgresStore:
        store = self._stores.get(slot)
        if store is None:
            if slot == "live":
                store = PostgresStore(self._address, self)
            elif not self.exists(slot):
                raise NotAnIndex(f"{self.address}: has no index at {slot!r}")
            else:
                store = self._open_hidden(slot)
        return self._stores.setdefault(slot, store)

    def _open_hidden(self, slot: Slot) -> PostgresStore:
        if slot == "unfinished":
            with translated(self._address):
                hold(self._guarded(), self._address, self._name(slot))
        shown = f"{self.address} ({slot})" if slot in SIDE_SLOTS else self.address
        return PostgresEngine(replace(self._address, index=self._name(slot), shown=shown)).open()

    def make(self, slot: Slot, settings: Settings) -> PostgresStore:
        settings = replace(settings, language=code(settings.language))
        with translated(self._address):
            guard, rows = self._guarded(), to_rows(settings)
            if slot in SIDE_SLOTS:
                if slot == "previous" or any(map(self.exists, SIDE_SLOTS)):
                    raise BadInput(f"{self.address}: it already has a next or previous index: remove that index first")
            else:
                prepare_database(guard)
                if self.exists() and not self._is_exclusive:
                    raise BadInput(f"{self.address}: exists already")
            sweep(guard)
            shards = self._shards
            if shards is None and self.exists():
                shards = shard_count(guard, read_row(guard, self._address).tables)
            shards = shards_for(guard, shards)
            if slot == "draft":
                self._draft = create_draft(guard, self._address.index, settings.dimensions, rows, shards)
            else:
                if slot == "unfinished":
                    hold(guard, self._address, self._name(slot))
                with guard.transaction():
                    tables = create_tables(guard, settings.dimensions, rows, shards)
                    register(guard, self._name(slot), tables)
        if slot in SIDE_SLOTS:
            self._release()
        return self.open(slot)

    @contextmanager
    def exclusive(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[None]:
        with self.open().writer(wait=wait, listener=listener):
            outer = self._is_exclusive
            try:
                with translated(self._address):
                    self._keep_writers_out(self._guarded())
                self._is_exclusive = True
                yield
            finally:
                self._is_exclusive = outer
                self._release()

    def _keep_writers_out(self, guard: DeadlineConnection) -> None:
        """Keep everybody from writing to the live index while the connection lives."""
        while True:
            tables = read_row(guard, self._address).tables
            lock_alone(guard, tables)
            if read_row(guard, self._address).tables == tables:
                return
            unlock_alone(guard, tables)  # the index was replaced before the lock was granted

    def publish(self, slot: Slot) -> None:
        name, index = self._name(slot), self._address.index
        self._require(slot)
        with translated(self._address):
            guard = self._guarded()
            if not self._is_exclusive and self.exists():
                raise BadInput(f"{self.address}: exists already")
            if slot != "previous" and self._is_exclusive and self.exists("previous"):
                raise BadInput(
                    Message(
                        f"{self.address}: the previous index is still kept: remove it",
                        ": likewise migrate INDEX --drop",
                    )
                )
            self._leave(slot)
            with guard.transaction():
                if not self._is_exclusive:
                    rename(guard, name, index)  # which fails if another process was first
                else:
                    aside = f"{index}{SIDE_MARK}{secrets.token_hex(8)}"
                    rename(guard, index, aside)
                    rename(guard, name, index)
                    take_over_grants(guard, aside, index, revoke=slot == "previous")
                    if slot in SIDE_SLOTS:
                        rename(guard, aside, self._name("previous"))
                    else:
                        unregister(guard, aside)
                if slot not in SIDE_SLOTS:
                    forget_side_indexes(guard, index)
            _drop_replaced(guard)
        self._release()

    def discard(self, slot: Slot) -> int:
        self._require(slot)
        name = self._name(slot)
        with translated(self._address):
            guard = self._guarded()
            if slot == "unfinished":
                hold(guard, self._address, name)
            size = tables_size(guard, name)
            self._leave(slot)
            unregister(guard, name)
            _drop_replaced(guard)
        self._release()
        return size

    def leftovers(self) -> tuple[str, ...]:
        with translated(self._address), connect(self._address) as connection:
            return tuple(note_of(left, self._address) for left in unfinished(connection))

    def sweep(self) -> int:
        with translated(self._address), connect(self._address) as connection:
            if not has_registry(connection):
                return 0
            drafts = [left for left in unfinished(connection, self._address.index) if not left.resumable]
            if drafts:
                sweep(connection)  # every draft in this database whose maker has gone
            return sum(left.bytes for left in drafts)

    def _name(self, slot: Slot) -> str:
        """Return the name of a slot in the registry; empty if there is no draft."""
        if slot == "live":
            return self._address.index
        if slot == "draft":
            return self._draft
        return unfinished_name(self._address.index) if slot == "unfinished" else self._address.index + SIDE_MARK + slot

    def _require(self, slot: Slot) -> None:
        if slot == "live" or not self.exists(slot):
            raise BadInput(f"{self.address}: has no index at {slot!r}")

    def _guarded(self) -> DeadlineConnection:
        """Return the connection that holds the locks of this engine. The locks end with the connection.

        Raises:
            IndexUnavailable: the connection ended inside of `exclusive`, and others may have written since.
        """
        if self._is_exclusive and self._guard is not None and self._guard.closed:
            message = f"{self.address}: the connection that kept other writers out has ended: run it again"
            raise IndexUnavailable(message)
        if self._guard is None or self._guard.closed:
            self._guard = connect(self._address)
        return self._guard

    def _release(self) -> None:
        if self._guard is not None and not self._is_exclusive:
            with suppress(errors.OperationalError):
                self._guard.close()
            self._guard = None

    def _leave(self, slot: Slot) -> None:
        """Close the stores of names that are about to change."""
        for each in (slot, *SIDE_SLOTS):
            if (store := self._stores.pop(each, None)) is not None:
                store.close()


def _drop_replaced(guard: DeadlineConnection) -> None:
    """Drop the tables that a commit has left without a row. The next `sweep` drops what remains after an error, which
    must not look as if the commit had failed."""
    with suppress(errors.Error):
        sweep(guard)
