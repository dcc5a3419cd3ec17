"""Every filter on every kind of segment against numpy: as many hits as there are, and the right ones."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from opened import snapshot_of

from indexer import Document, Index
from indexer.stores.addresses.open import open_store
from indexer.stores.local.segments import masks
from indexer.stores.vectors import from_blobs, to_blobs
from search import Searcher

DIMENSIONS = 32


def _clustered(count: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(64, DIMENSIONS))
    rows = centres[np.arange(count) % 64] + 0.6 * generator.normal(size=(count, DIMENSIONS))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _filters(count: int, many: int) -> list[tuple[str, np.ndarray]]:
    """Filters of every selectivity; those on `cluster` keep rows that lie together, perhaps far from the question."""
    chance, ids = random.Random(1), np.arange(count)
    found = []
    for number in range(many):
        share = 10 ** chance.uniform(-5, 0)
        low = chance.randrange(count)
        high = low + max(1, int(share * count))
        cluster = chance.randrange(64)
        match number % 4:
            case 0:
                found.append((f"scattered < {high - low}", ids * 7919 % count < high - low))
            case 1:
                found.append((f"n >= {low} and n < {high}", (ids >= low) & (ids < high)))
            case 2:
                found.append((f"cluster <= {cluster}", ids % 64 <= cluster))
            case 3:
                found.append((f"not cluster = {cluster} and not n < {low}", (ids % 64 != cluster) & (ids >= low)))
    return found


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "kind", ["approximate", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("tail", "exact"))]
)
@pytest.mark.parametrize(
    ("count", "many"), [(6000, 120), pytest.param(100_000, 1000, marks=pytest.mark.long, id="large")]
)
def test_filters_return_as_many_as_match_and_the_nearest(tmp_path: Path, kind: str, count: int, many: int) -> None:
    rows = _clustered(count)
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        documents = [
            Document(str(i), "text", metadata={"n": i, "cluster": i % 64, "scattered": i * 7919 % count})
            for i in range(count)
        ]
        index.add(documents, vectors=rows)
        if kind != "tail":
            index.compact(kind)
        index.remove(["0", "1"])
    alive = np.arange(count) > 1
    questions = _clustered(64)[np.random.default_rng(2).permutation(64)]
    bands: dict[int, list[float]] = {}
    with Searcher(tmp_path / "x.index") as searcher:
        for number, (where, allowed) in enumerate(_filters(count, many)):
            question = questions[number % 64]
            scores = np.where(allowed & alive, rows @ question, -2)
            matching = int((allowed & alive).sum())
            hits = searcher.search_vector(question, 10, where=where)
            assert (len(hits), hits.matched) == (min(10, matching), matching), where
            if not matching:
                continue
            truth = set(np.argpartition(-scores, len(hits) - 1)[: len(hits)].tolist())
            recall = len(truth & {int(hit.uri) for hit in hits}) / len(hits)
            if hits.exact:
                assert recall >= 0.9, where  # two rows may be equal to float16
            bands.setdefault(int(np.log10(max(matching, 1) / count) - 0.5), []).append(recall)
    assert np.mean([recall for band in bands.values() for recall in band]) >= 0.98
    assert all(np.mean(band) >= 0.9 for band in bands.values()), bands


@pytest.mark.slow
def test_exact_is_said_only_of_brute_force(tmp_path: Path) -> None:
    rows = _clustered(12_000)
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        index.add([Document(str(i), "text", metadata={"n": i}) for i in range(len(rows))], vectors=rows)
        index.compact("approximate")
        assert [(row["kind"], row["count"]) for row in index.info().segments] == [("approximate", len(rows))]
        measured = snapshot_of(index).recall()
        assert measured.low <= measured.recall <= measured.high
        assert measured.recall >= 0.95
    with Searcher(tmp_path / "x.index") as searcher:
        assert not searcher.search_vector(rows[5], 10).exact
        assert searcher.search_vector(rows[5], 10, where="n < 500").exact
        brute = snapshot_of(searcher).dense(rows[5], 10, exact=True)
        assert brute.exact
        truth = np.argsort(-(rows @ rows[5]), kind="stable")[:10]
        shown = snapshot_of(searcher).passages_by_id(brute.passages.tolist())
        assert {int(passage.uri) for passage in shown} == set(truth.tolist())
        assert len(searcher.search_vector(rows[5], 10_000)) == 10_000


@pytest.mark.parametrize("rows_per_listed_row", [0, 10**9], ids=["gathered", "scanned"])
def test_few_allowed_rows_are_found_exactly_however_they_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_listed_row: int
) -> None:
    monkeypatch.setattr(masks, "_ROWS_PER_LISTED_ROW", rows_per_listed_row)
    rows = from_blobs(to_blobs(_clustered(2_000)), DIMENSIONS)  # as they are stored
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        index.add([Document(str(i), "text", metadata={"n": i}) for i in range(len(rows))], vectors=rows)
        index.compact("approximate")
        index.remove(["7"])
    with Searcher(tmp_path / "x.index") as searcher:
        for last in (1, 5, 300, 1_999):
            hits = searcher.search_vector(rows[7], 10, where=f"n < {last}")
            allowed = [i for i in range(last) if i != 7]
            truth = sorted(allowed, key=lambda i: -float(rows[i] @ rows[7]))[:10]
            assert [int(hit.uri) for hit in hits] == truth
            assert (hits.exact, hits.matched) == (True, len(allowed))


def test_ranking_reads_memory_alone_and_showing_takes_one_statement(tmp_path: Path) -> None:
    rows, statements = _clustered(300), list[str]()
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        documents = [Document(str(i), f"word{i % 7} text") for i in range(len(rows))]
        index.add(documents[:200], vectors=rows[:200])
        index.compact()
        index.add(documents[200:], vectors=rows[200:])
    store = open_store(tmp_path / "x.index")
    for _ in range(2):  # the first question opens what the second finds open
        with store.snapshot() as snapshot:
            statements.clear()
            snapshot._view.connection.set_trace_callback(statements.append)
            snapshot.words("word3", 10)
            snapshot.dense(rows[0], 10)
            candidates = snapshot.candidates(rows[0], "word3", 100, None, "document", exact=False)
            ranking = len(statements)
            snapshot.passages_by_id(candidates.passages[:10].tolist())
            showing = len(statements) - ranking
            snapshot._view.connection.set_trace_callback(None)
    store.close()
    assert (ranking, showing) == (0, 1), statements


def test_candidates_have_every_passage_of_a_document_that_was_replaced(tmp_path: Path) -> None:
    rows = _clustered(40)
    with Index.create(tmp_path / "x.index", dimensions=DIMENSIONS) as index:
        index.add([Document(str(i), f"text {i}") for i in range(20)], vectors=rows[:20])
        index.compact()
        index.add([Document("3", "another text")], vectors=rows[30:31])  # keeps its id, in a passage with a new one
        index.compact()
        index.add([Document("5", "another text")], vectors=rows[31:32])
        index.remove(["8"])
        candidates = snapshot_of(index).candidates(rows[31], "text", 100, None, "document", exact=False)
        shown = snapshot_of(index).passages_by_id(candidates.passages.tolist())
    vectors = {str(i): rows[i] for i in range(20) if i != 8} | {"3": rows[30], "5": rows[31]}
    assert {passage.uri for passage in shown} == set(vectors)
    expected = [float(vectors[passage.uri] @ rows[31]) for passage in shown]
    np.testing.assert_allclose(candidates.cosines, expected, atol=1e-3)
