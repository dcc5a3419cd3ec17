"""Vectors as they are stored: unit rows, float16, with a checksum over passage and vector."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexer.errors import BadInput, IndexDamaged
from indexer.records import Document, Span, Vector

CHECKSUM_BYTES = 8

_TOLERANCE = 5e-7
"""How far a stored row's squared length may be from 1 before its rounding is mended."""

_STORED = 1e-3
"""How far it may be in an index at all: rows of few dimensions leave little to mend with."""

_TOGETHER = 256
"""Rows rounded together: what fits the processor's cache is done in half the time."""


def unit_rows(vectors: ArrayLike, dimensions: int, names: list[str]) -> Vector:
    """Rows scaled to length 1 (n, dimensions), float32.

    Raises:
        BadInput: another shape, a value that is not finite, or a zero row; names the row's uri.
    """
    try:
        rows = np.asarray(vectors)
    except ValueError as error:
        raise BadInput(f"vectors are no array of numbers: {error}") from error
    if rows.dtype.kind not in "fiu" or rows.ndim != 2 or rows.shape != (len(names), dimensions):
        raise BadInput(
            f"vectors have shape {rows.shape} and type {rows.dtype}: this index needs ({len(names)}, "
            f"{dimensions}) of float32 or float16, one row a vector"
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        rows = np.ascontiguousarray(rows, dtype=np.float32)
    # float64 for the length: squares of large float32 values overflow.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    for wrong, what in (
        (~np.isfinite(rows).all(axis=1), "a value that is not finite"),
        (lengths == 0, "only zeros"),
    ):
        if wrong.any():
            raise BadInput(f"the vector of {names[int(wrong.argmax())]!r} has {what}: it stands for no direction")
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def stored_rows(vectors: NDArray[np.floating], dimensions: int, names: list[str]) -> Vector:
    """As `unit_rows`, for rows that left a store: those that are float16 of unit length stay bit for bit."""
    rows = unit_rows(vectors, dimensions, names)
    half = np.asarray(vectors).astype("<f2").astype(np.float32)
    kept = np.abs(np.einsum("ij,ij->i", half, half) - 1) < _STORED
    rows[kept] = half[kept]
    return rows


class _WithVectors(Protocol):
    @property
    def document(self) -> Document: ...
    @property
    def spans(self) -> Sequence[Span] | None: ...
    @property
    def vectors(self) -> Vector | None: ...


def require_fitting(documents: Iterable[_WithVectors], dimensions: int) -> None:
    """Raise BadInput, naming the document, unless there is one vector of the index's dimensions per passage."""
    for item in documents:
        shape = None if item.vectors is None else item.vectors.shape
        if shape != (None if item.spans is None else (len(item.spans), dimensions)):
            raise BadInput(
                f"{item.document.uri}: has {len(item.spans or ())} passages and vectors of shape {shape}: give one of "
                f"{dimensions} dimensions for each"
            )


def to_blobs(rows: Vector) -> list[bytes]:
    """Each unit row as little-endian float16 bytes, still of unit length."""
    blobs: list[bytes] = []
    for start in range(0, len(rows), _TOGETHER):
        data = _round_to_unit(rows[start : start + _TOGETHER]).tobytes()
        width = 2 * rows.shape[1]
        blobs += [data[at : at + width] for at in range(0, len(data), width)]
    return blobs


def _round_to_unit(rows: Vector) -> NDArray[np.float16]:
    """Round to float16 so that each row keeps length 1 to about 1e-6, where plain rounding misses by up to 6e-5.

    A few components go to their second nearest float16 to make up for the rest. The inner product of a stored row
    with a unit vector is then its cosine, and FAISS and numpy rank alike.
    """
    half = rows.astype("<f2")
    rounded = (half != rows).any(axis=1)  # what came from a store stays as it was there
    for _ in range(8):
        excess = np.einsum("ij,ij->i", half, half, dtype=np.float64) - 1
        (wrong,) = np.nonzero(rounded & (np.abs(excess) > _TOLERANCE))
        if not len(wrong):
            break
        # A sample of the components holds steps of every size needed, and costs a sixth.
        few = half[wrong, : max(64, half.shape[1] // 6)]
        toward = np.where(excess[wrong, None] > 0, np.float16(0), np.copysign(np.float16(np.inf), few))
        neighbour = np.nextafter(few, toward)
        left = np.abs(excess[wrong, None] + neighbour.astype(np.float32) ** 2 - few.astype(np.float32) ** 2)
        best = left.argmin(axis=1)
        at = np.arange(len(wrong))
        better = left[at, best] < np.abs(excess[wrong])
        half[wrong[better], best[better]] = neighbour[at[better], best[better]]
    return half


def from_blobs(blobs: list[bytes], dimensions: int) -> Vector:
    """Stored rows as float32 (n, dimensions).

    Raises:
        IndexDamaged: one is not a row of so many dimensions.
    """
    if not all(isinstance(blob, bytes) and len(blob) == 2 * dimensions for blob in blobs):
        raise IndexDamaged("catalog.db: a stored vector is damaged; likewise check names its document")
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), dimensions).astype(np.float32)


def cosines(rows: Vector, vector: Vector) -> Vector:
    """Of unit rows (n, dimensions) with a unit vector (dimensions,).

    Summed alike wherever a row stands: BLAS would give equal rows last bits of their own, and ties another order.
    """
    return np.asarray(np.einsum("ij,j->i", rows, vector))


def checksum(text: str, blob: bytes) -> bytes:
    """What a damaged row is known by (BLAKE2b over the passage's text and its vector, 8 bytes)."""
    digest = hashlib.blake2b(text.encode(), digest_size=CHECKSUM_BYTES)
    digest.update(b"\0")
    digest.update(blob)
    return digest.digest()
