"""Connections to a catalog that is read: also in a folder that one may not write to, and what to say where it fails.

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
from typing import TypeVar

from indexer.errors import IndexDamaged, LikewiseError, NewerFormat, NotAnIndex, StorageError
from indexer.stores.local.temporary import temporary

FORMAT_VERSION = 1
"""The newest format this version reads; schema.py writes it."""

Identity = tuple[int, ...]

T = TypeVar("T")

_IDLE_SHARE = 2
"""Idle connections take at most one of so many file descriptors that the process may have."""

_IDLE_DESCRIPTORS = 512
"""File descriptors of idle connections at most: each may also keep 2 MB of pages. Opening one takes 0.6 ms."""

_DESCRIPTORS = 3
"""File descriptors of one connection: the catalog, its log, and the memory that connections of one file share."""

_DAMAGE = {sqlite3.SQLITE_OK, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


_LACKING = (errno.EMFILE, errno.ENFILE)


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


class IdleConnections:
    """The connections to one catalog that wait for its next question. Safe to share among threads.

    All catalogs of the process share one limit. Where it is exceeded, those that were asked the longest time ago give
    up all of their connections: SQLite keeps the file descriptor of a closed connection as long as another one to the
    same file is open, so that closing some of them would free too little. For the same reason a catalog keeps all of
    its connections while any of them is lent. Connections that are lent are not limited.
    """

    def __init__(self) -> None:
        self._waiting: list[sqlite3.Connection] = []
        self._closed = False
        self._lent = 0
        self._most = 0  # open at once since there was none: so many descriptors are held
        self._used = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def lend(self) -> sqlite3.Connection | None:
        """A connection that was waiting; None where the caller has to open one. Follow it by `take_back` or `lost`."""
        with _pool.lock:
            self._lent += 1
            self._used = next(_pool.uses)
            if self._waiting:
                return self._waiting.pop()
            if self._lent > self._most:
                self._most = self._lent
                _pool.holding.add(self)
                _pool.has_grown = True
        return None

    def take_back(self, connection: sqlite3.Connection) -> None:
        """Keep a connection for the next question, or close it where there is no room or the catalog was let go of."""
        with _pool.lock:
            self._waiting.append(connection)
            surplus = self._returned()
        _close(surplus)

    def lost(self) -> None:
        """What was lent does not come back: it could not be opened, or the caller has closed it."""
        with _pool.lock:
            surplus = self._returned()
            self._forget_if_empty()
        _close(surplus)

    def close(self) -> None:
        """Close what waits now, and what is lent as soon as it comes back."""
        with _pool.lock:
            self._closed = True
            surplus = self._give_up()
        _close(surplus)

    def _returned(self) -> list[sqlite3.Connection]:
        """Count one connection less as lent; the connections to close for it."""
        self._lent -= 1
        if self._closed:
            return self._give_up()
        return _pool.surplus(_limit()) if _pool.has_grown else []

    def _give_up(self) -> list[sqlite3.Connection]:
        waiting, self._waiting = self._waiting, []
        self._forget_if_empty()
        return waiting

    def _forget_if_empty(self) -> None:
        if not self._lent and not self._waiting:
            self._most = 0
            _pool.holding.discard(self)


class _Pool:
    """What the idle connections of all catalogs in this process have in common."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # collecting garbage may close an index in the middle of lending
        self.uses = itertools.count(1)
        self.holding: weakref.WeakSet[IdleConnections] = weakref.WeakSet()
        self.has_grown = False  # since they were last seen to be within the limit
        self._inherited: list[sqlite3.Connection] = []

    def surplus(self, limit: int) -> list[sqlite3.Connection]:
        """The connections to close, so that at most `limit` are open besides those of catalogs that are being read."""
        held = sum(one._most for one in self.holding)
        connections: list[sqlite3.Connection] = []
        if held > limit:
            # Where one is lent, closing the others would free nothing, and the next question would open them again.
            for one in sorted((one for one in self.holding if not one._lent), key=lambda one: one._used):
                held -= one._most
                connections += one._give_up()
                if held <= limit:
                    break
        self.has_grown = held > limit
        return connections

    def everything(self) -> list[sqlite3.Connection]:
        """Every connection that waits, to be closed."""
        return [connection for one in list(self.holding) for connection in one._give_up()]

    def after_fork(self) -> None:
        """The child leaves its parent's connections alone, also when it ends: SQLite's are not to be shared."""
        self.lock = threading.RLock()
        for one in list(self.holding):
            self._inherited += one._waiting
            one._waiting, one._lent, one._most = [], 0, 0
        self.holding.clear()


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.after_fork)


def _limit() -> int:
    """How many connections may wait in this process."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = _IDLE_DESCRIPTORS
    if allowed != resource.RLIM_INFINITY:
        descriptors = min(descriptors, allowed // _IDLE_SHARE)
    return descriptors // _DESCRIPTORS


def _close(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def close_idle() -> int:
    """Close every connection of this process that waits for a question; how many there were."""
    with _pool.lock:
        surplus = _pool.everything()
    _close(surplus)
    return len(surplus)


def with_descriptors(action: Callable[[], T]) -> T:
    """The result of an action that opens files; where the process may open no more, idle connections are closed first.

    Raises:
        StorageError: the process has too many other files open.
    """
    try:
        return action()
    except (LikewiseError, OSError, ValueError) as error:
        if not _may_lack_descriptors(error):
            raise
        if not close_idle():
            raise _lacking(error) from error
    try:
        return action()
    except (LikewiseError, OSError, ValueError) as error:
        if not _may_lack_descriptors(error):
            raise
        raise _lacking(error) from error


def _lacking(error: Exception) -> Exception:
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{error}: close some of the files that this process has open, or allow it more (ulimit -n)")


def _may_lack_descriptors(error: BaseException) -> bool:
    """Whether too many open files may be the reason: SQLite says only that it cannot open or read one."""
    cause: BaseException | None = error
    while cause is not None:
        if getattr(cause, "errno", 0) in _LACKING or any(os.strerror(code) in str(cause) for code in _LACKING):
            return True
        if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}:
            return True
        cause = cause.__cause__
    return False
