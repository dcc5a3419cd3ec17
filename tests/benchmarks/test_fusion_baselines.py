"""The baselines that fusion is compared with, against sums done by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fusion import (
    Candidates,
    Legs,
    left_out,
    main,
    min_max,
    reciprocal_rank_fusion,
    score_by_each_way,
)
from indexer.settings import Probed
from likewise.evaluation.measures import Qrels


def test_reciprocal_ranks_are_summed_as_published() -> None:
    scores = reciprocal_rank_fusion([[5, 2, 9], [9, 5]])
    assert scores == pytest.approx({5: 1 / 61 + 1 / 62, 2: 1 / 62, 9: 1 / 63 + 1 / 61})
    assert reciprocal_rank_fusion([[1], [1]], k=0) == {1: 2.0}


def test_min_max_reaches_from_0_to_1() -> None:
    assert min_max(np.array([3.0, 1.0, 2.0])).tolist() == [1.0, 0.0, 0.5]
    assert min_max(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert min_max(np.empty(0)).size == 0


@pytest.mark.parametrize(("language", "hybrid"), [("en", [1.5749, 2.4251]), ("de", [0.8428, 3.1572])])
def test_each_way_of_joining_scores_the_same_candidates(language: str, hybrid: list[float]) -> None:
    found = Candidates(
        ["a", "b"], np.array([0.5, 0.1], np.float32), np.array([3.0, 1.0]), np.array([0.0, 4.0]), terms=1, pieces=2.4
    )
    scores = score_by_each_way(found, Legs({}, Qrels({}), Probed(), language))
    assert scores["hybrid"] == pytest.approx(hybrid, abs=1e-4)
    assert scores["RRF, k = 60"] == pytest.approx([1 / 61 + 1 / 62] * 2)
    assert scores["min-max .7"] == pytest.approx([0.7, 0.3])


def test_what_is_chosen_for_an_origin_is_best_for_the_others() -> None:
    ratios = np.array([[1.0, 0.9], [1.0, 0.9], [0.7, 1.0]])
    assert left_out(["a", "a", "b"], ratios) == [1, 1, 0]


def test_a_folder_without_a_collection_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fusion", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = f"{tmp_path}: has no judged collection, which is a folder with corpus.jsonl and qrels/test.tsv"
    assert ended.value.code == said
