"""An index over three servers: moved there, asked while one is down, and completed after a kill in the middle.

Runs where LIKEWISE_TEST_SHARDS names a folder (postgres_nodes.py). tests/contracts/test_store.py holds such an index to
everything that a store must do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attacks
import numpy as np
import psycopg
import pytest

from indexer import Document, Index
from indexer.copying import distribute
from indexer.errors import StorageError
from indexer.stores.postgres import dense, shards
from indexer.stores.postgres.store import PostgresStore
from indexer.stores.postgres.views import View
from search import Searcher

pytestmark = pytest.mark.skipif("LIKEWISE_TEST_SHARDS" not in os.environ, reason="LIKEWISE_TEST_SHARDS is not set")

WORDS = "apple pear plum fig quince cherry".split()  # noqa: SIM905
DIMENSIONS = 8


def texts(count: int, first: int = 0) -> list[Document]:
    return [
        Document(
            f"d{number}",
            f"{WORDS[number % 6]} and {WORDS[number % 5]}",
            metadata={"n": number, "half": number % 2},
        )
        for number in range(first, first + count)
    ]


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)


@pytest.fixture
def uris() -> list[str]:
    from postgres_nodes import nodes

    return [node.uri for node in nodes()]


@pytest.fixture
def address(uris: list[str], request: pytest.FixtureRequest) -> str:
    return f"{uris[0]}?index={quote(request.node.name + str(time.time_ns()), safe='')}"


@pytest.fixture
def filled(address: str) -> str:
    with Index.create(address, dimensions=DIMENSIONS) as index:
        index.add(texts(300), vectors=rows(300))
    return address


def shell(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    program = "from search.cli.program import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def answers(address: str) -> dict[str, list[tuple[str, float]]]:
    with Searcher(address) as searcher:
        found = {}
        for where in (None, "n < 100", "n >= 297", "not n < 250 or n in (3, 4)"):
            for mode in ("dense", "words", "hybrid"):
                hits = searcher.search("apple fig", 7, where, mode, vector=None if mode == "words" else rows(1, 9)[0])
                found[f"{mode} {where}"] = [(hit.uri, round(hit.score, 5)) for hit in hits]
        return found


def test_a_move_to_other_servers_changes_no_answer(filled: str, uris: list[str]) -> None:
    before = answers(filled)
    line = json.loads(shell("distribute", filled, *(f"--shard={uri}" for uri in uris), "--json").stdout)
    assert (line["documents"], line["copied"], line["shards"]) == (300, 300, uris)
    assert answers(filled) == before
    with Index.open(filled) as index:  # and it goes on being written to
        assert len(index.add([Document("new", "quince")], vectors=rows(1, 5)).added) == 1
        assert index.remove(["d7", "d8"]) == 2
        assert index.check().ok
    shell("distribute", filled, f"--shard={uris[0]}", f"--shard={uris[2]}")  # a server is taken away
    with Index.open(filled) as index:
        assert len(index) == 299 and index.check().ok
    assert "named twice" in shell("distribute", filled, f"--shard={uris[0]}", f"--shard={uris[0]}", code=2).stderr


def parts(uri: str) -> set[str]:
    with psycopg.connect(uri) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^likewise_.*_part$'").fetchall()
    return {name for (name,) in rows}


def test_a_move_that_fails_leaves_nothing_on_the_shards(
    filled: str, uris: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [parts(uri) for uri in uris]

    def fail(*_: object) -> None:
        raise StorageError("the coordinator's transaction fails")

    for name in ("register", "create_tables"):  # after the parts were made, and before
        with monkeypatch.context() as patch, pytest.raises(StorageError, match="transaction fails"):
            patch.setattr(f"indexer.stores.postgres.store.{name}", fail)
            distribute(filled, uris)
        assert [parts(uri) for uri in uris] == before
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="transaction fails"):
        patch.setattr("indexer.stores.postgres.store.register", fail)
        patch.setattr("indexer.stores.postgres.leftovers.remove_empty_parts", lambda *_: 0)  # as if it was killed
        distribute(filled, uris)
    assert [len(parts(uri) - one) for uri, one in zip(uris, before, strict=True)] == [1, 1, 1]
    assert distribute(filled, uris).documents == 300
    assert [len(parts(uri) - one) for uri, one in zip(uris, before, strict=True)] == [1, 1, 1]
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="transaction fails"):
        patch.setattr("indexer.stores.postgres.store.register", fail)
        patch.setattr("indexer.stores.postgres.leftovers.remove_empty_parts", lambda *_: 0)
        distribute(filled, uris[:2])
    with Index.open(filled) as index:
        notes = index.check().notes
        assert sum("which a move that failed has left; --repair removes it" in note for note in notes) == 2
        assert "removed 2 empty schema(s) of moves that failed from the shards" in index.check(repair=True).notes
        assert index.check().ok and len(index) == 300
    assert [len(parts(uri) - one) for uri, one in zip(uris, before, strict=True)] == [1, 1, 1]


def test_a_move_that_was_broken_off_is_named_and_removed(filled: str, uris: list[str]) -> None:
    before = [parts(uri) for uri in uris]

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distribute(filled, uris, fail)
    assert [len(parts(uri) - one) for uri, one in zip(uris, before, strict=True)] == [1, 1, 1]
    with Index.open(filled) as index:
        notes = " ".join(index.check().notes)
    assert f'likewise distribute goes on with it, likewise copy --drop "{filled}" removes it' in notes
    shell("copy", "--drop", filled)
    assert [parts(uri) for uri in uris] == before
    with Index.open(filled) as index:
        assert len(index) == 300 and index.check().ok and "unfinished" not in " ".join(index.check().notes)


@pytest.fixture
def distributed(filled: str, uris: list[str]) -> Iterator[str]:
    shell("distribute", filled, *(f"--shard={uri}" for uri in uris))
    yield filled


def test_a_graph_is_looked_for_on_its_shard(distributed: str, uris: list[str]) -> None:
    with Index.open(distributed) as index:
        index.compact("approximate")
        assert index.check().ok
        with psycopg.connect(uris[1]) as connection:
            query = "SELECT schemaname FROM pg_indexes WHERE indexname = 'passage_graph'"
            ((part,),) = connection.execute(query).fetchall()
            connection.execute(f"DROP INDEX {part}.passage_graph")
        (problem,) = index.check().problems
        assert "the graph of its passages is missing" in problem and uris[1] in problem
        assert index.check(repair=True).ok
        index.compact("exact")


def test_a_missing_shard_is_an_error_or_a_note(distributed: str) -> None:
    from postgres_nodes import nodes

    whole = {hit.uri for hit in search_all(Searcher(distributed))}
    assert len(whole) == 300
    down = nodes()[2]
    down.stop()
    try:
        with Searcher(distributed) as searcher, pytest.raises(StorageError, match="--partial"):
            searcher.search("apple", mode="words")
        with Searcher(distributed, partial=True) as searcher:
            some = {hit.uri for hit in search_all(searcher)}
            assert 150 < len(some) < 250 and some < whole
            for mode in ("dense", "words", "hybrid"):
                hits = searcher.search("apple", 400, "n >= 10", mode, vector=None if mode == "words" else rows(1, 9)[0])
                assert {hit.uri for hit in hits} <= some
                assert hits.matched == len(hits)
                assert any("shard 2" in note and str(down.port) in note for note in hits.notes)
        failed = shell("search", distributed, "apple", "--mode", "words", code=3)
        assert "shard" in failed.stderr and failed.stderr.count("\n") == 1
        done = shell("search", distributed, "apple", "--mode", "words", "--partial", "--json")
        assert "shard 2" in str(json.loads(done.stdout)["notes"])
    finally:
        down.start()
    time.sleep(5.5)  # how long a shard is remembered to be down
    with Searcher(distributed, partial=True) as searcher:
        assert {hit.uri for hit in search_all(searcher)} == whole
        assert not searcher.search("apple", mode="words").notes


def search_all(searcher: Searcher) -> list:  # type: ignore[type-arg]
    return list(searcher.search("", 1000, vector=rows(1, 9)[0]))


@pytest.fixture(scope="module")
def graphs() -> Iterator[tuple[str, np.ndarray]]:
    """An index with a graph on each server, and its vectors: the higher `n`, the higher their first component."""
    from postgres_nodes import nodes

    uris = [node.uri for node in nodes()]
    address = f"{uris[0]}?index=graphs{time.time_ns()}"
    vectors = np.random.default_rng(2).normal(size=(3000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors[np.argsort(vectors[:, 0])]
    with Index.create(address, dimensions=32):
        pass
    with pytest.MonkeyPatch.context() as patch:
        # Over so few rows the planner sorts them all.
        patch.setattr(shards, "_OPTIONS", f"{shards._OPTIONS} -c enable_sort=off")
        patch.setattr(dense, "EXACT_PASSAGES", 100)
        distribute(address, uris)
        with Index.open(address) as index:
            index.add(texts(3000), vectors=vectors)
            index.compact(kind="approximate")
        yield address, vectors


def nearest(vectors: np.ndarray, question: np.ndarray, allowed: np.ndarray) -> list[str]:
    scores = np.where(allowed, vectors.astype(np.float16).astype(np.float32) @ question, -2)
    return [f"d{number}" for number in np.argsort(-scores)[:10]]


def test_a_wide_filter_is_answered_by_the_graphs(
    graphs: tuple[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, vectors = graphs
    fetched: list[int] = []
    rows_of = View.rows

    def rows(view: View, text: str, *parameters: object, binary: bool = False) -> list[Any]:
        found = rows_of(view, text, *parameters, binary=binary)
        if "AS distance" in text:
            fetched.append(len(found))
        return found

    monkeypatch.setattr(View, "rows", rows)
    numbers = np.arange(len(vectors))
    right = 0
    with Searcher(address) as searcher:
        for question in vectors[::100]:
            hits = searcher.search("", 10, "n >= 0 and half = 0", vector=question)
            assert (hits.matched, len(hits), hits.exact) == (1500, 10, False)
            right += len({hit.uri for hit in hits} & set(nearest(vectors, question, numbers % 2 == 0)))
        assert right > 0.95 * 300
        assert max(fetched) < 500  # of 1,500
        # What the filter leaves lies opposite to the question: none of it is among the nearest.
        monkeypatch.setattr(dense, "_MAX_ROWS_OF_SHARD", 100)
        question = vectors[0]
        hits = searcher.search("", 10, "n >= 2500", vector=question)
        assert hits.exact and [hit.uri for hit in hits] == nearest(vectors, question, numbers >= 2500)


def test_the_graphs_are_searched_as_wide_as_asked(graphs: tuple[str, np.ndarray]) -> None:
    address, _ = graphs
    questions = np.random.default_rng(3).normal(size=(100, 32)).astype(np.float32)
    questions /= np.linalg.norm(questions, axis=1, keepdims=True)

    def found(ef_search: int) -> int:
        """How many of the nearest ten are found, over 100 questions."""
        row = replace(view.state.row, ef_search=ef_search)
        narrowed = replace(view, state=replace(view.state, row=row))
        both = 0
        for question in questions:
            by_graph, exact = (
                dense.rank(narrowed, question, 10, None, "passage", by_force) for by_force in (False, True)
            )
            both += len(set(by_graph.passages.tolist()) & set(exact.passages.tolist()))
        return both

    store = PostgresStore.open(address)
    with closing(store), store.snapshot() as snapshot:
        view = snapshot._view
        assert found(1) < found(400)


WRITER = """
import sys
import numpy as np
from indexer import Document, Index
address, first = sys.argv[1], int(sys.argv[2])
rows = np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32)
with Index.open(address) as index:
    for batch in range(first, first + 1000, 20):
        index.add([Document(f"w{n}", f"plum {n}", metadata={"n": n}) for n in range(batch, batch + 20)], vectors=rows)
        print(batch, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(attacks.TIMEOUT_S)
@pytest.mark.parametrize("victim", ["client", "shard", "coordinator"])
def test_what_was_acknowledged_survives_a_kill(distributed: str, victim: str, tmp_path: Path) -> None:
    """Killed at random moments: no acknowledged document is lost or half there, and a run again completes it."""
    from postgres_nodes import nodes

    chance = np.random.default_rng(4)
    for attempt in range(attacks.KILLS):
        first = 1000 * attempt
        command = [sys.executable, "-c", WRITER, distributed, str(first)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(3)]
        time.sleep(float(chance.uniform(0, 0.3)))
        if victim == "client":
            process.kill()
        else:
            node = nodes()[0 if victim == "coordinator" else 1]
            os.kill(node.pid, signal.SIGKILL)
        rest, _ = process.communicate(timeout=90)
        acknowledged += [int(line) for line in rest.split()]
        if victim != "client":
            for _ in range(40):
                try:
                    node.start()
                    break
                except subprocess.CalledProcessError:  # the processes of the killed server are still ending
                    time.sleep(0.25)
        with Index.open(distributed) as index:
            for batch in acknowledged:
                for number in range(batch, batch + 20):
                    document = index.get(f"w{number}")
                    assert document is not None and document.text == f"plum {number}"
            last = acknowledged[-1] + 20
            again = [Document(f"w{n}", f"plum {n}", metadata={"n": n}) for n in range(last, last + 20)]
            index.add(again, vectors=rows(20, 1))
            index.check(repair=True)
            assert index.check().ok
            assert len({document.uri for document in index}) == len(index)
