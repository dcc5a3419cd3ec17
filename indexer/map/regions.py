"""Names for the regions of a map: the terms that are frequent in a region and rare elsewhere.

Regions are clusters of places (k-means), at several levels of detail. The score of a term is its part of the
Kullback-Leibler divergence between the region and the collection: p log(p / q), where p and q are the shares of
documents with the term in the region and in the collection. Class-based TF-IDF prefers terms that are frequent
everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.map.projection import Places
from indexer.stores.words.analysis import Analysis

LEVELS = (8, 30, 120)
"""Number of regions at each level. A small collection has fewer regions."""
MIN_DOCUMENTS = 8
"""Minimum documents per region, on average."""
_TERMS = 3
_CHARACTERS = 600
"""Maximum characters of each document that are read. Titles and beginnings say what a document is about."""
_WORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")


@dataclass(frozen=True, slots=True)
class Region:
    """A named region.

    Attributes:
        x, y: the place of its name.
        level: 0 for the largest regions.
        documents: number of its documents.
        terms: the terms that distinguish it, best first.
    """

    x: float
    y: float
    level: int
    documents: int
    terms: tuple[str, ...]


def find_regions(places: Places, texts: Sequence[str], analysis: Analysis) -> list[Region]:
    """Return the regions of every level.

    Args:
        texts: title and text of each document, in the order of the places.
        analysis: analysis of the collection's language. Words with the same stem are one term; stop words are left out.
    """
    from sklearn.cluster import MiniBatchKMeans

    words, spelling = _words(texts, analysis)
    frequency: Counter[str] = Counter(word for document in words for word in document)
    regions: list[Region] = []
    for level, most_regions in enumerate(LEVELS):
        count = min(most_regions, len(places) // MIN_DOCUMENTS)
        if count < 2 or (level and count <= LEVELS[level - 1]):
            break
        clusters: NDArray[np.int32] = MiniBatchKMeans(count, random_state=0, n_init=3).fit_predict(places)
        members: list[Counter[str]] = [Counter() for _ in range(count)]
        for document, cluster in zip(words, clusters, strict=True):
            members[cluster].update(word for word in document if frequency[word] > 1)
        for cluster, terms in enumerate(members):
            inside = np.flatnonzero(clusters == cluster)
            if not len(inside) or not terms:
                continue
            scores = {
                word: n / len(inside) * np.log(n / len(inside) * len(texts) / frequency[word])
                for word, n in terms.items()
            }
            best = sorted(scores, key=lambda word: (-scores[word], word))[:_TERMS]
            x, y = np.median(places[inside], axis=0)
            names = tuple(spelling[word].most_common(1)[0][0] for word in best)
            regions.append(Region(float(x), float(y), level, len(inside), names))
    return regions


def _words(texts: Sequence[str], analysis: Analysis) -> tuple[list[set[str]], dict[str, Counter[str]]]:
    """Return the distinct terms of each text, and the spellings of each term."""
    spelling: dict[str, Counter[str]] = {}
    stems: dict[str, str] = {}
    words = []
    for text in texts:
        document: set[str] = set()
        for word in _WORD.findall(text[:_CHARACTERS]):
            if word not in stems:
                terms = analysis.terms(word)
                stems[word] = terms[0] if len(terms) == 1 and len(word) > 2 else ""
            if stem := stems[word]:
                document.add(stem)
                spelling.setdefault(stem, Counter())[word if word.isupper() else word.lower()] += 1
        words.append(document)
    return words, spelling
