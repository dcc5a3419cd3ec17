"""BM25 (Robertson and Zaragoza 2009) in memory, over a few thousand texts.

It also scores texts that are not in the word index, such as the answers to pseudo-questions. The idf is Lucene's, which
is never negative.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

K1, B = 1.2, 0.75
"""The parameters of the word index."""


class Bm25:
    """BM25 statistics of texts, each given as its terms."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        counts = [Counter(text) for text in texts]
        lengths = np.array([len(text) for text in texts])
        self._size, self._mean = len(texts), max(float(lengths.mean()), 1.0)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for term, times in count.items():
                postings[term].append((number, times))
        self._postings = {term: np.array(rows) for term, rows in postings.items()}
        self._damping = K1 * (1 - B + B * lengths / self._mean)

    def scores(self, question: Sequence[str]) -> NDArray[np.float64]:
        """Return the score of every text (texts,). A term that the question repeats counts once."""
        total = np.zeros(self._size)
        for term in set(question) & self._postings.keys():
            numbers, times = self._postings[term].T
            total[numbers] += self._rarity(term) * times * (K1 + 1) / (times + self._damping[numbers])
        return total

    def score(self, text: Sequence[str], question: Sequence[str]) -> float:
        """Return the score of a text outside the collection, by the collection's statistics."""
        count, damping = Counter(text), K1 * (1 - B + B * len(text) / self._mean)
        shared = set(question) & count.keys()
        return sum(self._rarity(term) * count[term] * (K1 + 1) / (count[term] + damping) for term in shared)

    def _rarity(self, term: str) -> float:
        holding = len(self._postings.get(term, ()))
        return math.log(1 + (self._size - holding + 0.5) / (holding + 0.5))
