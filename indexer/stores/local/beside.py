"""The indexes that stand beside one, in its folder: INDEX/next and INDEX/previous, and how one takes its place.

A folder cannot swap names with one inside it. So the other index moves out to a hidden sibling, the two swap names in
one step, and the sibling moves in. The file `beside` is in every index that stands beside another one: after a kill it
tells which of the two the sibling is. Searches find one whole index under the name at every moment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import StorageError
from indexer.stores.local.failpoint import failpoint
from indexer.stores.port import PLACES, Place

_MARK = "beside"
"""File in every index that stands beside another one, with its place."""

_DRAFT, _DROPPED = ".next", ".dropped"
"""Folders inside of an index that are being made or removed."""


def make(folder: Path, initialise: Callable[[Path], None]) -> None:
    """Make INDEX/next, which appears complete or not at all. Use under the writer lock.

    Args:
        initialise: fills an empty folder with an empty index.

    Raises:
        StorageError: the disk refuses, or would refuse the exchange.
    """
    from indexer.stores.local.segments.files import sync  # readers do not write

    _require_renames(folder)
    with _errors(folder / "next"):
        _sweep(folder)
        draft = folder / _DRAFT
        draft.mkdir()
        initialise(draft)
        _mark(draft, "next")
        for path in (*draft.rglob("*"), draft):
            sync(path)
        draft.rename(folder / "next")
        sync(folder)


def exchange(folder: Path, place: Place) -> None:
    """Let the index at a place take the name of the one it is in, which stands at INDEX/previous from then on.

    Nothing of both may be open for writing, and the writer locks of both are held.

    Raises:
        StorageError: the disk refuses; nothing has changed, or the next writer completes it.
    """
    from indexer.stores.local.segments.files import sync
    from indexer.stores.local.swap import swap

    sibling = _sibling(folder)
    if place != "previous" and (folder / "previous").exists():  # found after the names were swapped, it would be late
        raise StorageError(f"{folder / 'previous'}: is in the way and is not an index: move it away and run it again")
    with _errors(folder):
        (folder / place).rename(sibling)
        sync(folder.parent)
        failpoint("exchange.out")
        try:
            swap(folder, sibling)
        except (OSError, StorageError):
            sibling.rename(folder / place)
            raise
        failpoint("exchange.swapped")
        _move_in(folder, sibling)


def complete(folder: Path) -> None:
    """Complete an exchange that a killed process began, or take it back if the names were not swapped yet.

    What a killed process was making or removing is removed.

    Use under the writer lock.
    """
    sibling = _sibling(folder)
    with _errors(folder):
        _sweep(folder)
    if sibling.exists():
        with _errors(folder):
            if (folder / _MARK).exists():
                _move_in(folder, sibling)
            else:
                sibling.rename(folder / _place_of(sibling))
    elif (folder / _MARK).exists() and not _stands_beside(folder):
        (folder / _MARK).unlink(missing_ok=True)


def drop(folder: Path, place: Place) -> None:
    """Remove the index at a place. Use under the writer locks of both.

    Raises:
        StorageError: the disk refuses.
    """
    with _errors(folder / place):
        _sweep(folder)
        (folder / place).rename(folder / _DROPPED)
        _sweep(folder)


def _require_renames(folder: Path) -> None:
    """Refuse a folder that cannot be renamed: `exchange` would find that out after hours of work."""
    parent = folder.parent
    with _errors(folder):
        if folder.stat().st_dev != parent.stat().st_dev:
            raise StorageError(
                f"{folder}: is where another disk begins, so that its name cannot change hands: move the index into a "
                "folder on that disk"
            )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise StorageError(
            f"{parent}: cannot be written, and the index in it has to change its name: ask for permission, or move the "
            "index"
        )


def _sibling(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.beside")


def _move_in(folder: Path, sibling: Path) -> None:
    """Complete an exchange after the names were swapped.

    The mark moves from one index to the other, so that a full disk does not stop this. After a kill between the two
    renames the sibling has the mark, and moves to the place that it names.
    """
    from indexer.stores.local.segments.files import sync

    if _place_of(folder) != "previous":
        _mark(folder, "previous")
    (folder / _MARK).rename(sibling / _MARK)
    sync(sibling)
    sync(folder)
    failpoint("exchange.in")
    sibling.rename(folder / "previous")
    sync(folder)
    sync(folder.parent)


def _mark(folder: Path, place: Place) -> None:
    from indexer.stores.local.segments.files import sync

    path, content = folder / _MARK, f"{place}\n".encode("ascii")
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, content, 0)  # in place: a full disk has no room for another block
        os.ftruncate(file, len(content))
        os.fsync(file)
    finally:
        os.close(file)
    sync(folder)


def _place_of(marked: Path) -> Place:
    """Return the place that the mark of an index names."""
    text = (marked / _MARK).read_text(encoding="ascii", errors="replace").strip() if (marked / _MARK).exists() else ""
    return "previous" if text == "previous" else "next"


def _stands_beside(folder: Path) -> bool:
    return folder.name in PLACES and (folder.parent / "catalog.db").exists()


def _sweep(folder: Path) -> None:
    """Remove what was half made or half removed when a process was killed."""
    for name in (_DRAFT, _DROPPED):
        if (folder / name).exists():
            shutil.rmtree(folder / name)


@contextmanager
def _errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{folder}: cannot be changed ({error.strerror})") from error
