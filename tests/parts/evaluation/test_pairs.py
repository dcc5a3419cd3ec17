"""Pairs against brute force over all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Document, Index
from indexer.stores import pairs
from indexer.stores.pairs import nearest_pairs
from indexer.stores.reading.document_rows import stored_rows
from likewise.evaluation.pairs import pairs_of_passages, pairs_of_texts

Vectors = np.ndarray


def unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def brute(rows: Vectors, count: int, min_score: float = -9, groups: Vectors | None = None) -> set[tuple[int, int]]:
    first, second = np.triu_indices(len(rows), 1)
    scores = (rows.astype(np.float64) @ rows.T.astype(np.float64))[first, second]
    kept = scores >= min_score
    if groups is not None:
        kept &= groups[first] != groups[second]
    order = np.argsort(-scores[kept], kind="stable")[:count]
    return set(zip(first[kept][order].tolist(), second[kept][order].tolist(), strict=True))


def found(rows: Vectors, count: int, **settings: Any) -> set[tuple[int, int]]:
    """Return the pairs, after checking that each is there once, best first and with its score."""
    pairs = nearest_pairs(rows, count, **settings)
    assert np.all(np.diff(pairs.scores) <= 0)
    assert np.allclose(pairs.scores, np.einsum("nd,nd->n", rows[pairs.first], rows[pairs.second]), atol=1e-6)
    each = set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(each) == len(pairs.scores)
    return each


@pytest.mark.parametrize("count", [1, 20, 700, 10**6])
@pytest.mark.parametrize("small", [False, True])
def test_pairs_are_those_of_brute_force(count: int, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 rows that are near to each other have 435 pairs, more than each row is first searched for."""
    random = np.random.default_rng(0)
    rows = unit(random.normal(size=(300, 12)))
    rows[50:80] = unit(rows[50] + random.normal(size=(30, 12)) * 0.1)
    if small:  # several blocks each way
        monkeypatch.setattr(pairs, "_BLOCK_QUESTIONS", 37)
        monkeypatch.setattr(pairs, "_BLOCK_ROWS", 91)
        monkeypatch.setattr(pairs, "_MAX_NEIGHBOURS", 5000)
    assert found(rows, count) == brute(rows, count)
    assert found(rows, count, min_score=0.6) == brute(rows, count, min_score=0.6)
    groups = random.integers(0, 20, 300)
    assert found(rows, count, groups=groups) == brute(rows, count, groups=groups)


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_few_rows(rows: int) -> None:
    vectors = unit(np.random.default_rng(1).normal(size=(rows, 4)))
    assert found(vectors, 5) == brute(vectors, 5)


def test_equal_rows_end_the_search() -> None:
    pairs = nearest_pairs(np.tile(unit(np.ones((1, 8))), (3000, 1)), 10)
    assert np.allclose(pairs.scores, 1)
    assert len(set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))) == 10


def test_one_group_has_no_pair() -> None:
    assert found(unit(np.random.default_rng(2).normal(size=(100, 4))), 5, groups=np.zeros(100, np.int64)) == set()


def test_texts_that_are_the_same_count_as_one(encoder: Any) -> None:
    texts = ["the bread is old", "stars explode", "the bread is stale", "stars explode", "stars explode"]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    report = pairs_of_texts(documents, encoder, 2)
    best = report.pairs[0]
    assert (best.first.uri, best.second.uri) == ("0", "2")
    assert best.score == pytest.approx(float(encoder.encode(texts[:1])[0] @ encoder.encode(texts[2:3])[0]), abs=1e-6)
    assert [(each.uri, each.count) for each in report.repeated] == [("1", 3)]
    assert (report.texts, report.cut) == (3, 0)


def test_long_texts_are_cut_and_counted(encoder: Any) -> None:
    documents = [Document("a", "word " * 50), Document("b", "word " * 80 + "end"), Document("c", "short")]
    report = pairs_of_texts(documents, encoder, 1)
    assert report.cut == 2
    assert report.pairs[0].score == pytest.approx(1)


def test_pairs_of_an_index_are_of_different_documents(encoder: Any, tmp_path: Path) -> None:
    words = ["yeast", "bread", "oven", "dough", "flour", "salt", "water", "crust"]
    random = np.random.default_rng(3)
    texts = [" ".join(random.choice(words, 70)) for _ in range(30)]
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"d{number}", text) for number, text in enumerate(texts)])
        index.remove(["d4"])
        ids, owners, rows = _stored(index)
        assert len(ids) > 29  # several passages a document
        report = pairs_of_passages(store_of(index), 50)
    exact = rows.astype(np.float64)
    scores = sorted((exact[i] @ exact[j] for i, j in brute(exact, 50, groups=owners)), reverse=True)
    assert [pair.score for pair in report.pairs] == pytest.approx(scores, abs=1e-6)
    assert [pair for pair in report.pairs if pair.first.uri == pair.second.uri] == []
    assert [
        side for side in (report.pairs[0].first,) if not texts[int(side.uri[1:])][side.start :].startswith(side.text)
    ] == []


def _stored(index: Index) -> tuple[Vectors, Vectors, Vectors]:
    with store_of(index)._views.view() as view:
        return stored_rows(view)
