"""Vectors in the middle of the main groups of a sample: texts that say what a collection is about."""

from __future__ import annotations

import numpy as np

from indexer.records import Vector

ROUNDS = 10


def middles(vectors: Vector, count: int) -> list[int]:
    """Return the row nearest to the middle of each group, that of the largest group first; fewer rows than `count` for
    fewer vectors.

    Groups are found by k-means over cosines. The first middle is the row nearest to the mean, and each other begins at
    the row that is farthest from those before, so that equal vectors always give equal rows.

    Args:
        vectors: unit rows (n, dimensions).
    """
    count = min(count, len(vectors))
    if not count:
        return []
    rows = [int(np.argmax(vectors @ vectors.mean(axis=0)))]
    while len(rows) < count:
        rows.append(int(np.argmin((vectors @ vectors[rows].T).max(axis=1))))
    centres = vectors[rows]
    for _ in range(ROUNDS):
        groups = (vectors @ centres.T).argmax(axis=1)
        sums = np.stack([vectors[groups == group].sum(axis=0) for group in range(count)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), centres)
    groups = (vectors @ centres.T).argmax(axis=1)
    nearest = (vectors @ centres.T).argmax(axis=0)
    largest = np.argsort(-np.bincount(groups, minlength=count), kind="stable")
    return list(dict.fromkeys(int(nearest[group]) for group in largest))
