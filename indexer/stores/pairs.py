"""The most similar pairs within an array of vectors, by exact k-nearest-neighbour search in FAISS, block by block.

Nothing here reads a store.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector

_BLOCK_QUESTIONS = 2048

_BLOCK_ROWS = 65_536
"""Rows searched at a time: their float32 copies take about 100 MB."""

_MAX_NEIGHBOURS = 2**23
"""Maximum neighbours in memory at a time. If each question asks for many neighbours, a block has fewer questions."""

_FIRST_NEIGHBOURS, _WIDENING_FACTOR = 8, 4

_MAX_ROUNDING_ERROR = np.float32(1e-6)
"""Maximum difference between two products of the same two rows that are summed in different orders."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of rows, best first; equal scores in order of the rows.

    Attributes:
        first, second: positions (n,), `first` below `second`.
        scores: inner products (n,), for unit rows their cosines.
    """

    first: Ids
    second: Ids
    scores: NDArray[np.float32]

    def best(self, count: int) -> Pairs:
        order = np.lexsort((self.second, self.first, -self.scores))[:count]
        return self.take(order)

    def take(self, which: NDArray[np.integer] | NDArray[np.bool_]) -> Pairs:
        return Pairs(self.first[which], self.second[which], self.scores[which])

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.second, other.second]),
            np.concatenate([self.scores, other.scores]),
        )


_NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def nearest_pairs(
    rows: NDArray[np.floating], count: int, min_score: float = -np.inf, groups: Ids | None = None
) -> Pairs:
    """Return the `count` pairs of rows with the highest scores: provably, as if all pairs had been compared.

    Every row is asked for its k nearest among the rows from its own block on. A pair that was not seen scores no
    more than the last neighbour that its first row was given. So the rows whose last neighbour is better than the
    worst pair kept are asked again for more neighbours, until there are no such rows. Some pairs within 1e-6 of the
    worst pair may be left out, because float32 cannot distinguish them. Needs memory for `count` pairs and a few
    blocks.

    Args:
        rows: unit rows (n, dimensions), float32 or float16.
        min_score: leave out pairs below this.
        groups: one number per row (n,); two rows of the same group are not a pair.
    """
    total = len(rows)
    pairs, open_rows = _NO_PAIRS, np.arange(total)
    neighbours = max(_FIRST_NEIGHBOURS, _WIDENING_FACTOR * count // max(total, 1))
    floor = np.float32(min_score)
    while len(open_rows):
        pairs = pairs.take(~np.isin(pairs.first, open_rows))  # these rows are asked again, for more neighbours
        last_scores = np.full(total, np.nan, np.float32)
        block = max(1, min(_BLOCK_QUESTIONS, _MAX_NEIGHBOURS // min(neighbours, total)))
        for questions in np.array_split(open_rows, -(-len(open_rows) // block)):
            question_rows = np.ascontiguousarray(rows[questions], np.float32)
            for start in range(int(questions[0]), total, _BLOCK_ROWS):
                others = np.ascontiguousarray(rows[start : start + _BLOCK_ROWS], np.float32)
                k = min(neighbours, len(others))
                scores, positions = faiss.knn(question_rows, others, k, metric=faiss.METRIC_INNER_PRODUCT)
                if neighbours < len(others):
                    last_scores[questions] = np.fmax(last_scores[questions], scores[:, -1])
                pairs = (pairs + _as_pairs(questions, positions + start, scores, floor, groups)).best(count)
                if len(pairs.scores) == count:
                    floor = max(floor, pairs.scores[-1] - _MAX_ROUNDING_ERROR)
        is_full = len(pairs.scores) == count
        open_rows = np.flatnonzero(
            last_scores > pairs.scores[-1] + _MAX_ROUNDING_ERROR if is_full else last_scores >= floor
        )
        neighbours *= _WIDENING_FACTOR
    return pairs


def _as_pairs(questions: Ids, positions: Ids, scores: Vector, floor: np.float32, groups: Ids | None) -> Pairs:
    """Return neighbours (questions, k) as pairs. Each pair occurs once, with its first row first; pairs below the floor
    are left out."""
    row, column = np.nonzero((scores >= floor) & (positions > questions[:, None]))
    pairs = Pairs(questions[row], positions[row, column], scores[row, column])
    return pairs if groups is None else pairs.take(groups[pairs.first] != groups[pairs.second])
