"""BM25 against its formula."""

from __future__ import annotations

import math

import pytest

from indexer.calibration.bm25 import Bm25

TEXTS = [["red", "fox", "red"], ["blue", "fox"], ["green", "bird", "sings", "loud"]]


def test_the_scores_are_those_of_the_formula() -> None:
    """Mean length 3: the first text is average, the second is damped by 1.2 (.25 + .75 * 2 / 3) = .9."""
    red, fox = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    expected = [red * 2 * 2.2 / (2 + 1.2) + fox, fox * 2.2 / 1.9, 0.0]
    bm25 = Bm25(TEXTS)
    assert bm25.scores(["red", "fox", "fox", "unknown"]).tolist() == pytest.approx(expected)
    assert [bm25.score(text, ["red", "fox"]) for text in TEXTS] == pytest.approx(expected)


def test_a_text_from_elsewhere_is_scored_by_the_same_statistics() -> None:
    assert Bm25(TEXTS).score(["red", "x", "y"], ["red", "unknown"]) == pytest.approx(math.log(1 + 2.5 / 1.5))
