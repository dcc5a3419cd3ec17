"""Passages drawn at random from a snapshot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector
from indexer.stores import reading
from indexer.stores.snapshot import View


def sample(view: View, count: int, seed: int) -> tuple[NDArray[np.int64], Vector]:
    """Ids (n,) and stored vectors (n, dimensions) of `count` passages, or of all; the same for the same index."""
    parts = [np.delete(part.positions.passages, part.dead) for part in view.state.parts]
    ids = np.concatenate([*parts, np.empty(0, np.int64)])
    if len(ids) > count:
        ids = np.sort(np.random.default_rng(seed).choice(ids, count, replace=False))
    return ids, reading.rows(view, ids)[1]
