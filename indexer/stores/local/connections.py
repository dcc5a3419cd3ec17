"""Connections that read a catalog, also in a read-only folder, and the errors to raise where that fails.

Idle connections are kept for the next question, as many as a limit for the whole process allows.
"""

from __future__ import annotations

import errno
import itertools
import os
import resource
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TypeVar

from indexer.errors import IndexDamaged, LikewiseError, NewerFormat, NotAnIndex, StorageError
from indexer.stores.local.filter_sql import add_functions
from indexer.stores.temporary import temporary_folder

FORMAT_VERSION = 3
"""The newest format this version reads; schema.py writes it."""

DATES_SINCE = 2
"""The first format in which texts that read as dates have rows as such."""

Identity = tuple[int, ...]

T = TypeVar("T")

_MAX_IDLE_SHARE = 0.5
"""Largest share of the file descriptors that the process may have for idle connections."""

_MAX_IDLE_DESCRIPTORS = 512
"""Most file descriptors for idle connections: each connection may also keep 2 MB of pages. Opening one takes 0.6 ms."""

_DESCRIPTORS_PER_CONNECTION = 3
"""The catalog, its log, and the memory that connections to one file share."""

_DAMAGE_CODES = {sqlite3.SQLITE_OK, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


def read_error(catalog: Path, error: Exception) -> LikewiseError:
    """Return the error to raise where the catalog cannot be read: few of SQLite's errors mean that it is damaged."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF not in _DAMAGE_CODES and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return StorageError(
            f"{catalog}: cannot be opened now ({error}): look at its permissions, at free memory, and at how many "
            "files this process has open"
        )
    return IndexDamaged(f"{catalog}: is not a readable catalog ({error}); restore a backup, or index again")


def open_catalog(catalog: Path, mode: str) -> sqlite3.Connection:
    """Open a catalog for reading.

    Args:
        mode: parameters of an SQLite URI, such as "mode=ro".

    Raises:
        NewerFormat, IndexDamaged, StorageError: it cannot be read.
    """
    connection = None
    try:
        connection = sqlite3.connect(
            f"{catalog.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False
        )
        add_functions(connection)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        raise read_error(catalog, error) from error
    if version > FORMAT_VERSION:
        connection.close()
        raise NewerFormat(
            f"{catalog.parent}: has format {version} and this likewise reads up to {FORMAT_VERSION}: upgrade likewise"
        )
    return connection


def permission_error(folder: Path, error: PermissionError) -> StorageError:
    """Return the error to raise where this user may not enter a folder, so that nobody knows whether it is an index."""
    return StorageError(
        f"{folder}: cannot be opened ({error.strerror}): ask the owner for permission to read and enter this folder "
        "and the folders above it"
    )


def has_catalog(folder: Path) -> bool:
    """Return whether there is a catalog in a folder.

    Raises:
        StorageError: this user may not enter the folder.
    """
    try:
        return (folder / "catalog.db").exists()
    except PermissionError as error:
        raise permission_error(folder, error) from error


def identity_of(folder: Path) -> Identity:
    """Return device and inode of a catalog, and in a read-only folder also the sizes and times of its files.

    Raises:
        NotAnIndex: the folder has no catalog.
        StorageError: this user may not enter the folder.
    """
    try:
        status = (folder / "catalog.db").stat()
    except PermissionError as error:
        raise permission_error(folder, error) from error
    except OSError as error:
        problem = "is not a folder" if folder.exists() else "does not exist"
        problem = "has no catalog.db" if folder.is_dir() else problem
        raise NotAnIndex(
            f"{folder}: there is no index here, it {problem}; make one with: likewise index {quote(str(folder))} SOURCE"
        ) from error
    if os.access(folder, os.W_OK):
        return status.st_dev, status.st_ino
    log = folder / "catalog.db-wal"
    files = (status, log.stat()) if log.exists() else (status,)
    return tuple(value for file in files for value in (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns))


def copy_catalog(owner: object, folder: Path) -> tuple[Path, Callable[[], object]]:
    """Copy the catalog and its log, both of the same moment; return the folder of the copy and a function to remove it.

    The copy is also removed when `owner` is collected.
    """
    copy, remove = temporary_folder(owner, "likewise-")
    earlier: object = None
    while earlier != (earlier := identity_of(folder)):
        for name in ("catalog.db", "catalog.db-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(folder / name, copy)
    return copy, remove


class IdleConnections:
    """The connections to one catalog that wait for its next question. Safe to share among threads.

    All catalogs of the process share one limit. Where it is exceeded, the catalogs that were used the longest time ago
    close all of their connections: SQLite keeps the file descriptor of a closed connection as long as another one to
    the same file is open, so that closing some of them would free too little. For the same reason a catalog keeps all
    of its connections while any of them is lent. Connections that are lent are not limited.
    """

    def __init__(self) -> None:
        self._waiting: list[sqlite3.Connection] = []
        self._closed = False
        self._lent = 0
        self._peak = 0  # connections open at once since there was none: descriptors are held for this many
        self._last_use = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def lend(self) -> sqlite3.Connection | None:
        """Return a connection that was waiting; None where the caller has to open one.

        Each call is followed by one call of `take_back` or `discard`.
        """
        with _pool.lock:
            self._lent += 1
            self._last_use = next(_pool.uses)
            if self._waiting:
                return self._waiting.pop()
            if self._lent > self._peak:
                self._peak = self._lent
                _pool.catalogs.add(self)
                _pool.has_grown = True
        return None

    def take_back(self, connection: sqlite3.Connection) -> None:
        """Keep a connection for the next question, or close it where there is no room or the catalog was released."""
        with _pool.lock:
            self._waiting.append(connection)
            surplus = self._count_return()
        _close(surplus)

    def discard(self) -> None:
        """Count a connection that does not come back: it could not be opened, or the caller has closed it."""
        with _pool.lock:
            surplus = self._count_return()
            self._forget_if_empty()
        _close(surplus)

    def close(self) -> None:
        """Close the connections that wait now, and those that are lent as soon as they come back."""
        with _pool.lock:
            self._closed = True
            surplus = self._remove_waiting()
        _close(surplus)

    def _count_return(self) -> list[sqlite3.Connection]:
        """Count one connection less as lent, and return the connections that the caller must close for it."""
        self._lent -= 1
        if self._closed:
            return self._remove_waiting()
        return _pool.surplus(_max_idle_connections()) if _pool.has_grown else []

    def _remove_waiting(self) -> list[sqlite3.Connection]:
        waiting, self._waiting = self._waiting, []
        self._forget_if_empty()
        return waiting

    def _forget_if_empty(self) -> None:
        if not self._lent and not self._waiting:
            self._peak = 0
            _pool.catalogs.discard(self)


class _Pool:
    """The limit that the idle connections of all catalogs in this process share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # collecting garbage may close an index in the middle of lending
        self.uses = itertools.count(1)
        self.catalogs: weakref.WeakSet[IdleConnections] = weakref.WeakSet()  # those with connections
        self.has_grown = False  # since the connections were last within the limit
        self._inherited: list[sqlite3.Connection] = []

    def surplus(self, limit: int) -> list[sqlite3.Connection]:
        """Return connections to close, so that at most `limit` are open apart from those of catalogs in use."""
        held = sum(catalog._peak for catalog in self.catalogs)
        connections: list[sqlite3.Connection] = []
        if held > limit:
            # Where one is lent, closing the others would free nothing, and the next question would open them again.
            unused = (catalog for catalog in self.catalogs if not catalog._lent)
            for catalog in sorted(unused, key=lambda catalog: catalog._last_use):
                held -= catalog._peak
                connections += catalog._remove_waiting()
                if held <= limit:
                    break
        self.has_grown = held > limit
        return connections

    def remove_all(self) -> list[sqlite3.Connection]:
        """Return every connection that waits, for the caller to close."""
        return [connection for catalog in list(self.catalogs) for connection in catalog._remove_waiting()]

    def after_fork(self) -> None:
        """Leave the parent's connections alone in a child, also when it ends: SQLite forbids to share them."""
        self.lock = threading.RLock()
        for catalog in list(self.catalogs):
            self._inherited += catalog._waiting
            catalog._waiting, catalog._lent, catalog._peak = [], 0, 0
        self.catalogs.clear()


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.after_fork)


def _max_idle_connections() -> int:
    """Return how many connections may wait in this process."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = _MAX_IDLE_DESCRIPTORS
    if allowed != resource.RLIM_INFINITY:
        descriptors = min(descriptors, int(allowed * _MAX_IDLE_SHARE))
    return descriptors // _DESCRIPTORS_PER_CONNECTION


def _close(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def close_idle() -> int:
    """Close every connection of this process that waits for a question; return how many there were."""
    with _pool.lock:
        surplus = _pool.remove_all()
    _close(surplus)
    return len(surplus)


def with_descriptors(action: Callable[[], T]) -> T:
    """Return the result of an action that opens files.

    If it fails because the process may open no more files, idle connections are closed and it is tried once more.

    Raises:
        StorageError: the process has too many other files open.
    """
    try:
        return action()
    except (LikewiseError, OSError, ValueError) as error:
        if not _may_lack_descriptors(error):
            raise
        if not close_idle():
            raise _too_many_files(error) from error
    try:
        return action()
    except (LikewiseError, OSError, ValueError) as error:
        if not _may_lack_descriptors(error):
            raise
        raise _too_many_files(error) from error


def _too_many_files(error: Exception) -> Exception:
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{error}: close some of the files that this process has open, or allow it more (ulimit -n)")


def _may_lack_descriptors(error: BaseException) -> bool:
    """Return whether too many open files may be the reason: SQLite only reports that it cannot open or read one."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(cause, "errno", 0) in _TOO_MANY_FILES:
            return True
        if any(os.strerror(code) in str(cause) for code in _TOO_MANY_FILES):
            return True
        if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}:
            return True
        cause = cause.__cause__
    return False
