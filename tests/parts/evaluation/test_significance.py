"""The paired bootstrap against scipy's, and properties that must hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likewise.evaluation.significance import estimate_averages, estimate_correlations


@pytest.fixture
def judged() -> np.ndarray:
    return np.round(np.random.default_rng(1).random(400) * 5, 1)  # with ties, as in STS


def test_a_system_against_itself_is_no_difference(judged: np.ndarray) -> None:
    noisy = judged + np.random.default_rng(2).normal(size=400)
    for estimates in (estimate_correlations([noisy, noisy], judged), estimate_averages([noisy, noisy])):
        assert [each.p for each in estimates] == [1.0, 1.0]
        assert estimates[0] == estimates[1]


def test_correlations_and_intervals_are_scipys(judged: np.ndarray) -> None:
    noisy = judged + np.random.default_rng(2).normal(size=400)
    (found,) = estimate_correlations([noisy], judged)
    assert found.value == pytest.approx(100 * scipy.stats.spearmanr(noisy, judged).statistic)
    theirs = scipy.stats.bootstrap(
        (noisy, judged),
        lambda x, y: 100 * scipy.stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="percentile",
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(tuple(theirs), abs=0.5)


def test_the_interval_of_an_average_is_the_normal_one() -> None:
    values = np.random.default_rng(4).normal(10, 3, size=900)
    (found,) = estimate_averages([values])
    half = 1.96 * values.std() / 30
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)


def test_a_small_steady_difference_is_seen_and_chance_is_not() -> None:
    """Values vary much more between questions than between both systems, so only pairing finds the difference."""
    random = np.random.default_rng(5)
    first = random.normal(0.5, 0.3, size=300)
    steady, chance = first - 0.01 + random.normal(0, 0.02, size=300), random.permutation(first)
    _, small, none = estimate_averages([first, steady, chance])
    assert small.p < 0.01
    assert none.p > 0.9
    assert small.low < first.mean() < small.high  # unpaired intervals overlap


def test_equal_cosines_correlate_with_nothing(judged: np.ndarray) -> None:
    found = estimate_correlations([judged, np.ones(400)], judged)
    assert found[0].value == pytest.approx(100)
    assert (found[1].value, found[1].low, found[1].high) == (0, 0, 0)
    assert found[1].p < 0.01


def test_one_question_says_nothing() -> None:
    assert estimate_averages([np.array([0.5]), np.array([0.1])])[1].p == 1
