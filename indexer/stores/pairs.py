"""The most similar pairs within a set of vectors, through FAISS's exact k-nearest neighbours, a block at a time.

The vectors are given whole; what they are of is the caller's business. Nothing here reads a store.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector

_QUESTIONS = 2048
_ROWS = 65_536
"""Rows searched at a time: float32 copies of stored float16 stay near 100 MB."""
_FOUND = 2**23
"""Neighbours held at a time, so many questions at a time are fewer where many neighbours are wanted."""
_FIRST, _WIDER = 8, 4
_ROUNDING = np.float32(1e-6)
"""What two products of the same two rows may differ by, summed in another order."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of rows, best first; of equal scores the one that comes first.

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


_NONE = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def nearest_pairs(
    rows: NDArray[np.floating], count: int, min_score: float = -np.inf, groups: Ids | None = None
) -> Pairs:
    """The `count` pairs of rows with the highest scores: provably, as if all pairs had been compared.

    Every row is asked for its k nearest among the rows from its own block on. A pair that was not seen scores no
    more than the last neighbour that its first row was given, so the rows whose last neighbour is better than the
    worst pair kept are asked again for more, until there are none. Among pairs within 1e-6 of the worst one, which
    float32 does not tell apart, some may be left out. Needs memory for `count` pairs and a few blocks.

    Args:
        rows: unit rows (n, dimensions), float32 or float16.
        min_score: leave out pairs below this.
        groups: one number a row (n,); rows of one group make no pair.
    """
    total = len(rows)
    found, open_, width = _NONE, np.arange(total), max(_FIRST, _WIDER * count // max(total, 1))
    floor = np.float32(min_score)
    while len(open_):
        found = found.take(~np.isin(found.first, open_))  # these rows are asked again, and wider
        beyond = np.full(total, np.nan, np.float32)
        many = max(1, min(_QUESTIONS, _FOUND // min(width, total)))
        for questions in np.array_split(open_, -(-len(open_) // many)):
            asked = np.ascontiguousarray(rows[questions], np.float32)
            for start in range(int(questions[0]), total, _ROWS):
                known = np.ascontiguousarray(rows[start : start + _ROWS], np.float32)
                scores, places = faiss.knn(asked, known, min(width, len(known)), metric=faiss.METRIC_INNER_PRODUCT)
                if width < len(known):
                    beyond[questions] = np.fmax(beyond[questions], scores[:, -1])
                found = (found + _wanted(questions, places + start, scores, floor, groups)).best(count)
                if len(found.scores) == count:
                    floor = max(floor, found.scores[-1] - _ROUNDING)
        full = len(found.scores) == count
        open_ = np.flatnonzero(beyond > found.scores[-1] + _ROUNDING if full else beyond >= floor)
        width *= _WIDER
    return found


def _wanted(questions: Ids, places: Ids, scores: Vector, floor: np.float32, groups: Ids | None) -> Pairs:
    """Neighbours (questions, k) as pairs: each once, from its first row, and none below the floor."""
    row, column = np.nonzero((scores >= floor) & (places > questions[:, None]))
    pairs = Pairs(questions[row], places[row, column], scores[row, column])
    return pairs if groups is None else pairs.take(groups[pairs.first] != groups[pairs.second])
