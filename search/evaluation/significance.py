"""How sure a difference is: the paired bootstrap, for correlations and for averages over questions.

The same resampled items judge every system, so that what makes an item easy or hard for all of them cancels
(Efron and Tibshirani, An Introduction to the Bootstrap, 1993; Sakai, Evaluating Evaluation Metrics Based on the
Bootstrap, SIGIR 2006). The resampling is scipy.stats.bootstrap's.
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
_BATCH = 200  # resamples at a time: 200 x 10,000 items are 16 MB
_SEED = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured value.

    Attributes:
        low, high: its 95 % confidence interval, by percentiles.
        p: two-sided, of its being different from the first system's; 1 for the first itself.
    """

    value: float
    low: float
    high: float
    p: float


def of_correlations(systems: Sequence[NDArray[np.floating]], judged: Values) -> list[Estimate]:
    """Spearman's correlation times 100 of each system's values (n,) with what was judged (n,)."""
    from scipy.stats import rankdata

    from search.evaluation.sts import spearman

    def statistic(items: NDArray[np.int64]) -> Values:
        gold = _standard(rankdata(judged[items], axis=-1))
        ranked = (_standard(rankdata(system[items], axis=-1)) for system in systems)
        return np.stack([100 * (each * gold).sum(-1) for each in ranked])

    return _estimates([spearman(system, judged) for system in systems], statistic, len(judged))


def of_averages(systems: Sequence[Values]) -> list[Estimate]:
    """The average of each system's values (n,), one a question."""
    values = np.stack(systems)
    return _estimates(values.mean(1).tolist(), lambda items: values[:, items].mean(-1), values.shape[1])


def _estimates(values: Sequence[float], statistic: Callable[[NDArray[np.int64]], Values], items: int) -> list[Estimate]:
    """`statistic` of resampled items (..., n) gives every system's value (systems, ...)."""
    if items < 2:  # there is nothing to resample
        return [Estimate(value, value, value, 1.0) for value in values]
    drawn = _resampled(statistic, items)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(drawn, [tail, 100 - tail], axis=-1)
    differences = drawn - drawn[:1]
    # With the sample itself counted once, as no number of resamples shows that something never happens.
    sides = np.minimum((differences <= 0).sum(-1), (differences >= 0).sum(-1)) + 1
    p = np.minimum(1, 2 * sides / (drawn.shape[-1] + 1))
    return [Estimate(*map(float, each)) for each in zip(values, low, high, p, strict=True)]


def _resampled(statistic: Callable[[NDArray[np.int64]], Values], items: int) -> Values:
    from scipy.stats import bootstrap

    def of_rows(drawn: NDArray[np.int64], axis: int) -> Values:
        return statistic(np.moveaxis(drawn, axis, -1))

    found: Any = bootstrap(
        (np.arange(items),),
        of_rows,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    return np.asarray(found.bootstrap_distribution, np.float64)


def _standard(ranks: Values) -> Values:
    """Ranks (..., n) centred, and of unit length; all equal they are zeros, which correlate with nothing."""
    centred = ranks - ranks.mean(-1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=-1, keepdims=True)
    return np.asarray(centred / np.where(lengths > 0, lengths, 1))
