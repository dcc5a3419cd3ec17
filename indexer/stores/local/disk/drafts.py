"""Drafts: hidden folders in which indexes are made, and what killed processes have left of them.

A draft of INDEX is the folder `.NAME.` and eight digits beside it. The file `making` in it holds the name of the draft,
and its maker has it locked until the draft has become INDEX or is removed. An abandoned draft is a folder with such a
name whose file `making` names it and is not locked: nothing else is removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from indexer.errors import Message
from indexer.stores.port import SIDE_SLOTS

MARK = "making"
"""File in every draft: it holds the name of the draft's folder, and is locked by its maker."""

_DIGITS = 4  # bytes
_NAME = re.compile(rf"\..+\.[0-9a-f]{{{2 * _DIGITS}}}", re.DOTALL)


class Draft(NamedTuple):
    """A draft that this process makes.

    Attributes:
        folder: the hidden folder.
        lock: the open and locked file `making`.
    """

    folder: Path
    lock: int

    def end(self) -> None:
        """Unlock the draft, which has become an index or is removed."""
        fcntl.flock(self.lock, fcntl.LOCK_UN)  # a forked child has the file open too
        os.close(self.lock)


def sweep_drafts(folder: Path, *, is_held: bool = False) -> int:
    """Remove the abandoned drafts of the index at `folder`; return their size in bytes.

    Args:
        is_held: this process has the writer lock of the index, and nobody else can replace it: a folder without a
            mark is an index that was replaced.
    """
    size = 0
    for draft in _drafts(folder.parent):
        if address_of(draft) == folder:
            with _abandoned(draft, fcntl.LOCK_EX) as is_abandoned:
                if is_abandoned or (is_held and not (draft / MARK).exists()):
                    size += size_of(draft)
                    shutil.rmtree(draft, ignore_errors=True)
    return size


def notes_on_abandoned(folder: Path) -> tuple[str, ...]:
    """Return a note for each abandoned draft of the index at `folder`, with its size."""
    notes = []
    for draft in (each for each in _drafts(folder.parent) if address_of(each) == folder):
        with _abandoned(draft, fcntl.LOCK_SH) as is_abandoned:
            if is_abandoned:
                text = f"{draft}: what a killed command was making takes {size_of(draft) / 2**20:,.1f} MB"
                notes.append(Message(text, f"; likewise copy --drop {shlex.quote(str(folder))} removes it"))
    return tuple(notes)


def hidden_name(name: str) -> str:
    """Return a new name for a draft of the index of this name."""
    return f".{name}.{secrets.token_hex(_DIGITS)}"


def address_of(draft: Path) -> Path:
    """Return the folder that a draft is to become."""
    return draft.with_name(draft.name[1:].rpartition(".")[0])


def _drafts(parent: Path) -> list[Path]:
    """Return the folders that may be drafts, by name. A folder that does not exist or cannot be listed has none."""
    try:
        with os.scandir(parent) as entries:
            names = [each.name for each in entries if _NAME.fullmatch(each.name)]
    except OSError:
        return []
    return [parent / name for name in sorted(names)]


def locked_mark(hidden: Path) -> int:
    """Write the mark of a draft, locked before anybody can see it; return the open file."""
    unseen = hidden / f"{MARK}.new"
    lock = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, os.fsencode(hidden.name))
        unseen.rename(hidden / MARK)
    except BaseException:
        os.close(lock)
        raise
    return lock


@contextmanager
def _abandoned(draft: Path, lock: int) -> Iterator[bool]:
    """Hold the lock of a draft for the length of a block, if it was abandoned; yield whether it was."""
    try:
        file = os.open(draft / MARK, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:  # not a draft, not any more, or of another user
        yield False
        return
    try:
        try:
            fcntl.flock(file, lock | fcntl.LOCK_NB)
        except OSError:  # its maker lives, or this file system has no locks
            yield False
            return
        yield os.pread(file, 4096, 0) == os.fsencode(draft.name)
    finally:
        os.close(file)


def size_of(folder: Path) -> int:
    """Return the bytes of an index's files, without "next" and "previous". Another process may remove some during the
    walk."""
    total = 0
    for parent, folders, names in os.walk(folder):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in SIDE_SLOTS]
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total
