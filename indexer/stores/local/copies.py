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

from indexer.errors import BadInput, IndexDamaged, StorageError
from indexer.stores.local import queries
from indexer.stores.local.segments.files import SegmentFile, paths, stamp, stamp_of, sync, verify
from indexer.stores.local.views import Snapshots
from indexer.stores.local.words.files import paths as word_files
from indexer.stores.local.words.files import recorded
from indexer.stores.local.words.files import verify as verify_words
from indexer.stores.local.words.record import WordFiles

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
        for path in (*sibling.rglob("*"), sibling):
            sync(path)
        sibling.rename(folder)
        sync(folder.absolute().parent)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made ({error.strerror})") from error
    finally:
        shutil.rmtree(sibling, ignore_errors=True)


def exchange(one: Path, other: Path) -> None:
    """Let two folders take each other's names, in one step where the system can (Linux's renameat2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "renameat2"):
        if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
            return sync(one.parent)
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
    sync(one.parent)


def copy_store(snapshots: Snapshots, target: Path) -> tuple[str, ...]:
    """Copy the catalog as of one commit, with the segments it names, into an empty folder; return notes.

    Segments are copied, not linked: a link changes the times of the original, which would then be hashed at every
    opening. The copy has a history of its own: what the two add from here on bears the same ids.
    """
    (target / "segments").mkdir()
    (target / "LOCK").touch()
    missing: list[Path] = []
    for _ in range(_TRIES):
        with snapshots.view() as view, closing(sqlite3.connect(target / "catalog.db")) as copy:
            try:
                view.connection.backup(copy)
            except sqlite3.OperationalError as error:  # of the copy: damage is another error of SQLite's
                raise OSError(errno.EIO, str(error)) from error
            segments, words = [row.recorded for row in queries.segments(view)], recorded(view)
        files = [path for row in segments for path in paths(snapshots.folder / "segments", row.file)]
        files += [] if words is None else word_files(snapshots.folder, words)
        before, missing = missing, [path for path in files if not _copied(path, _inside(snapshots, target, path))]
        if not missing or missing == before:  # lost for good; otherwise a writer has put others in their place
            break
    named = {_inside(snapshots, target, path) for path in files}
    for path in [*target.glob("segments/*"), *target.glob("words/*/*/*")]:
        if path not in named:
            path.unlink()
    if (snapshots.folder / "encoder").is_dir():
        shutil.copytree(snapshots.folder / "encoder", target / "encoder")
    from indexer.stores.local.catalog import Catalog  # only writers need sqlite-utils

    catalog = Catalog(target / "catalog.db")
    catalog.set("history", secrets.token_hex(8))
    notes = {row: note for row in (*segments, words) if row is not None and (note := _damage(target, row))}
    catalog.restamp({row.file: stamp(target / "segments", row.file) for row in segments if row not in notes})
    if words is not None and words not in notes:
        catalog.restamp_words(stamp_of(word_files(target, words)))
    catalog.close()
    return tuple(notes.values())


def _inside(snapshots: Snapshots, target: Path, path: Path) -> Path:
    return target / path.relative_to(snapshots.folder)


def _copied(source: Path, target: Path) -> bool:
    """Whether the file was there to be copied."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            return False
    return True


def _damage(target: Path, row: SegmentFile | WordFiles) -> str:
    """Return a note if a copied file is not what was written. It keeps its old stamp, so that readers hash it too."""
    try:
        if isinstance(row, SegmentFile):
            verify(target / "segments", row, thorough=True)
        else:
            verify_words(target, row, thorough=True)
    except IndexDamaged as error:
        return f"{error}; the next writer to the copy rebuilds it"
    return ""
