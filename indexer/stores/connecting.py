"""Connections to a catalog that is read: also in a folder that one may not write to, and what to say where it fails."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from indexer.errors import IndexDamaged, LikewiseError, NewerFormat, NotAnIndex, StorageError
from indexer.stores.temporary import temporary

FORMAT_VERSION = 1
"""The newest format this version reads; schema.py writes it."""

Identity = tuple[int, ...]

_DAMAGE = {sqlite3.SQLITE_OK, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def unreadable(catalog: Path, error: Exception) -> LikewiseError:
    """What to raise where the catalog cannot be read: only some of SQLite's errors mean that it is damaged."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF not in _DAMAGE and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return StorageError(
            f"{catalog}: cannot be opened now ({error}): look at its permissions, at free memory, and at how many "
            "files this process has open"
        )
    return IndexDamaged(f"{catalog}: is not a readable catalog ({error}); restore a backup, or index again")


def opened(catalog: Path, mode: str) -> sqlite3.Connection:
    connection = None
    try:
        connection = sqlite3.connect(
            f"{catalog.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False
        )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        raise unreadable(catalog, error) from error
    if version > FORMAT_VERSION:
        connection.close()
        raise NewerFormat(
            f"{catalog.parent}: has format {version} and this likewise reads up to {FORMAT_VERSION}: upgrade likewise"
        )
    return connection


def identity_of(folder: Path) -> Identity:
    """What a catalog is known by; where it may not be opened as a live one, its times and sizes too."""
    try:
        status = (folder / "catalog.db").stat()
    except OSError as error:
        what = "has no catalog.db" if folder.is_dir() else "is not there" if not folder.exists() else "is no folder"
        raise NotAnIndex(f"{folder}: is no index, it {what}; make one with: likewise index {folder} SOURCE") from error
    if os.access(folder, os.W_OK):
        return status.st_dev, status.st_ino
    log = folder / "catalog.db-wal"
    both = (status, log.stat()) if log.exists() else (status,)
    return tuple(value for one in both for value in (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns))


def copied(owner: object, folder: Path) -> tuple[Path, Callable[[], object]]:
    """A copy of the catalog with its log as they stood together at one moment, and what removes it."""
    copy, remove = temporary(owner, "likewise-")
    before: object = None
    while before != (before := identity_of(folder)):
        for name in ("catalog.db", "catalog.db-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(folder / name, copy)
    return copy, remove
