"""Folders that appear in one step: a new one under its name, or two that swap names."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import BadInput, StorageError
from indexer.stores.local.segments.files import sync

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # constants of the Linux system call


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside `folder`. It gets that name if the block ends well, and is removed otherwise.

    Raises:
        BadInput: something exists there already.
        StorageError: the disk refuses.
    """
    if folder.exists():
        if not folder.is_dir() or any(folder.iterdir()):
            raise BadInput(f"{folder}: is there already and is not an empty folder: choose another name")
        if folder.samefile(Path.cwd()):  # the shell would stay in the folder that is replaced
            raise BadInput(f"{folder}: is the folder you are in: give the index a folder of its own, such as my.index")
        folder = folder.resolve()  # the folder that a link leads to
    if any((parent / "catalog.db").exists() for parent in folder.absolute().parents):
        raise BadInput(f"{folder}: is inside of an index, whose folder is likewise's own: choose another place")
    sibling = folder.absolute().with_name(f".{folder.absolute().name}.{secrets.token_hex(4)}")
    try:
        sibling.parent.mkdir(parents=True, exist_ok=True)
        sibling.mkdir()
        yield sibling
        for path in (*sibling.rglob("*"), sibling):
            sync(path)
        sibling.rename(folder)
        sync(folder.absolute().parent)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made ({error.strerror})") from error
    finally:
        shutil.rmtree(sibling, ignore_errors=True)


def swap(one: Path, other: Path) -> None:
    """Let two folders swap names, in one step where the system can do that (renameat2 of Linux).

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
