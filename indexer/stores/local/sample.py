"""Passages drawn at random from a snapshot."""

from __future__ import annotations

import numpy as np

from indexer.stores.document_rows import vectors_by_id
from indexer.stores.local.views import View
from indexer.stores.port import Sample


def sample(view: View, count: int, seed: int) -> Sample:
    """Return `count` random passages, or all there are.

    They are drawn by their order of addition, so that a copy of the index gives the same ones.
    """
    parts = [np.delete(part.positions.passages, part.dead) for part in view.state.parts]
    ids = np.concatenate([*parts, np.empty(0, np.int64)])
    if len(ids) > count:
        ids = np.sort(np.random.default_rng(seed).choice(ids, count, replace=False))
    return Sample(ids, vectors_by_id(view, ids))
