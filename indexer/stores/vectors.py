"""Vectors as they are stored: unit rows, float16, with a checksum over passage and vector."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexer.errors import BadInput, IndexDamaged, Message
from indexer.records import Vector
from indexer.stores.port import EmbeddedDocument

CHECKSUM_BYTES = 8

_MAX_LENGTH_ERROR = 5e-7
"""Error of a rounded row's squared length above which its rounding is corrected."""

_MAX_STORED_ERROR = 1e-3
"""Largest error of a stored row's squared length: rows of few dimensions have few components to correct it with."""

_FLOAT_BITS = np.int32(-0x80000000 | 0x0FFFE000)  # sign, five bits of the exponent, ten of the mantissa
_EXPONENT_SHIFT = np.float32(2.0**112)  # between the biases of the exponents, 127 and 15

_BATCH_ROWS = 256
"""Rows that are rounded together: a batch that fits the processor's cache takes half the time."""


def unit_rows(vectors: ArrayLike, dimensions: int, names: list[str]) -> Vector:
    """Return rows scaled to length 1 (n, dimensions), float32.

    Args:
        vectors: (n, dimensions), of any type of number.
        dimensions: width of a row; 0 for the width that the rows have.
        names: uris of the rows, for messages (n,).

    Raises:
        BadInput: another shape, a value that is not finite, or a row of zeros; names the row's uri.
    """
    try:
        rows = np.asarray(vectors)
    except ValueError as error:
        raise BadInput(
            "vectors are not an array of numbers with rows of one width; for several passages per document, "
            "give one array per document, and their spans="
        ) from error
    dimensions = dimensions or (rows.shape[-1] if rows.ndim > 1 else 0)
    if rows.dtype.kind not in "fiu" or rows.ndim != 2 or rows.shape != (len(names), dimensions):
        raise BadInput(
            f"vectors have shape {rows.shape} and type {rows.dtype}: this index needs ({len(names)}, "
            f"{dimensions}) of numbers such as float32 or float16, one row per vector"
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        rows = np.ascontiguousarray(rows, dtype=np.float32)
    # float64 for the length: squares of large float32 values overflow.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    for wrong, problem in (
        (~np.isfinite(rows).all(axis=1), "a value that is not finite"),
        (lengths == 0, "only zeros"),
    ):
        if wrong.any():
            raise BadInput(f"the vector of {names[int(wrong.argmax())]!r} has {problem}: it has no direction")
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def stored_rows(vectors: NDArray[np.floating], dimensions: int, names: list[str]) -> Vector:
    """Do the same as `unit_rows` for rows that come from a store: float16 rows of unit length stay bit for bit."""
    rows = unit_rows(vectors, dimensions, names)
    half = np.asarray(vectors).astype("<f2").astype(np.float32)
    kept = np.abs(np.einsum("ij,ij->i", half, half) - 1) < _MAX_STORED_ERROR
    rows[kept] = half[kept]
    return rows


def require_matching_shapes(documents: Iterable[EmbeddedDocument], dimensions: int) -> None:
    """Raise BadInput, naming the document, unless there is one vector of the index's dimensions per passage."""
    for item in documents:
        shape = None if item.vectors is None else item.vectors.shape
        if shape != (None if item.spans is None else (len(item.spans), dimensions)):
            raise BadInput(
                f"{item.document.uri}: has {len(item.spans or ())} passages and vectors of shape {shape}: give one of "
                f"{dimensions} dimensions for each"
            )


def to_blobs(rows: Vector) -> list[bytes]:
    """Return each unit row (n, dimensions) as bytes of little-endian float16, still of unit length."""
    blobs: list[bytes] = []
    for start in range(0, len(rows), _BATCH_ROWS):
        data = _round_to_unit(rows[start : start + _BATCH_ROWS]).tobytes()
        width = 2 * rows.shape[1]
        blobs += [data[offset : offset + width] for offset in range(0, len(data), width)]
    return blobs


def _round_to_unit(rows: Vector) -> NDArray[np.float16]:
    """Round to float16 so that the length of each row stays 1 to about 1e-6; plain rounding errs by up to 6e-5.

    A few components are rounded to their second nearest float16 to compensate for the others. The inner product of a
    stored row with a unit vector is then its cosine, and FAISS and numpy give the same ranking.
    """
    half = rows.astype("<f2")
    rounded = (half != rows).any(axis=1)  # a row that came from a store stays as it was there
    for _ in range(8):
        excess = np.einsum("ij,ij->i", half, half, dtype=np.float64) - 1
        (wrong,) = np.nonzero(rounded & (np.abs(excess) > _MAX_LENGTH_ERROR))
        if not len(wrong):
            break
        # A sixth of the components has steps of every size that is needed.
        sample = half[wrong, : max(64, half.shape[1] // 6)]
        toward = np.where(excess[wrong, None] > 0, np.float16(0), np.copysign(np.float16(np.inf), sample))
        neighbour = np.nextafter(sample, toward)
        remaining = np.abs(excess[wrong, None] + neighbour.astype(np.float32) ** 2 - sample.astype(np.float32) ** 2)
        best = remaining.argmin(axis=1)
        each = np.arange(len(wrong))
        better = remaining[each, best] < np.abs(excess[wrong])
        half[wrong[better], best[better]] = neighbour[each[better], best[better]]
    return half


def damage(problem: str) -> IndexDamaged:
    """Return the error for stored values that contradict each other; `likewise check` finds the document."""
    return IndexDamaged(Message(problem, "; likewise check says what is damaged"))


def half_rows(blobs: Sequence[bytes], dimensions: int) -> NDArray[np.float16]:
    """Return stored rows as they are (n, dimensions).

    Raises:
        IndexDamaged: a blob is not a row of this many dimensions.
    """
    if not all(isinstance(blob, bytes) and len(blob) == 2 * dimensions for blob in blobs):
        raise damage("catalog.db: a stored vector is damaged")
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), dimensions)


def from_blobs(blobs: Sequence[bytes], dimensions: int) -> Vector:
    """Return stored rows as float32 (n, dimensions). Raises IndexDamaged as `half_rows` does."""
    return to_float32(half_rows(blobs, dimensions))


def to_float32(half: NDArray[np.float16]) -> Vector:
    """Return finite little-endian float16 (n, dimensions) as float32, bit for bit as `astype` does, which is half as
    fast: numpy converts one number after the other, and whole registers of integers.
    """
    bits = half.view("<i2").astype("<i4")
    bits <<= 13  # exponent and mantissa to their places; the sign fills all bits above the exponent
    bits &= _FLOAT_BITS
    values = bits.view("<f4")
    values *= _EXPONENT_SHIFT
    return values


def cosines(rows: Vector, vector: Vector) -> Vector:
    """Return the cosines (n,) of unit rows (n, dimensions) with a unit vector (dimensions,).

    Every row is summed in the same way: BLAS may give equal rows different last bits, and so order ties differently.
    """
    return np.asarray(np.einsum("ij,j->i", rows, vector))


def checksum(text: str, blob: bytes) -> bytes:
    """Return the checksum of a passage, by which a damaged row is found: 8 bytes of BLAKE2b over text and vector."""
    digest = hashlib.blake2b(text.encode(), digest_size=CHECKSUM_BYTES)
    digest.update(b"\0")
    digest.update(blob)
    return digest.digest()
