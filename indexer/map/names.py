"""Names for the regions of a map: phrases that occur in a region and not elsewhere.

The score of a phrase is a product of five: the share of the region's documents that have it, the logarithm of how much
more frequent it is there than elsewhere, how often documents repeat it, its length, and how near the documents with the
phrase are to the middle of the region in the space of the vectors. A text repeats what it is about, in any language,
but not its verbs and adverbs (Church and Gale, Poisson mixtures, 1995). Words that any text may have are not near to
any middle. A title that several documents have is a phrase. Names of people are left out. A region without a phrase
gets the title of its most central document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.map.phrases import TITLE_CHARACTERS, Phrase, read_phrases
from indexer.records import Document, Vector
from indexer.stores.words.analysis import Analysis

_TERMS = 3
_READ_DOCUMENTS = 10_000
"""Maximum documents that are read, evenly spread."""
_MIN_DOCUMENTS = 3
"""Minimum documents that have a phrase of a name."""
_MIN_SHARE = 0.1
"""Minimum share of a region's documents that have a phrase of its name."""
_MIN_LIFT = 2.0
"""Minimum ratio of that share to the share elsewhere."""
_MIN_OF_BEST = 0.55
"""Minimum score of a further phrase, as a share of the first one's."""
_WHOLE = 0.6
"""A longer phrase replaces a phrase if at least this share of the region's documents with the phrase have it."""
_LENGTH_WEIGHTS = (1.0, 2.2, 2.8)
"""Weights of phrases of one, two, and three or more words: "stem cells" says more than "cells"."""
_MIN_TOGETHER = 0.15
"""Minimum share of the documents with the rarest word of a phrase that have the phrase."""
_CANDIDATES = 40
_MEAN_DOCUMENTS = 5
"""Documents with the mean rate of repetition that are added to those of a phrase: a rate of few says little."""
_UNREPEATED = 0.05
"""Rate of repetition that every phrase has, because short texts repeat nothing."""
_PERSON = 3
"""A word is taken for a person's if at least one in this many of its documents has it in a name before an address."""
_MIN_PART = 3
"""Minimum letters of a stem that another stem may not contain."""
_TITLE_WEIGHT = 2


class Names:
    """Names regions of one collection by the phrases of its documents."""

    def __init__(self, documents: Sequence[Document], vectors: Vector, analysis: Analysis) -> None:
        from scipy.sparse import csr_array

        self._read = slice(None, None, -(-len(documents) // _READ_DOCUMENTS))
        self._documents, self._vectors = documents, vectors - vectors.mean(axis=0)
        self._phrases = read_phrases(documents[self._read], analysis)
        frequency = Counter(chain.from_iterable(self._phrases.of_documents))
        people = {word for word, count in self._phrases.people.items() if frequency[word,] <= _PERSON * count}
        self._terms = sorted(
            phrase
            for phrase, documents in frequency.items()
            if documents >= max(_MIN_DOCUMENTS, _MIN_TOGETHER * min(frequency[word,] for word in phrase))
            and not people.issuperset(phrase)
        )
        self._repeats = self._repeat_rates(frequency)
        # In a script without spaces, a stem is one character, and two of them count as one word.
        words = [len(phrase) if len(phrase[0]) > 1 else len(phrase) / 2 for phrase in self._terms]
        self._length_weights = np.interp(words, (1, 2, 3), _LENGTH_WEIGHTS)
        position = {phrase: at for at, phrase in enumerate(self._terms)}
        columns, weights, ends = list[int](), list[float](), [0]
        for phrases, titled in zip(self._phrases.of_documents, self._phrases.of_titles, strict=True):
            for phrase in phrases & position.keys():
                columns.append(position[phrase])
                weights.append(_TITLE_WEIGHT if phrase in titled else 1.0)
            ends.append(len(columns))
        shape = (len(ends) - 1, len(self._terms))
        self._weights = csr_array((np.array(weights, np.float32), np.array(columns, np.int32), np.array(ends)), shape)
        self._has = self._weights.copy()
        self._has.data[:] = 1

    def _repeat_rates(self, frequency: Counter[Phrase]) -> NDArray[np.floating]:
        """Return for each term the share of its documents that repeat it; for a longer one at least the smallest share
        of its words, because texts shorten a phrase when they repeat it."""
        repeated = Counter(chain.from_iterable(self._phrases.repeated))
        documents = max(1, sum(frequency[term] for term in self._terms))
        mean = sum(repeated[term] for term in self._terms) / documents

        def rate(phrase: Phrase) -> float:
            return (repeated[phrase] + _MEAN_DOCUMENTS * mean) / (frequency[phrase] + _MEAN_DOCUMENTS)

        words = [[(word,) for word in term if frequency[word,]] for term in self._terms]  # none without spaces
        return np.array(
            [max(rate(term), min(map(rate, of), default=0)) for term, of in zip(self._terms, words, strict=True)]
        )

    def of_regions(self, regions: NDArray[np.intp], count: int) -> Iterator[tuple[str, ...]]:
        """Yield the name of each region.

        Args:
            regions: the region of each document.
            count: number of regions.
        """
        read, vectors = regions[self._read], self._vectors[self._read]
        everywhere = self._weights.sum(axis=0)
        for region in range(count):
            inside = np.flatnonzero(regions == region)
            if not len(inside):
                yield ()
                continue
            rows = np.flatnonzero(read == region)
            middle = self._vectors[inside].mean(axis=0)
            weights = self._weights[rows].sum(axis=0)
            share = weights / max(1, len(rows))
            elsewhere = (everywhere - weights + 0.5) / (len(read) - len(rows) + 1)
            lift = share / elsewhere
            scores = share * np.log(np.maximum(lift, 1)) * (_UNREPEATED + self._repeats) * self._length_weights
            scores[(share < _MIN_SHARE) | (lift < _MIN_LIFT)] = 0
            best = np.argsort(-scores, kind="stable")[: 5 * _CANDIDATES]
            best = best[scores[best] > 0]
            nearness = self._has[:, best].T @ (vectors @ middle) / self._has[:, best].sum(axis=0)
            scores[best] *= np.clip(nearness / max(float(middle @ middle), 1e-9), 0, 1)
            best = best[np.argsort(-scores[best], kind="stable")]
            yield self._chosen(best, scores, self._has[rows]) or self._central(inside, middle)

    def _chosen(self, best: NDArray[np.intp], scores: NDArray[np.floating], has: Any) -> tuple[str, ...]:
        """Return the phrases of a name, each as long as most documents have it, without repetition."""
        documents = has.sum(axis=0)
        names: list[Phrase] = []

        def is_whole(one: int, part: int) -> bool:
            return all(of[one] >= _WHOLE * of[part] for of in (documents, self._repeats))

        for term in best:
            if len(names) == _TERMS or scores[term] < _MIN_OF_BEST * scores[best[0]]:
                break
            phrase = self._terms[term]
            longest = max(
                (
                    each
                    for each in best
                    if each == term or (is_whole(each, term) and _is_within(phrase, self._terms[each]))
                ),
                key=lambda each: (len(self._terms[each]), documents[each]),
            )
            whole = self._terms[longest]
            if documents[term] >= 2 and not any(_is_alike(whole, name) for name in names):
                names.append(whole)
        return tuple(self._phrases.written(phrase) for phrase in names)

    def _central(self, inside: NDArray[np.intp], middle: Vector) -> tuple[str, ...]:
        """Return the title of the document that is nearest to the middle of a region."""
        for document in inside[np.argsort(-(self._vectors[inside] @ middle), kind="stable")]:
            if title := " ".join(self._documents[document].title.split()):
                return (title if len(title) <= TITLE_CHARACTERS else title[: TITLE_CHARACTERS - 1].rstrip() + "…",)
        return ()


def _is_alike(one: Phrase, other: Phrase) -> bool:
    """Return whether a stem of one phrase is a part of a stem of the other: such phrases say the same twice."""
    pairs = (sorted((word, its), key=len) for word in one for its in other)
    return any(short == long or (len(short) >= _MIN_PART and short in long) for short, long in pairs)


def _is_within(part: Phrase, whole: Phrase) -> bool:
    return len(part) < len(whole) and any(whole[at : at + len(part)] == part for at in range(len(whole)))
