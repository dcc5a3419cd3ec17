"""Every filter on every kind of segment against numpy: as many hits as there are, and the right ones."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from opened import snapshot_of

from indexer import Document, Index
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
@pytest.mark.parametrize("kind", ["tail", "exact", "approximate"])
@pytest.mark.parametrize(
    ("count", "many"), [(6000, 120), pytest.param(100_000, 2000, marks=pytest.mark.slow, id="large")]
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
            hits = searcher.search_vector(question, 10, where)
            assert (len(hits), hits.matched) == (min(10, matching), matching), where
            if not matching:
                continue
            truth = set(np.argsort(-scores, kind="stable")[: len(hits)].tolist())
            recall = len(truth & {int(hit.uri) for hit in hits}) / len(hits)
            if hits.exact:
                assert recall >= 0.9, where  # two rows may be equal to float16
            bands.setdefault(int(np.log10(max(matching, 1) / count) - 0.5), []).append(recall)
    assert np.mean([recall for band in bands.values() for recall in band]) >= 0.98
    assert all(np.mean(band) >= 0.9 for band in bands.values()), bands


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
        assert searcher.search_vector(rows[5], 10, "n < 500").exact
        brute = snapshot_of(searcher).dense(rows[5], 10, exact=True)
        assert brute.exact
        truth = np.argsort(-(rows @ rows[5]), kind="stable")[:10]
        shown = snapshot_of(searcher).passages_by_id(brute.passages.tolist())
        assert {int(passage.uri) for passage in shown} == set(truth.tolist())
        assert len(searcher.search_vector(rows[5], 10_000)) == 10_000
