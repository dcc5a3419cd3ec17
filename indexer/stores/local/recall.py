"""How much an approximate index misses: its answers beside those of brute force, on the collection's own vectors."""

from __future__ import annotations

import math

import numpy as np

from indexer.records import Vector
from indexer.stores.local.dense import rank
from indexer.stores.local.sample import sample
from indexer.stores.local.views import View
from indexer.stores.port import Recall

_K = 10
_Z = 1.96


def measure(view: View, questions: int = 200) -> Recall:
    """Recall@10 of questions that lie among the passages: means of three of them, as questions are no passages."""
    random, rows = np.random.default_rng(1), sample(view, 3 * questions, seed=1).vectors
    shares, exact = [], True
    for _ in range(questions if len(rows) else 0):
        vector = _question(rows, random)
        found, truth = (rank(view, vector, _K, None, "passage", brute) for brute in (False, True))
        shares.append(len(np.intersect1d(found.passages, truth.passages)) / len(truth.passages))
        exact = exact and found.exact
    if not shares or exact:
        return Recall(1.0, 1.0, 1.0, len(shares), True)
    return Recall(float(np.mean(shares)), *interval(shares, _K), len(shares), False)


def _question(rows: Vector, random: np.random.Generator) -> Vector:
    few = rows[random.integers(len(rows), size=3)]
    total = few.sum(axis=0)
    length = np.linalg.norm(total)
    return np.asarray(total / length, np.float32) if length > 1e-6 else few[0]  # opposite ones leave no direction


def interval(shares: list[float], each: int) -> tuple[float, float]:
    """The 95 % interval of a mean of shares, each of `each` trials (Wilson 1927, with the effective sample size).

    The trials of one question rise and fall together: their number is what would give the variance that is seen.
    """
    mean, spread = float(np.mean(shares)), float(np.var(shares)) / len(shares)
    most = len(shares) * each
    trials = min(most, mean * (1 - mean) / spread) if spread else most
    middle = mean + _Z**2 / (2 * trials)
    width = _Z * math.sqrt(mean * (1 - mean) / trials + _Z**2 / (4 * trials**2))
    return (middle - width) / (1 + _Z**2 / trials), (middle + width) / (1 + _Z**2 / trials)
