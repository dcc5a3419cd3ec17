"""A server that is restarted, killed, gone or silent: what a user sees, and that nothing acknowledged is lost."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attacks
import numpy as np
import pytest
from postgres_server import OwnServer

from indexer import Document, Index
from indexer.errors import IndexUnavailable, StorageError
from likewise.postgres import connections
from likewise.postgres.address import parse_address
from search import Searcher

ROWS = np.eye(8, dtype=np.float32)


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.close()


def filled(address: str) -> Index:
    index = Index.create(address, dimensions=8)
    index.add([Document(f"d{i}", f"text {i}") for i in range(8)], vectors=ROWS)
    return index


def found(searcher: Searcher, number: int) -> str:
    return searcher.search_vector(ROWS[number], 1)[0].uri


@pytest.mark.slow
def test_a_restart_fails_no_later_question(server: OwnServer) -> None:
    address = server.address("restarted")
    with filled(address) as index, Searcher(address) as searcher:
        together = threading.Barrier(4)

        def ask() -> None:
            together.wait()
            assert found(searcher, 1) == "d1"

        threads = [threading.Thread(target=ask) for _ in range(4)]  # so that several connections are kept
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.kill()
        with pytest.raises(StorageError) as refused:
            found(searcher, 2)
        assert "\n" not in str(refused.value)
        server.start()
        assert [found(searcher, number) for number in range(8)] == [f"d{number}" for number in range(8)]
        assert index.remove(["d3"]) == 1
        assert found(searcher, 3) != "d3"


def test_a_silent_server_ends_a_question(server: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = server.address("silent")
    with filled(address) as index, Searcher(address) as searcher:
        assert found(searcher, 1) == "d1"
        monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
        server.pause()
        try:
            for ask in (lambda: found(searcher, 1), lambda: index.remove(["d1"])):
                with pytest.raises(StorageError, match=r"did not answer within 0\.3 s.*run it again"):
                    ask()
        finally:
            server.resume()
        monkeypatch.undo()
        assert [found(searcher, number) for number in range(8)] == [f"d{number}" for number in range(8)]


@pytest.mark.slow
def test_a_frozen_server_is_told_from_a_slow_statement(server: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = server.address("slow")
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.1)
    with connections.connect(parse_address(address)) as connection:
        assert connection.execute("SELECT 1 FROM pg_sleep(0.5)").fetchall() == [(1,)]
    with filled(address) as index, Searcher(address) as searcher:
        assert found(searcher, 1) == "d1"
        server.pause()
        try:
            for ask in (lambda: found(searcher, 1), lambda: index.remove(["d1"])):
                with pytest.raises(IndexUnavailable, match=r"did not answer within 2\.1 s"):
                    ask()
        finally:
            server.resume()
        assert found(searcher, 1) == "d1"


def test_one_thread_at_a_time_tries_a_server_that_did_not_answer(server: OwnServer) -> None:
    address = server.address("tried")
    with filled(address), Searcher(address) as searcher:
        assert found(searcher, 1) == "d1"
        shared = searcher._store._connections  # type: ignore[attr-defined]
        shared._silent_at = time.monotonic()
        with shared._trial, pytest.raises(IndexUnavailable, match="the server does not answer"):
            found(searcher, 1)
        assert found(searcher, 1) == "d1"
        with shared._trial:  # it has answered, so that nobody waits for a turn
            assert found(searcher, 1) == "d1"
        shared._silent_at = math.inf  # found after the question began to wait for a connection
        with pytest.raises(IndexUnavailable, match="the server does not answer"):
            found(searcher, 1)


@pytest.mark.slow
def test_the_time_of_the_last_commit_where_the_server_keeps_it(server: OwnServer) -> None:
    address = server.address("timed")
    with filled(address) as index, Searcher(address) as searcher:
        assert searcher.committed_at() is None
        with connections.connect(parse_address(address)) as connection:
            connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        server.stop()
        server.start()
        begun = time.time()
        index.remove(["d1"])
        assert begun - 1 < (searcher.committed_at() or 0) < time.time() + 1


_WRITER = """
import sys
import numpy as np
from indexer import Document, Index
index = Index.open(sys.argv[1])
for number in range(int(sys.argv[2]), 10**6):
    documents = [Document(f"{number} {i}", f"text {number} {i}", metadata={"n": number}) for i in range(20)]
    vectors = np.random.default_rng(number).normal(size=(20, 8)).astype(np.float32)
    index.add(documents, vectors=vectors)
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(attacks.TIMEOUT_S)
@pytest.mark.parametrize("victim", ["server", "client"])
def test_nothing_acknowledged_is_lost_by_a_kill(server: OwnServer, victim: str) -> None:
    address = server.address(f"killed {victim}")
    Index.create(address, dimensions=8).close()
    acknowledged = -1
    for round_ in range(attacks.KILLS):
        command = [sys.executable, "-c", _WRITER, address, str(acknowledged + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                acknowledged = int(line)
                if acknowledged % 15 == (10 + round_) % 15:
                    break
            server.kill() if victim == "server" else writer.kill()
            rest, error = writer.communicate()
            acknowledged = max([acknowledged, *map(int, rest.split())])
        if victim == "server":
            assert "IndexUnavailable" in error
            server.start()
        with Index.open(address) as index:
            assert index.check().ok, index.check().problems
            uris = {document.uri for document in index}
            assert {f"{number} {i}" for number in range(acknowledged + 1) for i in range(20)} <= uris
            assert len(uris) % 20 == 0  # a batch is there as a whole or not at all
            assert len(uris) <= 20 * (acknowledged + 2)
    with Index.open(address) as index:  # what was under way can be written again
        more = [Document(f"{acknowledged + 1} {i}", "again") for i in range(20)]
        index.add(more, vectors=np.tile(ROWS[:1], (20, 1)))
        assert len(index) == 20 * (acknowledged + 2)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        Index.open(f"postgresql://nobody:secret@/none?host={tmp_path}")
