"""Swapping the names of two folders in one step."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from indexer.errors import StorageError
from indexer.stores.local.segments.files import sync

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # constants of the Linux system call


def swap(one: Path, other: Path) -> None:
    """Swap the names of two folders, in one step if the system can do that (renameat2 of Linux).

    Raises:
        StorageError: the file system refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
            return sync(one.parent)
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):  # the errors of file systems that cannot swap
            raise StorageError(f"{one}: cannot be replaced ({os.strerror(ctypes.get_errno())})")
    aside = one.with_name(f"{other.name}.old")
    one.rename(aside)
    try:
        other.rename(one)
    except OSError:
        aside.rename(one)
        raise
    aside.rename(other)
    sync(one.parent)
