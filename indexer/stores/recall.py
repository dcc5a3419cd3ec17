"""How much an approximate index misses: its answers beside those of brute force, on the collection's own vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from indexer.records import Vector
from indexer.stores import reading
from indexer.stores.ranking import rank
from indexer.stores.snapshot import View

_K = 10
_Z = 1.96


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of the ten nearest passages that a search finds.

    Attributes:
        recall: mean over the questions.
        low, high: its 95 % interval.
        questions: how many were asked; none in an empty index.
        exact: every answer was provably brute force's.
    """

    recall: float
    low: float
    high: float
    questions: int
    exact: bool


def measure(view: View, questions: int = 200) -> Recall:
    """Recall@10 of questions that lie among the passages: means of three of them, as questions are no passages."""
    random = np.random.default_rng(1)
    shares, exact = [], True
    for _ in range(questions if view.state.passages else 0):
        vector = _question(view, random)
        found, truth = (rank(view, vector, _K, None, "passage", brute) for brute in (False, True))
        shares.append(len(np.intersect1d(found.passages, truth.passages)) / len(truth.passages))
        exact = exact and found.exact
    if not shares or exact:
        return Recall(1.0, 1.0, 1.0, len(shares), True)
    return Recall(float(np.mean(shares)), *interval(shares, _K), len(shares), False)


def _question(view: View, random: np.random.Generator) -> Vector:
    part = view.state.parts[random.integers(len(view.state.parts))]
    ids = part.positions.passages[random.integers(len(part.positions.passages), size=6)]
    _, rows = reading.rows(view, ids)
    total = rows[:3].sum(axis=0)
    length = np.linalg.norm(total)
    if length < 1e-6:
        return _question(view, random)
    return np.asarray(total / length, np.float32)


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
