"""The baselines that fusion is compared with, against sums done by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fusion import left_out, main, min_max, reciprocal_rank_fusion


def test_reciprocal_ranks_are_summed_as_published() -> None:
    scores = reciprocal_rank_fusion([[5, 2, 9], [9, 5]])
    assert scores == pytest.approx({5: 1 / 61 + 1 / 62, 2: 1 / 62, 9: 1 / 63 + 1 / 61})
    assert reciprocal_rank_fusion([[1], [1]], k=0) == {1: 2.0}


def test_min_max_reaches_from_0_to_1() -> None:
    assert min_max(np.array([3.0, 1.0, 2.0])).tolist() == [1.0, 0.0, 0.5]
    assert min_max(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert min_max(np.empty(0)).size == 0


def test_what_is_chosen_for_an_origin_is_best_for_the_others() -> None:
    ratios = np.array([[1.0, 0.9], [1.0, 0.9], [0.7, 1.0]])
    assert left_out(["a", "a", "b"], ratios) == [1, 1, 0]


def test_a_folder_without_a_collection_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fusion", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = f"{tmp_path}: has no judged collection, which is a folder with corpus.jsonl and qrels/test.tsv"
    assert ended.value.code == said
