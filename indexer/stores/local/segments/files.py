"""A segment on disk: two immutable files, written completely or not at all, and verified before they are used.

NAME.faiss holds the vectors by position (faiss_segment.py), NAME.ids the passage and document id at each position.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged, storage_error
from indexer.lazy_property import LazyProperty
from indexer.stores.local.disk.failpoint import failpoint

_ID = np.dtype("<i8")
_LIST = np.dtype("<i4")

_MAX_READ_BYTES = 2**18
"""Maximum size of a file of positions that is read and not mapped: 16,384 passages of an exact segment."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A row of the table `segment`: the catalog's record of a segment's files.

    Attributes:
        file: name of its files in segments/, without suffix.
        kind: "exact" or "approximate".
        count: vectors in it.
        size: bytes of both files together.
        sha256: hash of both files, one after the other.
        stamp: stamp of both files (`stamp_of`) when the hash was last verified.
        parameters: JSON object: how an approximate segment was built and is to be searched; "{}" for an exact one.
    """

    file: str
    kind: str
    count: int
    size: int
    sha256: str
    stamp: str
    parameters: str = "{}"


@dataclass(frozen=True)
class Positions:
    """The ids at each position of a part, of a segment mapped from its file: nothing is read before it is used.

    Attributes:
        passages, documents: ids (n,), int64; passages ascending.
        lists: number of the inverted list of each (n,), int32; None for an exact segment.
    """

    passages: NDArray[np.int64]
    documents: NDArray[np.int64]
    lists: NDArray[np.int32] | None

    def of_documents(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of every passage of these documents, in no particular order."""
        ordered, order = self._by_document
        first = np.searchsorted(ordered, documents)
        counts = np.searchsorted(ordered, documents, side="right") - first
        places = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return places if order is None else order[places]

    @LazyProperty
    def _by_document(self) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The documents in ascending order, and the position of each; None if the documents are already in this order.

        A replaced document breaks the order: the document keeps its id, and its passages get new ids.
        """
        if bool((self.documents[1:] >= self.documents[:-1]).all()):
            return self.documents, None
        order = np.argsort(self.documents, kind="stable")
        return self.documents[order], order


def paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.faiss", folder / f"{name}.ids"


def stamp(folder: Path, name: str) -> str:
    return stamp_of(paths(folder, name))


def stamp_of(files: Iterable[Path]) -> str:
    """Return a text that changes when the content of a file may have changed: devices, inodes, sizes and times."""
    stats = (path.stat() for path in files)
    return " ".join(f"{s.st_dev}:{s.st_ino}:{s.st_size}:{s.st_mtime_ns}:{s.st_ctime_ns}" for s in stats)


def sha256_of(files: Iterable[Path]) -> str:
    """Return the hash of files, one after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, through to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(
    folder: Path, name: str, kind: str, positions: Positions, write: Callable[[Path], None], parameters: str = "{}"
) -> SegmentFile:
    """Write a segment's files. They are durable when this returns, and have no effect before.

    Args:
        write: writes the FAISS file to a path.

    Raises:
        StorageError: the disk refused; nothing is left behind.
    """
    temporary = f"{name}.tmp"
    try:
        folder.mkdir(exist_ok=True)
        vectors, ids = paths(folder, temporary)
        write(vectors)
        failpoint("seal.written")
        with ids.open("wb") as file:
            file.write(positions.passages.astype(_ID).tobytes())
            file.write(positions.documents.astype(_ID).tobytes())
            if positions.lists is not None:
                file.write(positions.lists.astype(_LIST).tobytes())
        for path in (vectors, ids):
            sync(path)
        digest = sha256_of(paths(folder, temporary))
        failpoint("seal.synced")
        for source, target in zip((vectors, ids), paths(folder, name), strict=True):
            source.rename(target)
            failpoint("seal.renamed")
        sync(folder)
    except (OSError, RuntimeError) as error:  # FAISS raises RuntimeError for a full disk
        for path in (*paths(folder, temporary), *paths(folder, name)):
            path.unlink(missing_ok=True)
        # FAISS names its source first, and the reason of the operating system at the end.
        reason = re.split(r": | \(", str(error).rstrip())[-1].rstrip(")") if isinstance(error, RuntimeError) else error
        message = f"{folder / name}: could not be written ({reason}); free some space and run again"
        raise storage_error(message, error) from error
    size = sum(path.stat().st_size for path in paths(folder, name))
    return SegmentFile(name, kind, len(positions.passages), size, digest, stamp(folder, name), parameters)


def verify(folder: Path, recorded: SegmentFile, *, thorough: bool = False) -> None:
    """Compare a segment's files with their record: always their size, their content if it may have changed.

    Args:
        thorough: compare the content in any case.

    Raises:
        IndexDamaged: a file is missing, or is not what was written.
    """
    try:
        files = paths(folder, recorded.file)
        new_stamp, size = stamp_of(files), sum(path.stat().st_size for path in files)
        if size != recorded.size:
            raise IndexDamaged(f"segment {folder / recorded.file}: has {size} bytes instead of {recorded.size}")
        if (thorough or new_stamp != recorded.stamp) and sha256_of(files) != recorded.sha256:
            raise IndexDamaged(f"segment {folder / recorded.file}: its content does not match its checksum")
    except OSError as error:
        raise IndexDamaged(f"segment {error.filename}: cannot be read ({error.strerror})") from error


def map_positions(folder: Path, recorded: SegmentFile) -> Positions:
    """Return the positions of a verified segment.

    Raises:
        IndexDamaged: the file cannot be read, for example because a writer has just replaced the segment.
    """
    _, path = paths(folder, recorded.file)
    try:
        data = _map(path)
    except OSError as error:
        raise IndexDamaged(f"segment {error.filename}: cannot be read ({error.strerror})") from error
    count = recorded.count
    ids = data[: 2 * count * _ID.itemsize].view(_ID)
    rest = data[2 * count * _ID.itemsize :]
    return Positions(ids[:count], ids[count:], rest.view(_LIST) if len(rest) else None)


def _map(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of a file. A large one is mapped, so that its bytes are read when they are used.

    Before Python 3.13 a mapped file also keeps a file descriptor, and a process may have many small indexes open.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= _MAX_READ_BYTES:
            return np.fromfile(file, np.uint8)
        if sys.version_info >= (3, 13):
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, trackfd=False), np.uint8)
        return np.asarray(np.memmap(file, np.uint8, "r"))  # plain: each slice of a memmap takes microseconds more
