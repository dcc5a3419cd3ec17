"""What every runtime does around its model: batches of like length, and unit rows. Numpy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from indexer.encoders.tokenizer import Ids
from indexer.errors import ModelError, NothingKnown
from indexer.records import Vector


def batches(rows: Sequence[Ids], tokens: int) -> Iterator[list[int]]:
    """Positions of texts of like length, longest first: at most `tokens` a batch with padding, or one text."""
    order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
    start = 0
    while start < len(order):
        end = start + max(1, tokens // len(rows[order[start]]))
        yield order[start:end]
        start = end


def unit(vectors: Vector, order: Sequence[int], model: str) -> Vector:
    """Rows scaled to unit length.

    Raises:
        NothingKnown: rows of zeros.
        ModelError: a row that is not finite.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (bad := ~np.isfinite(norms[:, 0])).any():
        raise ModelError(
            f"model {model!r} gave numbers that are not finite for text {order[int(bad.argmax())]}: its weights are "
            "broken; fetch it again"
        )
    if (zero := norms[:, 0] == 0).any():
        raise NothingKnown([order[at] for at in np.flatnonzero(zero).tolist()], model)
    return np.asarray(vectors / norms, np.float32)
