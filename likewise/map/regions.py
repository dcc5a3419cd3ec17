"""The regions of a map: clusters of places at several levels of detail, and a name for each.

A region is the documents whose places are nearer to its middle than to the middle of any other region of its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.records import Document, Vector
from indexer.stores.words.analysis import Analysis
from likewise.map.names import Names
from likewise.map.projection import Places

LEVELS = (11, 30, 120)
"""Number of regions at each level. A small collection has fewer regions."""
MIN_DOCUMENTS = 8
"""Minimum documents per region, on average."""


@dataclass(frozen=True, slots=True)
class Region:
    """A named region: the documents that are nearer to its middle than to the middle of any other region of its level.

    Attributes:
        x, y: its middle, and the place of its name.
        level: 0 for the largest regions.
        documents: number of its documents.
        terms: its name in parts: the phrases that distinguish it, best first, or "around: TITLE"; and perhaps "mostly
            FOLDER/".
    """

    x: float
    y: float
    level: int
    documents: int
    terms: tuple[str, ...]


def find_regions(places: Places, documents: Sequence[Document], vectors: Vector, analysis: Analysis) -> list[Region]:
    """Return the regions of every level.

    Args:
        documents: in the order of the places; so are `vectors`.
        analysis: analysis of the collection's language. Words with the same stem are one term; stop words are left out.
    """
    regions: list[Region] = []
    names: Names | None = None
    for level, most_regions in enumerate(LEVELS):
        count = min(most_regions, len(places) // MIN_DOCUMENTS)
        if count < 2 or (level and count <= LEVELS[level - 1]):
            break
        middles = _middles(places, count)
        nearest = nearest_middle(places, middles)
        names = names or Names(documents, vectors, analysis)
        for region, terms in enumerate(names.of_regions(nearest, len(middles))):
            held = int((nearest == region).sum())
            if held:
                x, y = middles[region]
                regions.append(Region(float(x), float(y), level, held, terms))
    return regions


def _middles(places: Places, count: int) -> Places:
    """Return the middles (count, 2) of clusters of places."""
    from sklearn.cluster import MiniBatchKMeans

    clusters = MiniBatchKMeans(count, random_state=0, n_init=3).fit_predict(places)
    return np.array([np.median(places[clusters == each], axis=0) for each in np.unique(clusters)], np.float32)


def nearest_middle(places: Places, middles: Places) -> NDArray[np.intp]:
    """Return for each place the position of the nearest middle."""
    from scipy.spatial import KDTree

    nearest: NDArray[np.intp] = KDTree(middles).query(places)[1]
    return nearest
