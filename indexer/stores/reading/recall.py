"""The recall of an approximate index: its answers compared with brute force, for questions made of its own vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from indexer.records import Vector
from indexer.stores.port import Ranking, Recall

NEIGHBOURS = 10
_Z_95 = 1.96
"""Standard normal quantile of a 95 % interval."""


QUESTIONS = 200


def measure_recall(rows: Vector, ask: Callable[[Vector, bool], Ranking], questions: int = QUESTIONS) -> Recall:
    """Measure recall@10 with questions that are made of passages.

    Args:
        rows: vectors of random passages (n, dimensions), best three for each question.
        ask: ranks NEIGHBOURS passages for a vector (dimensions,), by brute force if the second argument says so.
    """
    shares, exact = list[float](), True
    for vector in _made_questions(rows, questions):
        ranking, truth = (ask(vector, brute) for brute in (False, True))
        shares.append(len(np.intersect1d(ranking.passages, truth.passages)) / len(truth.passages))
        exact = exact and ranking.exact
    if not shares or exact:
        return Recall(1.0, 1.0, 1.0, len(shares), True)
    return Recall(float(np.mean(shares)), *interval(shares, NEIGHBOURS), len(shares), False)


def _made_questions(rows: Vector, count: int) -> Iterator[Vector]:
    """Yield unit vectors (dimensions,), each the mean of three random rows (n, dimensions), because questions are not
    passages; none without rows."""
    random = np.random.default_rng(1)
    for _ in range(count if len(rows) else 0):
        chosen = rows[random.integers(len(rows), size=3)]
        total = chosen.sum(axis=0)
        length = np.linalg.norm(total)
        yield np.asarray(total / length, np.float32) if length > 1e-3 else chosen[0]  # opposite rows add up to nothing


def interval(shares: list[float], trials_each: int) -> tuple[float, float]:
    """Return the 95 % interval of a mean of shares (Wilson 1927, with the effective sample size).

    The trials of one question are correlated: the effective number of trials is chosen so that it gives the observed
        variance.

    Args:
        trials_each: number of trials behind each share.
    """
    mean, spread = float(np.mean(shares)), float(np.var(shares)) / len(shares)
    total = len(shares) * trials_each
    trials = min(total, mean * (1 - mean) / spread) if spread else total
    centre = mean + _Z_95**2 / (2 * trials)
    width = _Z_95 * math.sqrt(mean * (1 - mean) / trials + _Z_95**2 / (4 * trials**2))
    return (centre - width) / (1 + _Z_95**2 / trials), (centre + width) / (1 + _Z_95**2 / trials)
