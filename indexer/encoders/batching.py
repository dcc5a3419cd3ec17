"""Work that every runtime does around its model: batches of texts of similar length, and unit vectors. Numpy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from indexer.encoders.tokenizer import Ids
from indexer.errors import ModelError, NothingKnown
from indexer.records import Vector


def batches(rows: Sequence[Ids], tokens: int) -> Iterator[list[int]]:
    """Yield batches of texts of similar length, longest first.

    Args:
        rows: token ids of each text.
        tokens: the most that one batch may hold, padding counted; a single longer text is a batch of its own.

    Yields:
        Positions in `rows`.
    """
    order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
    start = 0
    while start < len(order):
        end = start + max(1, tokens // len(rows[order[start]]))
        yield order[start:end]
        start = end


def unit(vectors: Vector, order: Sequence[int], model: str) -> Vector:
    """Return the rows scaled to unit length.

    Args:
        vectors: (n, dimensions), as the model gave them.
        order: positions (n,) of the rows in the caller's list of texts, for the errors.
        model: name of the model, for the errors.

    Raises:
        NothingKnown: there are rows of zeros.
        ModelError: a row is not finite.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (bad := ~np.isfinite(norms[:, 0])).any():
        raise ModelError(
            f"model {model!r} gave numbers that are not finite for text {order[int(bad.argmax())]}: its weights are "
            "broken; fetch it again"
        )
    if (zero := norms[:, 0] == 0).any():
        raise NothingKnown([order[row] for row in np.flatnonzero(zero).tolist()], model)
    return np.asarray(vectors / norms, np.float32)
