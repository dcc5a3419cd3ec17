"""An index over three nodes of Citus: the contract of every store, one commit in each answer, and nodes that die."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from opened import snapshot_of
from postgres_nodes import Node, needs_citus, new_node, nodes
from starlette.testclient import TestClient

from indexer import Document, Index
from indexer.errors import IndexUnavailable
from indexer.stores.addresses.open import open_store
from likewise.postgres import connections
from likewise.service import create_app
from search import Searcher

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), needs_citus]

READS, ROUNDS = 1000, 50
"""Minimum reads, and different commits among them, of each of the two readers of the test of torn reads."""

KILLS, ANSWERS = 20, 5
"""Number of nodes that are killed, and of answers between one and the next."""

TOGETHER = 12
"""Documents that each commit of the test of torn reads replaces, on all nodes."""


@pytest.fixture(scope="module")
def coordinator() -> Node:
    return nodes()[0]


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a machine on which other work takes all cores the time that it needs for a connection."""
    for name in ("CONNECT_SECONDS", "TRIAL_SECONDS", "NODE_SECONDS"):
        monkeypatch.setattr(connections, name, 60)


@pytest.fixture
def address(coordinator: Node) -> str:
    return f"{coordinator.uri}?index=citus{time.time_ns()}"


@pytest.mark.parametrize(
    ("tests", "chosen"),
    [
        pytest.param("engine/stores/suite", "postgres", marks=pytest.mark.long),
        pytest.param("parts/migration/test_migrate.py", "postgres", marks=pytest.mark.long),
        pytest.param("parts/postgres/test_database_doors.py", "", marks=pytest.mark.long),
        ("parts/postgres/test_grants.py", ""),
        pytest.param("parts/postgres/test_tenants.py", "", marks=pytest.mark.long),
        pytest.param("parts/postgres/test_postgres_ndcg.py", "scifact", marks=pytest.mark.long),
    ],
)
def test_what_holds_for_one_server(tests: str, chosen: str, coordinator: Node) -> None:
    """The contract of every store, a change of the model and back, every command, roles, and nDCG as in a folder."""

    def distributed() -> int:
        with psycopg.connect(coordinator.uri) as connection:
            counted = connection.execute("SELECT count(*) FROM pg_dist_partition WHERE logicalrelid::text ~ 'document'")
            return int((counted.fetchone() or [0])[0])

    before = distributed()
    # The time-out is that of this module: each new index takes a second to distribute, and more on a busy machine.
    arguments = ["-q", "-n", "0", "-p", "no:cacheprovider", "--timeout", "900", "-m", "", "-k", chosen]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, str(Path(__file__).parents[2] / tests)],
        env=os.environ | {"LIKEWISE_TEST_DSN": coordinator.uri},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:]
    assert distributed() > before  # the indexes of the tests were indeed distributed


def _rows(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _documents(count: int, **metadata: Any) -> list[Document]:
    return [Document(f"d{i}", f"pear {i}", metadata={"n": i, **metadata}) for i in range(count)]


def test_a_copy_into_the_nodes_and_out_of_them(
    likewise: Callable[..., Any], address: str, coordinator: Node, tmp_path: Path
) -> None:
    folder, plain, back = tmp_path / "papers.index", f"{address}-plain", tmp_path / "back.index"
    with Index.create(folder, dimensions=8) as index:
        index.add(_documents(300), vectors=_rows(300))
    assert likewise("copy", folder, address, "--json").json["documents"] == 300
    info = likewise("info", address, "--json").json
    # Versions of likewise that do not know shards refuse the format: they would write without the number of the commit.
    assert (info["shard_count"], info["format_version"]) == (3, 1)
    assert likewise("copy", address, plain, "--shards", 0, "--json").json["documents"] == 300
    info = likewise("info", plain, "--json").json
    assert ("shard_count" in info, info["format_version"]) == (False, 1)
    assert likewise("copy", plain, back, "--json").json["documents"] == 300
    with Index.open(address) as index:
        index.copy(f"{address}-two")
    info = likewise("info", f"{address}-two", "--json").json
    assert (info["shard_count"], info["format_version"]) == (3, 1)
    said = likewise("copy", folder, address, "--shards", 2)
    assert said.code == 2
    assert "has 3 shards and not 2: only a copy can have another number" in said.err
    assert likewise("copy", folder, tmp_path / "no.index", "--shards", 2).code == 2
    assert likewise("check", address, "--json").json["ok"]
    with psycopg.connect(coordinator.uri) as connection:
        ((tables,),) = connection.execute(
            "SELECT tables FROM likewise.index WHERE name = %s", (address[-25:].split("=")[1],)
        )
        placed = connection.execute(
            "SELECT count(DISTINCT nodeport) FROM citus_shards WHERE table_name = to_regclass(%s)",
            (f"{tables}.document",),
        )
        assert placed.fetchone() == (3,)


def test_a_rebuilt_index_has_as_many_shards(likewise: Callable[..., Any], address: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    notes.write_text("".join(f'{{"id": "n{i}", "text": "a pear {i}"}}\n' for i in range(40)))
    for options, shards in (("--shards", 2), 2), ((), 2), (("--rebuild",), 2), (("--rebuild", "--shards", 4), 4):
        assert likewise("index", address, notes, *options, "--json").json["seen"] == 40
        assert likewise("info", address, "--json").json["shard_count"] == shards
    assert likewise("check", address, "--json").json["ok"]


def _replace(address: str, ended: threading.Event) -> None:
    with Index.open(address) as index:
        round_ = 0
        while not ended.is_set():
            round_ += 1
            index.add(_documents(TOGETHER, round=round_), vectors=_rows(TOGETHER))


def _read(address: str, writer: Future[None]) -> tuple[int, int]:
    """Return the number of reads, and of those that saw a part of a commit."""
    rounds, reads, torn = set(), 0, 0
    with closing(open_store(address)) as store:
        while reads < READS or len(rounds) < ROUNDS:
            if writer.done():
                writer.result()  # its error
            with store.snapshot() as snapshot:
                counted = dict(snapshot.values("round", 10).frequent)
            reads += 1
            torn += list(counted.values()) != [TOGETHER]
            rounds |= counted.keys()
    return reads, torn


def test_no_read_sees_a_part_of_a_commit(address: str) -> None:
    """REPEATABLE READ does not hold over nodes: without the numbers on the shards, about one read of 100 is torn."""
    with Index.create(address, dimensions=8) as index:
        index.add(_documents(TOGETHER, round=0), vectors=_rows(TOGETHER))
    ended = threading.Event()
    with ThreadPoolExecutor(3) as threads:  # each has connections of its own
        writer = threads.submit(_replace, address, ended)
        readers = [threads.submit(_read, address, writer) for _ in range(2)]
        try:
            outcome = [reader.result() for reader in readers]
        finally:
            ended.set()
        writer.result()
    assert [torn for _, torn in outcome] == [0, 0]
    sys.stderr.write(f"{sum(reads for reads, _ in outcome)} reads, none torn\n")


def _add(address: str, ended: threading.Event) -> tuple[set[int], Counter[str]]:
    """Return the commits that were acknowledged, and the errors of the others by their first words."""
    acknowledged, failed, number = set(), Counter[str](), 0
    with Index.open(address) as index:
        while not ended.is_set():
            number += 1
            documents = [Document(f"{number}-{i}", "a pear", metadata={"commit": number}) for i in range(TOGETHER)]
            try:
                index.add(documents, vectors=_rows(TOGETHER))
                acknowledged.add(number)
            except IndexUnavailable as error:  # an error of another kind would keep a program from trying again
                failed[str(error).partition(": ")[2][:60]] += 1
    return acknowledged, failed


def test_a_node_is_killed_while_it_is_written_to(address: str) -> None:
    """Every acknowledged commit is there at the end, and no answer in between has a part of a commit."""
    with Index.create(address, dimensions=8):
        pass
    ended, chance, refused = threading.Event(), random.Random(3), Counter[str]()
    with ThreadPoolExecutor(1) as threads, closing(open_store(address)) as store:
        writer = threads.submit(_add, address, ended)
        try:
            for _ in range(KILLS):
                node = chance.choice(nodes()[1:])
                time.sleep(chance.uniform(0.2, 1.5))  # a moment that nothing announces
                node.stop()
                node.start()
                answered = 0
                while answered < ANSWERS and not writer.done():
                    try:
                        with store.snapshot() as snapshot:
                            counts = dict(snapshot.values("commit", 10**6).frequent).values()
                            assert set(counts) <= {TOGETHER}
                            assert sum(counts) == snapshot.documents
                            answered += 1
                    except IndexUnavailable as error:
                        refused[str(error).partition(": ")[2][:60]] += 1
        finally:
            ended.set()
        acknowledged, failed = writer.result()
        counted = _when_recovered(store)
    assert set(counted.values()) == {TOGETHER}
    assert acknowledged <= counted.keys()
    assert len(acknowledged) > 0
    sys.stderr.write(f"{len(acknowledged)} commits; failed: {failed}; questions refused: {refused}\n")
    with Index.open(address) as index:
        assert index.check().ok


def _when_recovered(store: Any) -> dict[Any, int]:
    while True:  # until the time-out of this module
        try:
            return dict(snapshot_of(store).values("commit", 10**6).frequent)
        except IndexUnavailable:
            continue


def test_a_dead_node_is_one_line(address: str, likewise: Callable[..., Any]) -> None:
    with Index.create(address, dimensions=8) as index:
        index.add(_documents(30), vectors=_rows(30))
        app, node = create_app({"papers": address}), nodes()[1]
        with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
            node.stop()
            try:
                with pytest.raises(IndexUnavailable, match=f"{node.port}") as error:
                    index.count({"n": {">=": 0}})
                assert "\n" not in str(error.value)
                said = likewise("list", address)
                assert said.code == 3
                assert said.err.count("\n") == 1
                answer = client.post("/v1/indexes/papers/search", json={"query": "pear", "mode": "words"})
                assert (answer.status_code, answer.json()["slug"]) == (503, "index-unavailable")
            finally:
                node.start()
            answer = client.post("/v1/indexes/papers/search", json={"query": "pear", "mode": "words"})
            assert answer.json()["matched"] == 30
        assert index.count({"n": {">=": 0}}) == 30


def test_a_hung_node_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node holds its connections and answers nothing, so that the coordinator waits for it without end."""
    monkeypatch.setattr(connections, "NODE_SECONDS", 5)
    rows = _rows(30)
    with Index.create(address, dimensions=8) as index, Searcher(address) as searcher:
        index.add(_documents(30), vectors=rows)
        asks: tuple[Callable[[], object], ...] = (
            lambda: searcher.search_vector(rows[3], 1),
            lambda: searcher.count({"n": {">=": 0}}),
            lambda: index.remove(["d1"]),
        )
        searcher.search_vector(rows[3], 1)
        node = nodes()[1]
        with node.paused():
            for ask in asks:
                with pytest.raises(IndexUnavailable, match=r"the node 127\.0\.0\.1:\d+ did not answer") as error:
                    ask()
                assert "\n" not in str(error.value)
        assert [hit.uri for hit in searcher.search_vector(rows[3], 1)] == ["d3"]
        while True:  # until the time-out of this module: the write that was given up may hold its locks for a moment
            try:
                assert index.remove(["d1"], missing_ok=True) <= 1
                break
            except IndexUnavailable:
                continue
        assert len(index) == 29
        assert index.check().ok


def test_a_commit_that_a_node_has_not_completed_is_waited_for(address: str, coordinator: Node) -> None:
    """A shard that shows an earlier commit than the registry is what a crash between the two leaves."""
    with Index.create(address, dimensions=8) as index:
        index.add(_documents(30), vectors=_rows(30))
        with psycopg.connect(coordinator.uri, autocommit=True) as connection:
            name = address.partition("index=")[2]
            ((tables,),) = connection.execute("SELECT tables FROM likewise.index WHERE name = %s", (name,))
            connection.execute(f'UPDATE "{tables}".shard SET generation = generation - 1 WHERE id = 1')
            for refused in (index.count, index.check, lambda: index.check(repair=True), lambda: index.remove(["d1"])):
                with pytest.raises(IndexUnavailable, match="has not completed the last commit"):
                    refused()
            connection.execute(f'UPDATE "{tables}".shard SET generation = generation + 1 WHERE id = 1')
        assert index.remove(["d1"]) == 1


def test_a_node_is_added_and_takes_shards_while_they_are_read_and_written(address: str, coordinator: Node) -> None:
    """Citus moves a shard to another node, to a new node and back: no error, and no other answer."""
    rows, ended, failures = _rows(500), threading.Event(), list[Exception]()
    with Index.create(address, dimensions=8) as index, Searcher(address) as searcher:
        index.add(_documents(500), vectors=rows)
        asked = [0, 0]

        def answer(row: int) -> list[str]:
            return [hit.uri for hit in searcher.search_vector(rows[row], k=5, where="n < 500")]

        right = [answer(row) for row in range(20)]

        def until_ended(number: int, step: Callable[[int], bool]) -> None:
            try:
                while not ended.is_set():
                    assert step(asked[number])
                    asked[number] += 1
            except Exception as error:  # noqa: BLE001 - the test raises it
                failures.append(error)

        def write(number: int) -> bool:
            return len(index.add([Document(f"x{number}", "plum", metadata={"n": 10**6})], vectors=rows[:1]).added) == 1

        threads = [
            threading.Thread(target=until_ended, args=(0, lambda number: answer(number % 20) == right[number % 20])),
            threading.Thread(target=until_ended, args=(1, write)),
        ]
        for thread in threads:
            thread.start()
        try:
            one, other = nodes()[1:]
            with psycopg.connect(coordinator.uri, autocommit=True) as connection:
                shard = connection.execute(
                    "SELECT shardid FROM citus_shards WHERE nodeport = %s AND table_name = ("
                    "SELECT format('%%I.document', tables)::regclass FROM likewise.index WHERE name = %s)",
                    (one.port, address.partition("index=")[2]),
                ).fetchone()
                assert shard is not None
                added = new_node()
                connection.execute("SELECT citus_add_node('127.0.0.1', %s)", (added.port,))
                for source, target in ((one, other), (other, added), (added, one)):
                    connection.execute(
                        "SELECT citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'force_logical')",
                        (shard[0], source.port, target.port),
                    )
                connection.execute("SELECT citus_remove_node('127.0.0.1', %s)", (added.port,))
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert failures == []
        assert min(asked) > 0
        assert len(index) == 500 + asked[1]
        assert index.check().ok
