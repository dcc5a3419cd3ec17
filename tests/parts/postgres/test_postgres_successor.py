"""Another index replaces an index: readers keep the old index, writers wait or get an error, and nothing is left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from listeners import Calling
from postgres_server import new_address, remove_index, server_uri

from indexer import Document, Index
from indexer.errors import BadInput, IndexLocked, NotAnIndex, StorageError
from indexer.settings import Settings
from indexer.stores.addresses.life_cycle import draft
from indexer.stores.addresses.open import create_store, engine_of, open_store
from likewise.postgres.engine import PostgresEngine
from likewise.postgres.tables import sweep

ROWS = np.eye(4, dtype=np.float32)


@pytest.fixture
def address() -> Iterator[str]:
    address = new_address()
    with Index.create(address, dimensions=4) as index:
        index.add([Document(f"d{i}", f"text {i}") for i in range(4)], vectors=ROWS)
    yield address
    store: Any = open_store(address)
    remove_index(store.engine)
    store.close()


def schemas() -> set[str]:
    with psycopg.connect(server_uri()) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^likewise_'").fetchall()
        names = connection.execute("SELECT name FROM likewise.index").fetchall()
    return {name for (name,) in [*rows, *names]}


def test_a_reader_keeps_the_index_that_it_began_with(address: str) -> None:
    store: Any = open_store(address)
    with store.snapshot() as first:
        assert first.documents == 4
    with store.snapshot() as reader:  # it has not read a row of the index's tables yet
        other: Any = open_store(address)
        with other.engine.exclusive(), draft(other.engine, Settings(2)):
            pass
        assert sorted(reader.uris()) == ["d0", "d1", "d2", "d3"]
        assert reader.dense(ROWS[2], 1).matched == 4
    with store.snapshot() as later:
        assert (later.documents, later.settings.dimensions) == (0, 2)
    other.close()
    store.close()


def test_what_a_killed_process_left_is_swept(address: str) -> None:
    before = schemas()
    code = (
        "import sys, os, signal\n"
        "from indexer.settings import Settings\n"
        "from indexer.stores.addresses.life_cycle import draft\n"
        "from indexer.stores.addresses.open import engine_of\n"
        "engine = engine_of(sys.argv[1])\n"
        "with engine.exclusive(), draft(engine, Settings(2)):\n"
        "    print('made', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        assert made.stdout.readline() == b"made\n"
        assert len(schemas() - before) == 2  # a schema, and a name that no address has
        with pytest.raises(IndexLocked, match="is rebuilding it"), open_store(address).writer(wait=False):
            pass
        os.kill(made.pid, signal.SIGKILL)
    for _ in range(100):  # the server notices
        with Index.open(address) as index:
            index.compact()
        if schemas() <= before:
            break
    assert schemas() <= before  # fewer where an earlier test left what somebody was reading


def test_two_successors_follow_each_other(address: str) -> None:
    store, other = open_store(address), open_store(address)
    order: list[str] = []

    def second() -> None:
        with other.engine.exclusive(), draft(other.engine, Settings(3)):
            order.append("second begins")
            with other.snapshot() as snapshot:
                assert snapshot.settings.dimensions == 2  # it replaces the first successor, not what that one replaced

    with store.engine.exclusive(), draft(store.engine, Settings(2)):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        order.append("first ends")
    thread.join()
    assert order == ["first ends", "second begins"]
    with store.snapshot() as snapshot:
        assert snapshot.settings.dimensions == 3
    store.close()
    other.close()


def test_a_writer_waits_for_a_successor_and_is_told(address: str) -> None:
    store = open_store(address)
    waited: list[str] = []
    raised: list[BaseException] = []

    def write() -> None:
        try:
            with open_store(address).writer(listener=Calling(waiting=waited.append)) as writer:
                writer.remove(["d0"])
        except NotAnIndex as error:
            raised.append(error)

    with store.engine.exclusive(), draft(store.engine, Settings(2)):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    thread.join()
    assert "another process is rebuilding it" in waited[0]
    assert "was replaced by another index" in str(raised[0])
    with store.snapshot() as snapshot:
        assert snapshot.documents == 0


def test_a_draft_that_ends_badly_leaves_nothing(address: str) -> None:
    before = schemas()
    with pytest.raises(KeyboardInterrupt), draft(engine_of(new_address()), Settings(2)):
        raise KeyboardInterrupt
    assert schemas() <= before
    store = create_store(new_address(), Settings(2))
    remove_index(store.engine)
    with psycopg.connect(server_uri(), autocommit=True) as connection:
        sweep(connection)  # type: ignore[arg-type]
    assert schemas() <= before


def test_an_index_that_another_process_makes_at_the_last_moment_is_not_overwritten(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = engine_of(address)
    exists = PostgresEngine.exists
    monkeypatch.setattr(PostgresEngine, "exists", lambda self, slot="live": slot != "live" and exists(self, slot))
    with pytest.raises(BadInput, match="exists in this database already"), draft(late, Settings(2)):
        pass
    late.close()
    with open_store(address).snapshot() as snapshot:
        assert (snapshot.documents, snapshot.settings.dimensions) == (4, 4)


def test_one_that_another_process_removes_at_the_last_moment_is_not_switched_to(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Any = engine_of(address)
    with engine.open().writer():
        engine.make("next", Settings(2))
    leave = engine._leave

    def removed(slot: Any) -> None:
        with psycopg.connect(server_uri()) as connection:
            connection.execute("DELETE FROM likewise.index WHERE name = %s", (engine._name("next"),))
        leave(slot)

    monkeypatch.setattr(engine, "_leave", removed)
    with pytest.raises(NotAnIndex, match="another process has removed it"), engine.exclusive():
        engine.publish("next")
    with engine.open().snapshot() as snapshot:
        assert (snapshot.documents, snapshot.settings.dimensions) == (4, 4)
    assert not engine.exists("previous")
    engine.close()


@pytest.mark.usefixtures("address")
def test_what_is_published_or_removed_is_so_even_if_the_tables_before_it_cannot_be_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(connection: Any) -> None:
        raise psycopg.errors.AdminShutdown("terminating connection due to administrator command")

    before, engine = schemas(), engine_of(new_address())
    with monkeypatch.context() as patch, draft(engine, Settings(2)):
        patch.setitem(type(engine).publish.__globals__, "sweep", fail)
    assert engine.exists()
    with engine.open().writer():
        engine.make("next", Settings(2))
    with monkeypatch.context() as patch:
        patch.setitem(type(engine).publish.__globals__, "sweep", fail)
        assert engine.discard("next") > 0
    assert not engine.exists("next")
    assert len(schemas() - before) == 3  # the index with its name, and the tables that were not dropped
    with engine.open().writer():
        engine.make("next", Settings(2))
    engine.discard("next")
    assert len(schemas() - before) == 2
    remove_index(engine)
    engine.close()


def test_nothing_is_published_after_the_lock_is_lost(address: str) -> None:
    engine: Any = engine_of(address)
    with engine.exclusive(), pytest.raises(StorageError, match="has ended"):
        engine.make("draft", Settings(2))
        with psycopg.connect(server_uri(), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (engine._guard.info.backend_pid,))
        with pytest.raises(StorageError, match="terminating connection"):
            engine.publish("draft")
        engine.publish("draft")
    with engine.open().snapshot() as snapshot:
        assert (snapshot.documents, snapshot.settings.dimensions) == (4, 4)
    engine.close()


def test_an_inner_block_leaves_the_lock_to_the_outer_one(address: str) -> None:
    engine = engine_of(address)
    with engine.exclusive():
        with engine.exclusive():
            pass
        with pytest.raises(IndexLocked), open_store(address).writer(wait=False):
            pass
        with draft(engine, Settings(2)):
            pass
    with engine.open().snapshot() as snapshot:
        assert (snapshot.documents, snapshot.settings.dimensions) == (0, 2)
    engine.close()


def test_an_interrupted_wait_for_the_lock_leaves_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = engine_of(address)
    keep = engine._keep_writers_out

    def interrupted(guard: Any) -> None:
        keep(guard)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_keep_writers_out", interrupted)
    with pytest.raises(KeyboardInterrupt), engine.exclusive():
        pass
    with open_store(address).writer(wait=False) as writer:
        assert writer.remove(["d0"]) == 1
    engine.close()
