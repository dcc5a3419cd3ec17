"""What every runtime does around its model: batches of like length, and unit rows. Numpy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from indexer.encoders.tokenizer import Ids
from indexer.errors import ModelError
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
    """Rows scaled to unit length. Raises ModelError for a row that is not finite or zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = ~np.isfinite(norms[:, 0]) | (norms[:, 0] == 0)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        what = "a vector of zeros" if norms[first, 0] == 0 else "numbers that are not finite"
        raise ModelError(
            f"model {model!r} gave {what} for text {order[first]}: its weights are broken, or the text "
            "holds nothing it knows"
        )
    return np.asarray(vectors / norms, np.float32)
