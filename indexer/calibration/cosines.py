"""The cosines of one question with all passages of a collection, described by the passages' mean and covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from indexer.calibration.sample import DRAWN_PASSAGES
from indexer.records import Vector
from indexer.stores.reading.snapshot import Snapshot


class CosineStatistics(NamedTuple):
    """The mean and covariance of a collection's vectors, which give the distribution of any question's cosines.

    Attributes:
        mean: mean vector (dimensions,).
        covariance: covariance matrix (dimensions, dimensions).
    """

    mean: Vector
    covariance: Vector

    @classmethod
    def from_sample(cls, vectors: Vector) -> Self:
        """Return the statistics of a few thousand random unit vectors (passages, dimensions); at least one vector."""
        mean = vectors.mean(axis=0)
        centred = vectors - mean
        return cls(mean, centred.T @ centred / len(vectors))

    @classmethod
    def of_index(cls, snapshot: Snapshot) -> Self:
        """Return the statistics of a sample of an index, which may be empty."""
        rows = snapshot.sample(DRAWN_PASSAGES).vectors
        return cls.from_sample(rows if len(rows) else np.zeros((1, snapshot.settings.dimensions), np.float32))

    @classmethod
    def pooled(cls, parts: Sequence[tuple[Self, int]]) -> Self:
        """Return the statistics of several collections together, each given with the number of its passages."""
        total = sum(passages for _, passages in parts)
        shares = [(part, passages / total) for part, passages in parts if passages]
        mean = np.sum([share * part.mean for part, share in shares], axis=0)
        offsets = [part.mean - mean for part, _ in shares]
        covariances = [
            share * (part.covariance + np.outer(offset, offset))
            for (part, share), offset in zip(shares, offsets, strict=True)
        ]
        return cls(mean, np.sum(covariances, axis=0))

    def z_scores(self, question: Vector, cosines: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return cosines (n,) as standard deviations above the mean cosine of this question (dimensions,)."""
        mean, deviation = self._of(question)
        return (cosines.astype(np.float64) - mean) / deviation

    def level(self, question: Vector) -> float:
        """Return the cosine two standard deviations above the mean of a question (dimensions,)."""
        mean, deviation = self._of(question)
        return mean + 2 * deviation

    def _of(self, question: Vector) -> tuple[float, float]:
        """Return the mean and the standard deviation of the cosines of a question (dimensions,)."""
        return float(question @ self.mean), math.sqrt(max(float(question @ self.covariance @ question), 1e-6))
