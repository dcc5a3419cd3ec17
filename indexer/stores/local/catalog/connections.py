"""Connections that read a catalog, also in a read-only folder, and the errors to raise if this fails.

Idle connections are kept for the next question, as many as a limit for the whole process allows.
"""

from __future__ import annotations

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
from typing import Any, TypeVar

from indexer.deadline import NEVER, Deadline
from indexer.errors import (
    DiskFull,
    IndexDamaged,
    IndexUnavailable,
    LikewiseError,
    Message,
    NewerFormat,
    NotAnIndex,
    NotPermitted,
    StorageError,
    in_shell,
    older_format,
    storage_error,
)
from indexer.stores.local.catalog.filter_sql import add_functions
from indexer.stores.local.catalog.moves import find_move, recorded_home, translate
from indexer.stores.local.disk.drafts import notes_on_abandoned
from indexer.stores.move import Move
from indexer.stores.temporary import temporary_folder

FORMAT_VERSION = 1
"""The newest format that this version reads (`PRAGMA user_version`); schema.py writes it."""

APPLICATION_ID = 0x6C696B65
"""The mark of every catalog ("like", `PRAGMA application_id`). Catalogs from before the first release lack it."""

Identity = tuple[int, ...]

T = TypeVar("T")

_MAX_IDLE_SHARE = 0.5
"""Maximum share of the process's file descriptors for idle connections."""

_MAX_IDLE_DESCRIPTORS = 512
"""Maximum file descriptors for idle connections. Each connection may also keep 2 MB of pages; opening a connection
takes 0.6 ms."""

_DESCRIPTORS_PER_CONNECTION = 3
"""The catalog, its log, and the memory that connections to one file share."""

_DAMAGE_CODES = {sqlite3.SQLITE_OK, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_WRITE_ERRORS: dict[int, type[StorageError]] = {
    sqlite3.SQLITE_FULL: DiskFull,
    sqlite3.SQLITE_READONLY: NotPermitted,
    sqlite3.SQLITE_PERM: NotPermitted,
    sqlite3.SQLITE_BUSY: IndexUnavailable,
    sqlite3.SQLITE_CANTOPEN: IndexUnavailable,
}

CHECK_THE_DISK = "check the disk and its connection first; the index itself may be whole"

_STEPS = 1000
"""Number of SQLite's steps between two checks of a deadline: 20 µs if values are short. A step may read a long text."""


class CatalogConnection(sqlite3.Connection):
    """A connection whose statements end when the deadline of the present question has passed.

    Attributes:
        home: the setting `home` when it was opened.
        move: how it translates addresses; None if the index is where it was.
    """

    home: str | None = None
    move: Move | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline = current = [NEVER]

        def check() -> None:
            # Not `self.deadline`: SQLite keeps this function, and neither would ever be collected.
            current[0].check()

        add_functions(self, check)

    @property
    def deadline(self) -> Deadline:
        """The deadline of the question that uses the connection now."""
        return self._deadline[0]

    @deadline.setter
    def deadline(self, deadline: Deadline) -> None:
        if deadline is not self._deadline[0]:
            self._deadline[0] = deadline
            self.set_progress_handler(None if deadline is NEVER else deadline.passed, _STEPS)


def read_error(catalog: Path, error: Exception) -> LikewiseError:
    """Return the error to raise if the catalog cannot be read. Only few of SQLite's errors mean that the catalog is
    damaged."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_IOERR and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return StorageError(f"{catalog}: the disk reported an error ({error}): {CHECK_THE_DISK}")
    if code & 0xFF not in _DAMAGE_CODES and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return IndexUnavailable(
            f"{catalog}: cannot be opened now ({error}): look at its permissions, at free memory, and at how many "
            "files this process has open"
        )
    return damaged(catalog, f"is not a readable catalog ({error})")


def write_error(catalog: Path, error: sqlite3.OperationalError) -> StorageError:
    """Return the error to raise if the catalog cannot be written."""
    kind = _WRITE_ERRORS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, StorageError)
    is_disk = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
    advice = f": {CHECK_THE_DISK}" if is_disk else ""
    return kind(f"{catalog.parent}: could not be written ({error}); what was committed before is kept{advice}")


def damaged(catalog: Path, problem: str) -> IndexDamaged:
    """Return the error for a catalog that nothing but a backup or a new index can replace."""
    return IndexDamaged(
        Message(
            f"{catalog}: {problem}; restore a backup, or move the folder away and index again",
            f": likewise index {quote(str(catalog.parent))} SOURCE",
        )
    )


def open_catalog(catalog: Path, mode: str, folder: Path) -> CatalogConnection:
    """Open a catalog for reading.

    Args:
        mode: parameters of an SQLite URI, such as "mode=ro".
        folder: the index; its catalog may be a copy.

    Raises:
        NewerFormat, OlderFormat, IndexDamaged, IndexUnavailable: it cannot be read.
    """
    connection = None
    try:
        connection = sqlite3.connect(
            f"{catalog.absolute().as_uri()}?{mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            factory=CatalogConnection,
        )
        require_format(connection, catalog.parent)
        connection.home = recorded_home(connection)
        connection.move = find_move(connection, folder, connection.home)
        if connection.move is not None:
            translate(connection, connection.move)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise read_error(catalog, error) from error
        raise
    return connection


def require_format(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise NewerFormat or OlderFormat unless this version reads the catalog of a folder. It may be empty."""
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version and mark != APPLICATION_ID:
        raise older_format(str(folder))
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{folder}: has format {version} and this likewise reads up to {FORMAT_VERSION}: upgrade likewise"
        )


def permission_error(folder: Path, error: PermissionError) -> NotPermitted:
    """Return the error to raise if this user may not enter a folder, and likewise cannot know whether it is an
    index."""
    return NotPermitted(
        f"{folder}: cannot be opened ({error.strerror}): ask the owner for permission to read and enter this folder "
        "and the folders above it"
    )


def has_catalog(folder: Path) -> bool:
    """Return whether there is a catalog in a folder.

    Raises:
        NotPermitted: this user may not enter the folder.
    """
    try:
        return (folder / "catalog.db").exists()
    except PermissionError as error:
        raise permission_error(folder, error) from error


def identity_of(folder: Path) -> Identity:
    """Return device and inode of a catalog, and in a read-only folder also the sizes and times of its files.

    Raises:
        NotAnIndex: the folder has no catalog.
        NotPermitted: this user may not enter the folder.
    """
    try:
        status = (folder / "catalog.db").stat()
    except PermissionError as error:
        raise permission_error(folder, error) from error
    except OSError as error:
        problem = "is not a folder" if folder.exists() else "does not exist"
        problem = "has no catalog.db" if folder.is_dir() else problem
        if (folder / "segments").is_dir():  # it was an index
            raise NotAnIndex(damaged(folder / "catalog.db", "is missing").args[0]) from error
        name, source = quote(str(folder)), "SOURCE"
        if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):  # no index can be made at this place
            name, source = quote(f"{folder}.index"), name
        raise NotAnIndex(
            Message(
                f"{folder}: there is no index here, it {problem}",
                f"; make one with: likewise index {name} {source}{_what_was_left(folder)}",
            )
        ) from error
    if os.access(folder, os.W_OK):
        return status.st_dev, status.st_ino
    log = folder / "catalog.db-wal"
    files = (status, log.stat()) if log.exists() else (status,)
    return tuple(value for file in files for value in (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns))


def _what_was_left(folder: Path) -> str:
    """Return what killed commands were making at an address, as a part of an error."""
    return "".join(f"; {in_shell(note)}" for note in notes_on_abandoned(folder.resolve()))


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

    All catalogs of the process share one limit. If it is exceeded, the least recently used catalogs close all of their
    connections. Closing only some would free too little: SQLite keeps the file descriptor of a closed connection as
    long as another connection to the same file is open. For the same reason a catalog keeps all of its connections
    while any of them is lent. Connections that are lent are not limited.
    """

    def __init__(self) -> None:
        self._waiting: list[CatalogConnection] = []
        self._closed = False
        self._lent = self._last_use = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def lend(self) -> CatalogConnection | None:
        """Return an idle connection; None if the caller has to open a connection.

        Each call is followed by one call of `take_back`.
        """
        with _shared.lock:
            self._lent += 1
            self._last_use = next(_shared.uses)
            _shared.catalogs.add(self)
            return self._waiting.pop() if self._waiting else None

    def take_back(self, connection: CatalogConnection | None) -> None:
        """Keep a connection for the next question. Close it if the limit is reached or the catalog was released.

        Args:
            connection: None if it could not be opened, or if the caller has closed it.
        """
        with _shared.lock:
            self._lent -= 1
            self._waiting += [] if connection is None else [connection]
            surplus = self.remove_waiting() if self._closed or not self._waiting else _surplus()
        _close(surplus)

    def close(self) -> None:
        """Close the waiting connections now, and the lent connections when they are returned."""
        with _shared.lock:
            self._closed = True
            surplus = self.remove_waiting()
        _close(surplus)

    def remove_waiting(self) -> list[CatalogConnection]:
        """Return the connections that wait, for the caller to close."""
        waiting, self._waiting = self._waiting, []
        if not self._lent:
            _shared.catalogs.discard(self)
        return waiting


class _Shared:
    """The state that the idle connections of all catalogs in this process share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # collecting garbage may close an index in the middle of lending
        self.uses = itertools.count(1)
        self.catalogs: weakref.WeakSet[IdleConnections] = weakref.WeakSet()  # those with open connections
        self._inherited: list[CatalogConnection] = []

    def after_fork(self) -> None:
        """Leave the parent's connections alone in a child, also when the child ends, because SQLite forbids sharing
        them."""
        self.lock = threading.RLock()
        for catalog in list(self.catalogs):
            self._inherited += catalog._waiting
            catalog._waiting, catalog._lent = [], 0
        self.catalogs.clear()


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.after_fork)


def _surplus() -> list[CatalogConnection]:
    """Return waiting connections to close, the longest unused first, so that no more are open than may wait."""
    over = sum(catalog._lent + len(catalog) for catalog in _shared.catalogs) - _max_idle_connections()
    surplus: list[CatalogConnection] = []
    if over > 0:
        # Where one is lent, closing the others would free nothing, and the next question would open them again.
        unused = [catalog for catalog in _shared.catalogs if not catalog._lent]
        for catalog in sorted(unused, key=lambda catalog: catalog._last_use):
            surplus += catalog.remove_waiting()
            if len(surplus) >= over:
                break
    return surplus


def _max_idle_connections() -> int:
    """Return how many connections may wait in this process."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = _MAX_IDLE_DESCRIPTORS
    if allowed != resource.RLIM_INFINITY:
        descriptors = min(descriptors, int(allowed * _MAX_IDLE_SHARE))
    return descriptors // _DESCRIPTORS_PER_CONNECTION


def _close(connections: list[CatalogConnection]) -> None:
    for connection in connections:
        connection.close()


def close_idle() -> int:
    """Close every connection of this process that waits for a question; return how many there were."""
    with _shared.lock:
        surplus = [connection for catalog in list(_shared.catalogs) for connection in catalog.remove_waiting()]
    _close(surplus)
    return len(surplus)


def with_descriptors(action: Callable[[], T]) -> T:
    """Return the result of an action that opens files.

    If it fails because the process may open no more files, idle connections are closed and it is tried once more.

    Raises:
        IndexUnavailable: the process has too many other files open.
    """
    has_closed = False
    while True:
        try:
            return action()
        except (LikewiseError, OSError, ValueError) as error:
            if not _may_lack_descriptors(error):
                raise
            if has_closed or not close_idle():
                raise _too_many_files(error) from error
            has_closed = True


def _too_many_files(error: Exception) -> Exception:
    if isinstance(error, StorageError):
        return error
    advice = "close some of the files that this process has open, or allow it more (ulimit -n)"
    return IndexUnavailable(f"{error}: {advice}")


def _may_lack_descriptors(error: Exception) -> bool:
    """Return whether too many open files may be the reason: SQLite only reports that it cannot open or read one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(storage_error("", cause), IndexUnavailable):
            return True
        if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}:
            return True
        cause = cause.__cause__
    return False
