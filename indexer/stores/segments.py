"""The one file that talks to FAISS: immutable segment files, built, opened and searched.

A segment holds vectors by position. Which passage stands at which position, and which are alive, its caller knows.
Scores are inner products, which for unit rows are cosines: higher is better.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged, StorageError
from indexer.records import Vector

EXACT = "exact"
"""Scalar-quantised float16 without loss: the stored vectors themselves, scanned whole."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """What the catalog records of a segment's file."""

    file: str
    kind: str
    count: int
    size: int
    sha256: str
    stamp: str


def stamp(path: Path) -> str:
    """What changes when a file's content may have: device, inode, size and times."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build(folder: Path, name: str, dimensions: int, batches: Iterable[Vector]) -> SegmentFile:
    """Write an exact segment `name` of unit rows given in batches (n, dimensions); durable when it returns.

    Raises:
        StorageError: the disk refused; nothing is left behind.
    """
    index = faiss.IndexScalarQuantizer(dimensions, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    for batch in batches:
        index.add(batch)
    path, temporary = folder / name, folder / f"{name}.tmp"
    try:
        folder.mkdir(exist_ok=True)
        faiss.write_index(index, str(temporary))
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        digest = sha256(temporary)
        temporary.rename(path)
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except (OSError, RuntimeError) as error:  # faiss raises RuntimeError for a full disk
        temporary.unlink(missing_ok=True)
        raise StorageError(f"{path}: could not be written ({error}); free some space and run again") from error
    return SegmentFile(name, EXACT, index.ntotal, path.stat().st_size, digest, stamp(path))


def verify(path: Path, recorded: SegmentFile, *, thorough: bool = False) -> None:
    """Compare a segment's file with its record: size always, content when the file may have changed.

    Raises:
        IndexDamaged: it is missing, or not the file that was sealed.
    """
    try:
        seen = stamp(path)
        if path.stat().st_size != recorded.size:
            raise IndexDamaged(f"{path}: has {path.stat().st_size} bytes instead of {recorded.size}")
        if (thorough or seen != recorded.stamp) and sha256(path) != recorded.sha256:
            raise IndexDamaged(f"{path}: its content does not match its checksum")
    except OSError as error:
        raise IndexDamaged(f"{path}: cannot be read ({error.strerror})") from error


class FaissSegment:
    """An open segment, mapped into memory: pages are read as searches touch them. Safe to share among threads."""

    def __init__(self, path: Path, recorded: SegmentFile) -> None:
        verify(path, recorded)
        try:
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexDamaged(f"{path}: cannot be opened ({error})") from error
        if self._index.ntotal != recorded.count:
            raise IndexDamaged(f"{path}: holds {self._index.ntotal} vectors instead of {recorded.count}")

    def search(
        self, vector: Vector, n: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The n best positions for a unit vector (dimensions,), best first; fewer where fewer are allowed.

        Args:
            allowed: one flag a position, or None for all.
        """
        n = min(n, self._index.ntotal)
        parameters = None
        if allowed is not None:
            bits = np.packbits(allowed, bitorder="little")
            # The stubs know the C++ constructors, not the Python ones.
            selector = faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg, arg-type]
            parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        scores, positions = self._index.search(vector[None, :], n, params=parameters)
        found = positions[0] >= 0  # FAISS pads with -1
        return scores[0][found], positions[0][found]


class PlainSegment:
    """Rows held in memory and scanned with numpy: the unsealed tail, or a segment whose file is damaged."""

    def __init__(self, rows: Vector) -> None:
        self._rows = rows

    def search(
        self, vector: Vector, n: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As `FaissSegment.search`."""
        scores = self._rows @ vector
        positions = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        scores = scores[positions]
        if n < len(scores):
            best = np.argpartition(scores, -n)[-n:]
            scores, positions = scores[best], positions[best]
        order = np.argsort(-scores, kind="stable")
        return scores[order], positions[order]
