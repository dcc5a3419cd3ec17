"""Names for the regions of a map: the terms that are frequent in a region and rare elsewhere.

Regions are clusters of places (k-means), at several levels of detail. Terms are scored by class-based TF-IDF
(Grootendorst 2022, arXiv:2203.05794).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.map.projection import Places

LEVELS = (8, 30, 120)
"""Regions of each level, fewer where there are few documents."""
MIN_DOCUMENTS = 8
"""Documents of a region on average, at least."""
_TERMS = 3
_CHARACTERS = 600
"""How much of each document is read: titles and beginnings say what it is about."""
_COMMON = 0.5
"""Terms in more than this share of documents distinguish nothing."""
_WORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")


@dataclass(frozen=True, slots=True)
class Region:
    """A named region.

    Attributes:
        x, y: the place of its name.
        level: 0 for the largest regions.
        documents: how many it has.
        terms: the terms that distinguish it, best first.
    """

    x: float
    y: float
    level: int
    documents: int
    terms: tuple[str, ...]


def find_regions(places: Places, texts: Sequence[str]) -> list[Region]:
    """Return the regions of every level.

    Args:
        texts: title and text of each document, in the order of the places.
    """
    from sklearn.cluster import MiniBatchKMeans

    words, spelling = _words(texts)
    frequency: Counter[str] = Counter(word for document in words for word in document)
    most = max(2, _COMMON * len(texts))
    regions: list[Region] = []
    for level, most_regions in enumerate(LEVELS):
        count = min(most_regions, len(places) // MIN_DOCUMENTS)
        if count < 2 or (level and count <= LEVELS[level - 1]):
            break
        clusters: NDArray[np.int32] = MiniBatchKMeans(count, random_state=0, n_init=3).fit_predict(places)
        members: list[Counter[str]] = [Counter() for _ in range(count)]
        for document, cluster in zip(words, clusters, strict=True):
            members[cluster].update(word for word in document if 1 < frequency[word] <= most)
        average = sum(map(Counter.total, members)) / count
        in_all: Counter[str] = sum(members, Counter())
        for cluster, terms in enumerate(members):
            inside = np.flatnonzero(clusters == cluster)
            if not len(inside) or not terms:
                continue
            scores = {word: n * np.log(1 + average / in_all[word]) for word, n in terms.items()}
            best = sorted(scores, key=lambda word: (-scores[word], word))[:_TERMS]
            x, y = np.median(places[inside], axis=0)
            names = tuple(spelling[word].most_common(1)[0][0] for word in best)
            regions.append(Region(float(x), float(y), level, len(inside), names))
    return regions


def _words(texts: Sequence[str]) -> tuple[list[set[str]], dict[str, Counter[str]]]:
    """Return the distinct terms of each text, folded, and the spellings of each term."""
    spelling: dict[str, Counter[str]] = {}
    words = []
    for text in texts:
        document: set[str] = set()
        for word in _WORD.findall(text[:_CHARACTERS]):
            key = _folded(word)
            if len(key) > 2:
                document.add(key)
                spelling.setdefault(key, Counter())[word if word.isupper() else word.lower()] += 1
        words.append(document)
    return words, spelling


def _folded(word: str) -> str:
    """Return one form for a word and its plural, so that a region does not have both."""
    word = word.lower()
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word
