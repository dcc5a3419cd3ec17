"""One ranking from two: how a question's cosines and BM25 scores become the score of `hybrid`.

A convex combination (Bruch, Gai, Ingber 2023) of the cosine, counted in deviations above the question's mean over the
collection, and of BM25 as it stands. Which weight a question's words get follows from how far its best passage stands
out, from its number of terms and from what the collection's pseudo-questions said (indexer/calibration/probe.py);
docs/fusion.md has the measurement. The baselines that it is measured against are here too. Nothing here searches or
reads a store.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector
from indexer.settings import Probed

CANDIDATES = 100
"""Documents to take from each leg, or twice as many as are asked for: for ten, 60 and 200 rank them alike."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Background:
    """What cosines are like in a collection, for any question: moments of a sample of its vectors.

    Attributes:
        mean: of the vectors (dimensions,).
        covariance: of the vectors (dimensions, dimensions).
    """

    mean: Vector
    covariance: Vector

    @classmethod
    def of(cls, vectors: Vector) -> Self:
        """From unit vectors (passages, dimensions) of a few thousand random passages; at least one."""
        mean = vectors.mean(axis=0)
        centred = vectors - mean
        return cls(mean, centred.T @ centred / len(vectors))

    def standing(self, question: Vector, cosines: NDArray[np.floating]) -> Scores:
        """Cosines as deviations above the mean cosine of this question (dimensions,) and the collection."""
        deviation = math.sqrt(max(float(question @ self.covariance @ question), 1e-6))
        return (cosines.astype(np.float64) - float(question @ self.mean)) / deviation


@dataclass(frozen=True, slots=True)
class Fused:
    """Scores of candidates and where they come from, in the order the candidates were given.

    Attributes:
        scores: the sum of the two contributions (candidates,).
        dense, words: contributions (candidates,).
        weight: of the words, 0 to 1; the cosine's is the rest.
    """

    scores: Scores
    dense: Scores
    words: Scores
    weight: float


def fuse(standing: Scores, words: NDArray[np.floating], weight: float) -> Fused:
    """The convex combination.

    Args:
        standing: of the candidates' cosines, by `Background.standing`.
        words: their BM25 scores, 0 where no word of the question is in them.
        weight: of the words, by `words_weight`, or one's own.
    """
    dense, lexical = (1 - weight) * standing, weight * words.astype(np.float64)
    return Fused(dense + lexical, dense, lexical, weight)


def words_weight(standing: Scores, words: NDArray[np.floating], terms: int, lean: float = 0.0) -> float:
    """What the words of this question weigh against its meaning, 0 to 1.

    The four constants were fitted to collections of ten origins, and judged each time on an origin left out.

    Args:
        standing, words: of the candidates, the best of both legs among them.
        terms: different terms that the word index was asked for.
        lean: how far the collection leans to words, in natural logarithms of the odds: `lean(probed)`, or what
            judged questions said.
    """
    if terms == 0 or not words.size or words.max() <= 0:
        return 0.0
    outstanding = min(float(standing.max()), 6.0)
    odds = math.exp(0.8 - 0.3 * outstanding + lean) / math.sqrt(terms)
    return odds / (1 + odds)


def lean(probed: Probed) -> float:
    """How far a collection leans to words by its pseudo-questions; 0 where they say nothing."""
    return 2 * probed.log_ratio


def blended(cosines: NDArray[np.floating], best_means: NDArray[np.floating]) -> Scores:
    """What ranks a unit (n,): half its best passage, half the mean of its best ones.

    The cosine to show is still that of the best passage.
    """
    return (cosines.astype(np.float64) + best_means) / 2


def reciprocal_rank_fusion(rankings: Sequence[Sequence[int]], k: int = 60) -> dict[int, float]:
    """Id to score, the sum of 1 / (k + rank) over the rankings that hold it (Cormack, Clarke, Büttcher 2009)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (k + rank)
    return scores


def min_max(scores: NDArray[np.floating]) -> Scores:
    """Scores moved and scaled to 0..1; all 0 where they are equal."""
    values = scores.astype(np.float64)
    span = np.ptp(values) if values.size else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)
