"""The graph of an index in a database: what it answers equals brute force, and nobody waits while it is built."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from opened import store_of
from postgres_server import new_address, remove_index

from indexer import Document, Index
from indexer.filters.parse import parse
from indexer.stores.vectors import to_blobs
from likewise.postgres import connections, graph, selection, views, writer

COUNT, DIMENSIONS = 3000, 16
_CENTRES = np.random.default_rng(0).normal(size=(30, DIMENSIONS))
ROWS = _CENTRES[np.arange(COUNT) % 30] + np.random.default_rng(1).normal(scale=0.4, size=(COUNT, DIMENSIONS))
ROWS = (ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)).astype(np.float32)

STORED = np.frombuffer(b"".join(to_blobs(ROWS)), "<f2").reshape(ROWS.shape).astype(np.float32)


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    patch = pytest.MonkeyPatch()
    patch.setattr(writer, "GRAPH_PASSAGES", 1000)
    patch.setattr(selection, "PASSAGES_PER_NEIGHBOUR", 0.1)
    # Over so few rows the planner sorts them all.
    patch.setattr(views, "_SETTINGS", (*views._SETTINGS, "SET LOCAL enable_sort = off"))
    index = Index.create(new_address(), dimensions=DIMENSIONS)
    documents = [
        Document(f"d{i}", f"text {i}", metadata={"n": i, "cluster": i % 30, "half": i % 2 == 0}) for i in range(COUNT)
    ]
    index.add(documents, vectors=ROWS)
    index.compact()
    yield index
    patch.undo()
    remove_index(store_of(index).engine)
    index.close()


def test_it_is_searched_with_settings_that_the_server_knows(index: Index) -> None:
    with store_of(index).snapshot() as snapshot:
        assert not snapshot.dense(ROWS[0], 10).exact
        view = snapshot._view  # type: ignore[attr-defined]
        names = ("hnsw.iterative_scan", "hnsw.max_scan_tuples", "hnsw.ef_search")
        found = [view.connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
        assert found == ["strict_order", "200000", str(view.state.row.ef_search)]
        plan = "\n".join(
            row[0]
            for row in view.rows(
                f"EXPLAIN SELECT id FROM {{tables}}.passage p ORDER BY p.vector <#> '{ROWS[0].tolist()}' LIMIT 10"
            )
        )
        assert "passage_graph" in plan


@pytest.mark.parametrize(
    ("where", "share"),
    [(None, 1.0), ("half = true", 0.5), ("cluster < 3", 0.1), ("n < 1500 and cluster < 6", 0.1), ("n < 30", 0.01),
     ("n = 7", 1 / COUNT)],
)  # fmt: skip
def test_filters_of_every_width_equal_brute_force(index: Index, where: str | None, share: float) -> None:
    numbers = np.arange(COUNT)
    allowed = {
        None: numbers >= 0,
        "half = true": numbers % 2 == 0,
        "cluster < 3": numbers % 30 < 3,
        "n < 1500 and cluster < 6": (numbers < 1500) & (numbers % 30 < 6),
        "n < 30": numbers < 30,
        "n = 7": numbers == 7,
    }[where]
    assert allowed.mean() == pytest.approx(share)
    condition = None if where is None else parse(where)
    right = asked = 0
    with store_of(index).snapshot() as snapshot:
        for question in ROWS[:20]:
            for unit in ("document", "passage"):
                ranking = snapshot.dense(question, 10, condition, unit)  # type: ignore[arg-type]
                assert ranking.matched == allowed.sum()
                assert len(ranking.passages) == min(10, allowed.sum())
                assert ranking.exact == (allowed.sum() <= 100)
                uris = [int(passage.uri[1:]) for passage in snapshot.passages_by_id(ranking.passages.tolist())]
                assert allowed[uris].all()
                truth = STORED @ question
                np.testing.assert_allclose(ranking.scores, truth[uris], atol=2e-6)
                best = np.sort(truth[allowed])[::-1][: len(uris)]
                right += int((ranking.scores >= best[-1] - 2e-6).sum())
                asked += len(best)
                if ranking.exact:
                    np.testing.assert_allclose(ranking.scores, best, atol=2e-6)
    assert right >= 0.95 * asked  # the levels of a graph are random


def test_the_graph_is_tuned_to_the_recall_that_is_asked_for(index: Index) -> None:
    def width() -> int:
        with store_of(index).snapshot() as snapshot:
            (segment,) = snapshot.info().segments
        return int(segment["ef_search"])

    with store_of(index).writer() as changes:
        changes.settle(recall=0.1)
        assert width() == 40
        changes.settle(recall=0.99)
    with store_of(index).snapshot() as snapshot:
        recall = snapshot.recall()
        assert (recall.exact, recall.questions) == (False, 200)
        assert recall.recall >= 0.97


@pytest.mark.slow
def test_nobody_waits_while_the_graph_is_built(index: Index) -> None:
    store = store_of(index)
    with store.snapshot() as reader:
        before = reader.dense(ROWS[5], 5).passages.tolist()
        building = threading.Thread(target=index.compact)
        building.start()
        # The building waits for this reader. An index that is dropped in a plain transaction would wait as well, and
        # every later question behind it.
        for _ in range(20):
            building.join(0.02)
            with store.snapshot() as later:
                assert later.dense(ROWS[5], 5).passages.tolist() == before
        with Index.open(index.address) as other:  # the threads of a process take turns
            other.add([Document("later", "text")], vectors=ROWS[:1])
            other.remove(["later"])
        assert building.is_alive()
    building.join()
    assert index.check().ok


@pytest.mark.slow
def test_it_goes_and_comes_with_the_kind_that_is_asked_for(index: Index) -> None:
    store = store_of(index)
    index.compact("exact")
    with store.snapshot() as snapshot:
        assert snapshot.dense(ROWS[5], 5).exact
        assert snapshot.info().segments == ()
    with store.writer() as changes:
        changes.settle()
    with store.snapshot() as snapshot:
        assert not snapshot.dense(ROWS[5], 5).exact
    assert index.check().ok


def test_a_build_has_at_least_the_memory_that_the_server_gives(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def replace_graph(connection: connections.DeadlineConnection, tables: str) -> None:
        given.extend(connection.execute("SHOW maintenance_work_mem").fetchone() or ())

    monkeypatch.setattr(graph, "_replace", replace_graph)
    with store_of(index).snapshot() as snapshot:
        tables = snapshot._view.state.row.tables  # type: ignore[attr-defined]
    with store_of(index)._connections.connection() as connection:  # type: ignore[attr-defined]
        for own in ("1MB", "3GB"):
            connection.execute(f"SET maintenance_work_mem = '{own}'")
            graph._build(connection, tables, 100_000, 384)
    assert given == ["340800kB", "3GB"]
