"""Vectors to places in two dimensions, with UMAP (McInnes, Healy, Melville 2018, arXiv:1802.03426) by umap-learn.

UMAP keeps neighbours together. The distance between two regions means little.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.listener import SILENT, Listener
from indexer.records import Vector

Places = NDArray[np.float32]
"""Places (documents, 2), each coordinate within 0 and 1."""

MIN_DOCUMENTS = 3
NEIGHBOURS = 15
"""Number of neighbours that UMAP keeps together: UMAP's own default."""
_REPEATABLE_DOCUMENTS = 20_000
"""Up to this many documents, the same vectors give the same map; for more, UMAP uses all cores."""


def require_umap() -> None:
    """Raise ModuleNotFoundError at once if the extra `map` is not installed."""
    import umap  # noqa: F401


def project(vectors: Vector, listener: Listener = SILENT) -> Places:
    """Return a place for each of at least MIN_DOCUMENTS vectors (documents, dimensions) of length 1.

    Args:
        listener: receives the rounds of UMAP.
    """
    places = _umap(vectors, listener) if len(vectors) > NEIGHBOURS + 1 else principal_components(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: Places = ((places - low) / np.maximum(high - low, 1e-9)).astype(np.float32)
    return scaled


def principal_components(vectors: Vector) -> NDArray[np.floating]:
    """Return the first two principal components (documents, 2): the plainest map, for few documents."""
    centered = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)
    components: NDArray[np.floating] = centered @ axes[:, :-3:-1]
    if components.shape[1] == 1:  # vectors of one dimension
        components = np.column_stack((components, np.zeros(len(components))))
    return components


class _Rounds:
    """The file to which umap-learn's bar, which is tqdm's, writes the number of rounds done and of all rounds."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def write(self, text: str) -> None:
        """Report the rounds in a text such as "120/500"."""
        if rounds := re.search(r"(\d+)/(\d+)", text):
            self._listener.advanced(int(rounds[1]), int(rounds[2]))

    def flush(self) -> None:
        """Do nothing: every text was reported at once."""


def _umap(vectors: Vector, listener: Listener) -> NDArray[np.floating]:
    import umap

    repeatable = len(vectors) <= _REPEATABLE_DOCUMENTS
    start = principal_components(vectors)
    start = start / max(float(np.abs(start).max()), 1e-9) * 10
    # A little noise, as UMAP wants no two documents at one place.
    start = start + np.random.default_rng(0).normal(0, 1e-4, start.shape)
    reducer: Any = umap.UMAP(
        n_neighbors=NEIGHBOURS,
        min_dist=0.05,
        metric="cosine",
        init=start.astype(np.float32),
        random_state=0 if repeatable else None,
        n_jobs=1 if repeatable else -1,
        low_memory=True,
        tqdm_kwds={"disable": False, "file": _Rounds(listener), "bar_format": "{n_fmt}/{total_fmt}"},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn and numba warn of their own defaults
        places: NDArray[np.floating] = reducer.fit_transform(vectors)
    finite: NDArray[np.floating] = np.nan_to_num(places)
    return finite
