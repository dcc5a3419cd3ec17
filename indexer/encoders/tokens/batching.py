"""Work that every runtime does around its model: batches of texts of similar length, and unit vectors. Numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from indexer.errors import ModelError, NothingKnown
from indexer.records import Vector

_WATCH: ContextVar[Callable[[int], None] | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Callable[[int], None]) -> Iterator[None]:
    """Call a function with the number of texts after each batch that any encoder computes in the block.

    Worker threads of an encoder call it too, if they run in a copy of the context.
    """
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def tell(texts: int) -> None:
    """Tell the watch, if there is one, that this many texts were embedded."""
    if (watch := _WATCH.get()) is not None:
        watch(texts)


def batches(rows: Sequence[Sized], tokens: int) -> Iterator[list[int]]:
    """Yield batches of texts of similar length, longest first.

    Args:
        rows: the tokens of each text, of which only the number is read.
        tokens: maximum tokens of one batch, padding counted. A single longer text is a batch of its own.

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
    """Return the rows scaled to unit length, and tell the watch of them.

    Args:
        vectors: the model's vectors (n, dimensions).
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
    tell(len(order))
    return np.asarray(vectors / norms, np.float32)


def unknown_token(model: str) -> ModelError:
    """Return the error for a token of the tokenizer that the weights have no vector for."""
    return ModelError(
        f"model {model!r} has a tokenizer with more tokens than its weights have vectors: they do not belong together; "
        "fetch it again"
    )
