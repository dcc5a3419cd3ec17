"""The folders of an index's slots, and how an index moves from one to another, also after a kill.

A draft is a hidden folder beside INDEX, `.NAME.` and eight digits (disk/drafts.py); an unfinished index is
`.NAME.unfinished`. Both get the name INDEX in one step. INDEX/next and INDEX/previous cannot swap names with the folder
that they are in. So the index moves out to the hidden folder `.NAME.beside`, the two swap names in one step, and the
replaced index moves in. The file `beside` is in every index at "next" and "previous": after a kill it tells which of
the two is the hidden folder. Searches find one whole index under the name at every moment.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import BadInput, NotPermitted, StorageError, storage_error
from indexer.stores.local.disk import drafts
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.segments.files import sync as _sync
from indexer.stores.port import SIDE_SLOTS, SideSlot

Fill = Callable[[Path], None]
"""Fills an empty folder with an empty index."""

_MARK = "beside"
"""File in every index at "next" and "previous", which names its slot."""

_MAKING, _DROPPED = ".next", ".dropped"
"""Folders inside of an index that are being made or removed."""


# a draft, an unfinished index, and the live index that they become


def require_room(folder: Path) -> Path:
    """Return the folder for a new index of this name. If the name is a link, it is the folder that the link leads to.

    Raises:
        BadInput: something is there already.
    """
    if folder.exists():
        if not folder.is_dir() or any(folder.iterdir()):
            raise BadInput(f"{folder}: is there already and is not an empty folder: choose another name")
        if folder.samefile(Path.cwd()):  # the shell would stay in the folder that is replaced
            raise BadInput(f"{folder}: is the folder you are in: give the index a folder of its own, such as my.index")
        folder = folder.resolve()
    if any((parent / "catalog.db").exists() for parent in folder.parents):
        raise BadInput(f"{folder}: is inside the folder of an index, where only likewise writes: choose another place")
    return folder


def hidden(folder: Path, suffix: str) -> Path:
    return folder.with_name(f".{folder.name}.{suffix}")


def make_draft(folder: Path, fill: Fill) -> drafts.Draft:
    """Make a draft of the index at `folder`.

    Raises:
        StorageError: the disk refuses.
    """
    draft = folder.with_name(drafts.hidden_name(folder.name))
    with making(folder):
        draft.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.mkdir()
            made = drafts.Draft(draft, drafts.locked_mark(draft))
            try:
                fill(draft)
            except BaseException:
                made.end()
                raise
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return made


def make_unfinished(folder: Path, fill: Fill) -> None:
    """Make the unfinished index of `folder`, which appears complete or not at all. Raises StorageError."""
    draft = make_draft(folder, fill)
    try:
        appear(draft.folder, hidden(folder, "unfinished"))
    except BaseException:
        shutil.rmtree(draft.folder, ignore_errors=True)
        raise
    finally:
        draft.end()


def appear(folder: Path, new: Path) -> None:
    """Write everything in a folder to the disk and rename the folder. The new name is free or belongs to an empty
    folder.

    Raises:
        BadInput: another process has made a folder of this name.
        StorageError: the disk refuses.
    """
    with making(new):
        _sync_all(folder)
        try:
            folder.rename(new)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise BadInput(f"{new}: is there already: another process has just made it") from error
        (new / drafts.MARK).unlink(missing_ok=True)
        _sync(new.parent)


def replace(folder: Path, draft: Path) -> None:
    """Make a draft the live index, and remove the earlier live index. Use under the writer lock.

    Raises:
        StorageError: the disk refuses.
    """
    from indexer.stores.local.swap import swap

    try:
        with _changing(folder):
            _sync_all(draft)
            swap(folder, draft)
            if (folder / drafts.MARK).exists():  # After a kill the replaced index is removed as an abandoned draft is.
                (folder / drafts.MARK).rename(draft / drafts.MARK)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove(folder: Path) -> int:
    """Remove a hidden folder; return its size in bytes. Raises StorageError if the disk refuses."""
    with _changing(folder):
        size = drafts.size_of(folder)
        shutil.rmtree(folder)
    return size


# "next" and "previous"


def make_next(folder: Path, fill: Fill) -> None:
    """Make INDEX/next, which appears complete or not at all. Use under the writer lock.

    Raises:
        BadInput: the folder is "next" or "previous" of another index.
        StorageError: the disk refuses, or would refuse the exchange.
    """
    if _is_side_index(folder):
        raise BadInput(f"{folder}: belongs to the index {folder.parent}: change the model of that index")
    _require_renames(folder)
    with _changing(folder / "next"):
        _sweep(folder)
        draft = folder / _MAKING
        draft.mkdir()
        fill(draft)
        _mark(draft, "next")
        _sync_all(draft)
        draft.rename(folder / "next")
        _sync(folder)


def exchange(folder: Path, slot: SideSlot) -> None:
    """Make the index at "next" or "previous" the live index. The earlier live index moves to "previous".

    The caller holds the writer locks of both indexes, and no file of either index is open for writing.

    Raises:
        StorageError: the disk refuses; nothing has changed, or the next writer completes it.
    """
    from indexer.stores.local.swap import swap

    aside = hidden(folder, "beside")
    if slot != "previous" and (folder / "previous").exists():  # found after the names were swapped, it would be late
        raise StorageError(f"{folder / 'previous'}: is in the way and is not an index: move it away and run it again")
    with _changing(folder):
        (folder / slot).rename(aside)
        _sync(folder.parent)
        failpoint("exchange.out")
        try:
            swap(folder, aside)
        except (OSError, StorageError):
            aside.rename(folder / slot)
            raise
        failpoint("exchange.swapped")
        _move_in(folder, aside)


def complete(folder: Path) -> None:
    """Complete an exchange that a killed process began, or undo it if the names were not swapped yet.

    Folders that a killed process was making or removing are removed. Use under the writer lock.
    """
    aside = hidden(folder, "beside")
    with _changing(folder):
        _sweep(folder)
    if aside.exists():
        with _changing(folder):
            if (folder / _MARK).exists():
                _move_in(folder, aside)
            else:
                aside.rename(folder / _slot_of(aside))
    elif (folder / _MARK).exists() and not _is_side_index(folder):
        (folder / _MARK).unlink(missing_ok=True)


def drop(folder: Path, slot: SideSlot) -> int:
    """Remove the index at "next" or "previous"; return its size in bytes. Use under the writer locks of both.

    Raises:
        StorageError: the disk refuses.
    """
    with _changing(folder / slot):
        size = drafts.size_of(folder / slot)
        _sweep(folder)
        (folder / slot).rename(folder / _DROPPED)
        _sweep(folder)
    return size


def _require_renames(folder: Path) -> None:
    """Refuse a folder that cannot be renamed. Otherwise `exchange` would fail after hours of work."""
    parent = folder.parent
    with _changing(folder):
        if folder.stat().st_dev != parent.stat().st_dev:
            raise StorageError(
                f"{folder}: is the mount point of a disk and cannot be renamed: move the index into a folder on it"
            )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise NotPermitted(
            f"{parent}: cannot be written, and the index in it has to change its name: ask for permission, or move the "
            "index"
        )


def _move_in(folder: Path, aside: Path) -> None:
    """Complete an exchange after the names were swapped.

    The mark moves from one index to the other, so that a full disk does not stop this. After a kill between the two
    renames the hidden folder has the mark, and moves to the slot that it names.
    """
    if _slot_of(folder) != "previous":
        _mark(folder, "previous")
    (folder / _MARK).rename(aside / _MARK)
    _sync(aside)
    _sync(folder)
    failpoint("exchange.in")
    aside.rename(folder / "previous")
    _sync(folder)
    _sync(folder.parent)


def _mark(folder: Path, slot: SideSlot) -> None:
    path, content = folder / _MARK, f"{slot}\n".encode("ascii")
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, content, 0)  # in place: a full disk has no room for another block
        os.ftruncate(file, len(content))
        os.fsync(file)
    finally:
        os.close(file)
    _sync(folder)


def _slot_of(marked: Path) -> SideSlot:
    """Return the slot that the mark of an index names."""
    text = (marked / _MARK).read_text(encoding="ascii", errors="replace").strip() if (marked / _MARK).exists() else ""
    return "previous" if text == "previous" else "next"


def _is_side_index(folder: Path) -> bool:
    return folder.name in SIDE_SLOTS and (folder.parent / "catalog.db").exists()


def _sweep(folder: Path) -> None:
    """Remove folders that were half made or half removed when a process was killed."""
    for name in (_MAKING, _DROPPED):
        if (folder / name).exists():
            shutil.rmtree(folder / name)


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(f"{folder}: cannot be changed ({error.strerror})", error) from error


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Let an error of the disk name the folder that the caller asked for, and not the hidden folder that was
    written."""
    try:
        yield
    except OSError as error:
        raise storage_error(f"{folder}: cannot be made ({error.strerror})", error) from error
    except StorageError as error:
        raise type(error)(f"{folder}: cannot be made ({error.__cause__ or error})") from error


def _sync_all(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        _sync(path)
