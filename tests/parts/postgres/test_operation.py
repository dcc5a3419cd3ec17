"""What operators put around a server: a standby that is promoted, and pgbouncer in transaction mode."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from postgres_nodes import Node, free_port, needs_citus, new_node, nodes

from indexer import Document, Index
from search import Searcher

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_citus]

ROWS = np.eye(8, dtype=np.float32)


def _documents(name: str) -> list[Document]:
    return [Document(f"{name}{i}", f"{name} {i}", metadata={"n": i}) for i in range(8)]


def _answers(address: str) -> list[list[str]]:
    with Searcher(address) as searcher:
        return [[hit.uri for hit in searcher.search_vector(row, k=3, where="n < 7")] for row in ROWS]


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_standby_answers_refuses_to_write_and_is_promoted(likewise: Callable[..., Any]) -> None:
    primary = new_node()
    address = f"{primary.uri}?index=papers"
    with Index.create(address, dimensions=8) as index:
        index.add(_documents("pear"), vectors=ROWS)
        standby = new_node(primary)
        behind = f"{standby.uri}?index=papers"
        assert _answers(behind) == _answers(address)
        index.add(_documents("plum"), vectors=ROWS)
    with Searcher(behind) as searcher:
        _until(lambda: searcher.count() == 16)
    for command in (("remove", behind, "pear1"), ("compact", behind), ("copy", behind, f"{standby.uri}?index=two")):
        said = likewise(*command)
        assert said.code == 3, said
        assert "this server only reads, as a standby does: write to the primary" in said.err
        assert said.err.count("\n") == 1
    assert _answers(behind) == _answers(address)
    primary.stop()
    with psycopg.connect(standby.uri, autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    both = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write&index=papers"
    with Index.open(both) as index:
        assert index.remove(["pear1"]) == 1
        assert len(index) == 15
        assert index.check().ok
    assert all("pear1" not in uris for uris in _answers(behind))
    standby.stop()


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[Callable[[Node], str]]:
    """Start pgbouncer before a server, in transaction mode with three connections; return its URI."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("needs pgbouncer")
    started = []

    def start(node: Node) -> str:
        port, settings = free_port(), tmp_path / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={node.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nauth_type = any\nauth_file = /dev/null\npool_mode = transaction\n"
            "default_pool_size = 3\nunix_socket_dir =\n"
        )
        user = "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else "nobody"
        started.append(subprocess.Popen([program, "-q", "-u", user, str(settings)]))
        return f"postgresql://postgres@127.0.0.1:{port}/postgres"

    yield start
    for process in started:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("count", [1, 3])
def test_pgbouncer_in_transaction_mode(count: int, pooled: Callable[[Node], str]) -> None:
    """Eight threads search and write over three connections, and every answer is that of the server."""
    node = nodes()[0] if count == 3 else new_node()
    uri, name = pooled(node), f"pooled{time.time_ns()}"
    address, direct = f"{uri}?index={name}", f"{node.uri}?index={name}"
    with Index.create(direct, dimensions=8) as index:
        index.add(_documents("pear"), vectors=ROWS)
        assert index.info().details.get("shard_count", 1) == count
    right = _answers(direct)

    def work(number: int) -> None:
        with Index.open(address) as index, Searcher(address) as searcher:
            for round_ in range(10):
                extra = Document(f"extra {number} {round_}", "extra", metadata={"n": 100})
                assert len(index.add([extra], vectors=ROWS[:1]).added) == 1
                for row, uris in zip(ROWS, right, strict=True):
                    assert [hit.uri for hit in searcher.search_vector(row, k=3, where="n < 7")] == uris
                if round_ % 2:
                    assert index.remove([extra.uri]) == 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    with Index.open(direct) as index:
        assert len(index) == 8 + 8 * 5
        assert index.check().ok
