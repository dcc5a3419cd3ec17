"""Folders that appear whole or not at all, and the copy of a store while it is read and written."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from indexer.errors import BadInput, StorageError
from indexer.stores.sealed import paths, stamp, stamp_of
from indexer.stores.snapshot import Snapshots
from indexer.stores.words import paths as word_files
from indexer.stores.words import recorded

_TRIES = 10
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, which takes its name when the block ends well and is gone when not.

    Raises:
        BadInput: something is there already.
        StorageError: the disk refuses.
    """
    if folder.exists():
        if not folder.is_dir() or any(folder.iterdir()):
            raise BadInput(f"{folder}: is there already and is not an empty folder: choose another name")
        if folder.samefile(Path.cwd()):  # the shell would go on standing in the folder that it replaces
            raise BadInput(f"{folder}: is the folder you are in: give the index a folder of its own, such as my.index")
        folder = folder.resolve()  # what a link leads to
    if any((parent / "catalog.db").exists() for parent in folder.absolute().parents):
        raise BadInput(f"{folder}: lies inside of an index, whose folder is likewise's own: choose another place")
    sibling = folder.absolute().with_name(f".{folder.absolute().name}.{secrets.token_hex(4)}")
    try:
        sibling.parent.mkdir(parents=True, exist_ok=True)
        sibling.mkdir()
        yield sibling
        sibling.rename(folder)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made ({error.strerror})") from error
    finally:
        shutil.rmtree(sibling, ignore_errors=True)


def exchange(one: Path, other: Path) -> None:
    """Let two folders take each other's names, in one step where the system can (Linux's renameat2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
            return
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):  # which file systems say that cannot
            raise StorageError(f"{one}: cannot be replaced ({os.strerror(ctypes.get_errno())})")
    aside = one.with_name(f"{other.name}.old")
    one.rename(aside)
    try:
        other.rename(one)
    except OSError:
        aside.rename(one)
        raise
    aside.rename(other)


def copy_store(snapshots: Snapshots, target: Path) -> None:
    """Copy the catalog as of one commit, with the segments it names, into an empty folder.

    Segments are copied, not linked: a link changes the times of the original, which would then be hashed at every
    opening. The copy has a history of its own: what the two add from here on bears the same ids.
    """
    (target / "segments").mkdir()
    (target / "LOCK").touch()
    for attempt in range(_TRIES):
        with snapshots.view() as view, closing(sqlite3.connect(target / "catalog.db")) as copy:
            try:
                view.connection.backup(copy)
            except sqlite3.OperationalError as error:  # of the copy: damage is another error of SQLite's
                raise OSError(errno.EIO, str(error)) from error
            names = [name for (name,) in copy.execute("SELECT file FROM segment")]
            words = recorded(view)
        files = [path for name in names for path in paths(snapshots.folder / "segments", name)]
        files += [] if words is None else word_files(snapshots.folder, words)
        try:
            copied = [_copied(path, target / path.relative_to(snapshots.folder)) for path in files]
            break
        except FileNotFoundError:  # a writer has replaced it meanwhile: copy what it wrote
            if attempt == _TRIES - 1:
                raise
    for path in [*target.glob("segments/*"), *target.glob("words/*/*/*")]:
        if path not in copied:
            path.unlink()
    if (snapshots.folder / "encoder").is_dir():
        shutil.copytree(snapshots.folder / "encoder", target / "encoder")
    from indexer.stores.catalog import Catalog  # only writers need sqlite-utils

    catalog = Catalog(target / "catalog.db")
    catalog.set("history", secrets.token_hex(8))
    catalog.restamp({name: stamp(target / "segments", name) for name in names})
    if words is not None:
        catalog.restamp_words(stamp_of(word_files(target, words)))
    catalog.close()


def _copied(source: Path, target: Path) -> Path:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return target
