"""Vectors and lists of ids as the server sends and reads them in binary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format

from indexer.stores.port import Ids
from indexer.stores.vectors import damage

_HEADER_BYTES = 4
"""Bytes before the components of a halfvec in binary: its width and a zero, 16 bits each. All numbers are
big-endian."""


def halves(values: Sequence[bytes], dimensions: int) -> NDArray[np.float16]:
    """Return vectors as the server sends them as rows (n, dimensions), bit for bit.

    Raises:
        IndexDamaged: a vector has another width.
    """
    size = _HEADER_BYTES + 2 * dimensions
    if any(len(value) != size for value in values):
        raise damage("a passage has a vector of another width")
    words = np.frombuffer(b"".join(values), ">f2").reshape(len(values), size // 2)
    return words[:, _HEADER_BYTES // 2 :].astype(np.float16)


def to_binary(blobs: Sequence[bytes]) -> list[bytes]:
    """Return vectors, float16 and little-endian, as the server reads them in binary."""
    header = len(blobs[0]) // 2 if blobs else 0
    start = header.to_bytes(2, "big") + b"\0\0"
    return [start + np.frombuffer(blob, "<u2").astype(">u2").tobytes() for blob in blobs]


def blob_of(value: bytes) -> bytes:
    """Return a vector as the bytes that its checksum is made from: float16, little-endian."""
    return np.frombuffer(value, ">u2", offset=_HEADER_BYTES).astype("<u2").tobytes()


class IdArray(bytes):
    """Ids as a parameter of the type bigint[]. A list of 10,000 numbers would take psycopg 5 ms of CPU time."""

    __slots__ = ()

    @classmethod
    def of(cls, ids: Ids) -> IdArray:
        """Return the array of these ids (n,)."""
        header = np.array([1, 0, _BIGINT, len(ids), 1], ">i4")  # dimensions, nulls, type; length and first subscript
        elements = np.empty(len(ids), [("size", ">i4"), ("id", ">i8")])
        elements["size"], elements["id"] = 8, ids
        return cls(header.tobytes() + elements.tobytes())


class IdArrayDumper(Dumper):
    """Sends an `IdArray` as it is."""

    format, oid = Format.BINARY, 1016

    def dump(self, obj: IdArray) -> bytes:
        return obj


_BIGINT = 20
"""Number of the type bigint in every server; that of its arrays is 1016."""
