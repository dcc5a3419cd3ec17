"""Significance of differences: the paired bootstrap, for correlations and for averages over questions.

Every system is judged on the same resampled items, so that an item that is easy or hard for all of them cancels out
(Efron and Tibshirani, An Introduction to the Bootstrap, 1993; Sakai, Evaluating Evaluation Metrics Based on the
Bootstrap, SIGIR 2006). scipy.stats.bootstrap does the resampling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES = 2000
CONFIDENCE = 0.95
_BATCH_RESAMPLES = 200  # 200 x 10,000 items are 16 MB
_SEED = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured value.

    Attributes:
        low, high: its 95 % confidence interval, by percentiles.
        p: two-sided p-value of the difference from the first system; 1 for the first system itself.
    """

    value: float
    low: float
    high: float
    p: float


def estimate_correlations(systems: Sequence[NDArray[np.floating]], judged: Values) -> list[Estimate]:
    """Return Spearman's correlation times 100 of each system's values (n,) with people's scores (n,)."""
    from scipy.stats import rankdata

    from likewise.evaluation.sts import spearman

    def statistic(items: NDArray[np.int64]) -> Values:
        gold = _standardize(rankdata(judged[items], axis=-1))
        ranked = (_standardize(rankdata(system[items], axis=-1)) for system in systems)
        return np.stack([100 * (ranks * gold).sum(-1) for ranks in ranked])

    return _estimate([spearman(system, judged) for system in systems], statistic, len(judged))


def estimate_averages(systems: Sequence[Values]) -> list[Estimate]:
    """Return the average of each system's values (n,), which are one per question."""
    values = np.stack(systems)
    return _estimate(values.mean(1).tolist(), lambda items: values[:, items].mean(-1), values.shape[1])


def _estimate(values: Sequence[float], statistic: Callable[[NDArray[np.int64]], Values], items: int) -> list[Estimate]:
    """Return the estimates of every system.

    Args:
        values: the value of every system on all items.
        statistic: the values of every system (systems, ...) on resampled items (..., n).
        items: how many items there are.
    """
    if items < 2:  # there is nothing to resample
        return [Estimate(value, value, value, 1.0) for value in values]
    drawn = _resample(statistic, items)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(drawn, [tail, 100 - tail], axis=-1)
    differences = drawn - drawn[:1]
    # The sample itself is counted once, because no number of resamples proves that something never happens.
    sides = np.minimum((differences <= 0).sum(-1), (differences >= 0).sum(-1)) + 1
    p = np.minimum(1, 2 * sides / (drawn.shape[-1] + 1))
    return [Estimate(*map(float, row)) for row in zip(values, low, high, p, strict=True)]


def _resample(statistic: Callable[[NDArray[np.int64]], Values], items: int) -> Values:
    from scipy.stats import bootstrap

    def statistic_of_rows(drawn: NDArray[np.int64], axis: int) -> Values:
        return statistic(np.moveaxis(drawn, axis, -1))

    result: Any = bootstrap(
        (np.arange(items),),
        statistic_of_rows,
        n_resamples=RESAMPLES,
        batch=_BATCH_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    return np.asarray(result.bootstrap_distribution, np.float64)


def _standardize(ranks: Values) -> Values:
    """Return ranks (..., n) centred and scaled to unit length; equal ranks become zeros, with correlation 0."""
    centred = ranks - ranks.mean(-1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=-1, keepdims=True)
    return np.asarray(centred / np.where(lengths > 0, lengths, 1))
