"""Another index takes the place of one: readers keep theirs, writers wait or are told, and nothing is left behind."""

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
from postgres_server import new_address, server_uri

from indexer import Document, Index
from indexer.errors import IndexLocked, NotAnIndex
from indexer.settings import Settings
from indexer.stores.life_cycle import draft
from indexer.stores.open import create_store, engine_of, open_store
from indexer.stores.postgres.tables import sweep

ROWS = np.eye(4, dtype=np.float32)


@pytest.fixture
def address() -> Iterator[str]:
    address = new_address()
    with Index.create(address, dimensions=4) as index:
        index.add([Document(f"d{i}", f"text {i}") for i in range(4)], vectors=ROWS)
    yield address
    store: Any = open_store(address)
    store.engine.remove_index()
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
        "from indexer.stores.life_cycle import draft\n"
        "from indexer.stores.open import engine_of\n"
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
    store.engine.remove_index()  # type: ignore[attr-defined]
    with psycopg.connect(server_uri(), autocommit=True) as connection:
        sweep(connection)  # type: ignore[arg-type]
    assert schemas() <= before
