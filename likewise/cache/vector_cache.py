"""The user's cache of vectors by content, shared by all indexes and processes of this user.

One SQLite file. A key is a hash of everything that decides a vector (`CachedEncoder` makes it); a row has a
checksum, and the least recently used row is removed first. Whatever goes wrong here becomes a note, and
costs no more than embedding again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from indexer.encoders.machine.user_folders import cache_folder
from indexer.errors import Message

VARIABLE = "LIKEWISE_VECTOR_CACHE"
"""If this environment variable is `off`, no vector is cached."""

_OFF = frozenset({"off", "0", "no", "false"})

DEFAULT_MAX_BYTES = 5 * 10**9
USED_STEP_SECONDS = 3600
"""Seconds between two updates of the time of last use. A row that is used more often is not written each time."""
KEYS_PER_QUERY = 500
REMOVED_SHARE = 10
"""When the cache is full, one row in this many is removed. So rows need not be removed with every batch."""
BUSY_SECONDS = 20.0

_CHECKSUM_BYTES = 8
_REFUSALS = {
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
}
"""Codes of SQLite's errors that say nothing about the content of the file. After such an error the file need not be
replaced."""

_PROBLEMS = (sqlite3.Error, OSError, UnicodeDecodeError)
"""Errors of SQLite, of the disk, and of decoding SQLite's message about a damaged file."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, vector BLOB, checksum BLOB, used INTEGER);
CREATE INDEX IF NOT EXISTS vector_used ON vector (used);
CREATE TABLE IF NOT EXISTS model (key BLOB PRIMARY KEY, recipe TEXT, tokenizer TEXT, checksum BLOB);
CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
"""


def default_path() -> Path:
    """Return where the cache of this user is."""
    return cache_folder() / "vectors.db"


class VectorCache:
    """Rows of bytes by their keys. Threads may share it, and any number of processes may open the same file.

    Attributes:
        path: of the file.
        problems: sentences about problems. After the first problem nothing is read or written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()
        self.problems: list[str] = []
        self._process, self._lock = os.getpid(), threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._bytes_before_check = 0
        self._damaged = self._is_full = False

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the undamaged rows of these keys; keys without such a row are left out."""
        rows: dict[bytes, bytes] = {}
        stale: list[bytes] = []
        now = int(time.time())
        with self._guarded() as connection:
            if connection is None:
                return {}
            for start in range(0, len(keys), KEYS_PER_QUERY):
                some = keys[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, vector, checksum, used FROM vector WHERE key IN ({marks})"
                for key, vector, checksum, used in connection.execute(query, some):
                    if (right := _checksum(key, vector)) is None or right != checksum:
                        continue  # It is embedded again, which replaces it.
                    rows[key] = vector
                    if not isinstance(used, int) or now - used > USED_STEP_SECONDS:
                        stale.append(key)
            if stale:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("UPDATE vector SET used = ? WHERE key = ?", [(now, key) for key in stale])
                connection.execute("COMMIT")
        return rows

    def put(self, rows: Mapping[bytes, bytes]) -> None:
        """Store rows, and remove the least recently used rows if the cache is full."""
        now = int(time.time())
        values = [(key, vector, _checksum(key, vector), now) for key, vector in rows.items()]
        with self._guarded() as connection:
            if connection is None or not values:
                return
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)", values)
            connection.execute("COMMIT")
            self._bytes_before_check -= sum(len(vector) for _, vector, _, _ in values)
            if self._bytes_before_check <= 0:
                self._bytes_before_check = _shrink(connection) // REMOVED_SHARE

    def model(self, key: bytes) -> tuple[str, str] | None:
        """Return recipe and tokenizer, as JSON, that were kept for a key; None if none were, or they are damaged."""
        with self._guarded() as connection:
            if connection is not None:
                query = "SELECT recipe, tokenizer, checksum FROM model WHERE key = ?"
                row = connection.execute(query, (key,)).fetchone()
                if row is not None and _checksum(key, f"{row[0]}\0{row[1]}".encode()) == row[2]:
                    return str(row[0]), str(row[1])
        return None

    def keep_model(self, key: bytes, recipe: str, tokenizer: str) -> None:
        """Keep recipe and tokenizer of a model, as JSON."""
        checksum = _checksum(key, f"{recipe}\0{tokenizer}".encode())
        with self._guarded() as connection:
            if connection is not None:
                values = key, recipe, tokenizer, checksum
                connection.execute("INSERT OR REPLACE INTO model VALUES (?, ?, ?, ?)", values)

    def clear(self) -> None:
        """Remove every row. A damaged file is deleted, and one on a full disk, where removing rows needs space."""
        with self._guarded() as connection:
            if connection is not None:
                connection.execute("DELETE FROM vector")
                connection.execute("DELETE FROM model")
                connection.execute("PRAGMA incremental_vacuum").fetchall()
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if self._damaged or self._is_full:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            self.problems.clear()
            self._damaged = self._is_full = False

    def limit(self, max_bytes: int) -> None:
        """Store the maximum size of the cache, and remove rows beyond it."""
        with self._guarded() as connection:
            if connection is not None:
                connection.execute("INSERT OR REPLACE INTO setting VALUES ('max_bytes', ?)", (max_bytes,))
                _shrink(connection)
                connection.execute("PRAGMA incremental_vacuum").fetchall()

    def size(self) -> tuple[int, int, int]:
        """Return the number of vectors, their bytes, and the maximum bytes."""
        with self._guarded() as connection:
            if connection is not None:
                (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
                return count, _bytes(connection), _max_bytes(connection)
        return 0, 0, DEFAULT_MAX_BYTES

    def close(self) -> None:
        with self._own_lock():
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _own_lock(self) -> threading.Lock:
        """Return the lock of this process. Each process has its own lock and connection, because neither may be used
        after a fork."""
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._process, self._lock, self._connection = os.getpid(), threading.Lock(), None
        return self._lock

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the connection, or None after a problem. An error of SQLite or the disk ends the block and is kept."""
        with self._own_lock():
            connection = None
            if not self.problems:
                try:
                    connection = self._open()
                except _PROBLEMS as error:
                    self._failed(error)
            try:
                yield connection
            except _PROBLEMS as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        code = getattr(error, "sqlite_errorcode", 0)
        refused = isinstance(error, OSError) or code & 0xFF in _REFUSALS
        self._damaged = not refused
        self._is_full = code == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) == errno.ENOSPC
        self.problems.append(
            Message(
                f"the cache of vectors {self.path} cannot be used ({error}), and texts are embedded without it"
                + (
                    f": look at the folder, its permissions and its free space, or set {VARIABLE}=off"
                    if refused
                    else ""
                ),
                "" if refused else ": likewise cache --clear makes it new",
            )
        )
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _keep_private(self) -> None:
        """Keep other users from reading the file. SQLite gives its log the permissions of the file at the time of
        opening.

        A file that exists is not opened here: closing it would end the locks of another connection of this process.
        """
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            for path in (self.path, *(Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm"))):
                with contextlib.suppress(FileNotFoundError):
                    path.chmod(0o600)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._keep_private()
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("PRAGMA journal_mode = WAL").fetchall()
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def open_vector_cache() -> VectorCache | None:
    """Return the cache of this user; None if LIKEWISE_VECTOR_CACHE turns it off."""
    return None if is_turned_off() else VectorCache()


def is_turned_off() -> bool:
    """Return whether the environment turns the cache off. Other usual words for "off" are accepted too."""
    return os.environ.get(VARIABLE, "").strip().lower() in _OFF


def _bytes(connection: sqlite3.Connection) -> int:
    """Return how many bytes of the file are in use."""
    numbers = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    pages, free, page_bytes = numbers
    return int((pages - free) * page_bytes)


def _max_bytes(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT value FROM setting WHERE name = 'max_bytes'").fetchone()
    return row[0] if row is not None and isinstance(row[0], int) else DEFAULT_MAX_BYTES


def _shrink(connection: sqlite3.Connection) -> int:
    """Remove the least recently used rows while the cache is over its limit; return the limit."""
    largest = _max_bytes(connection)
    while _bytes(connection) > largest:
        (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
        if not count:
            break
        removed = connection.execute(
            "DELETE FROM vector WHERE key IN (SELECT key FROM vector ORDER BY used LIMIT ?)",
            (max(1, -(-count // REMOVED_SHARE)),),
        ).rowcount
        if not removed:  # this would never end
            raise sqlite3.DatabaseError("the file is damaged: its rows cannot be removed")
    return largest


def _checksum(key: object, vector: object) -> bytes | None:
    """Return the checksum of a row; None if key or value is damaged and is not bytes."""
    if not isinstance(key, bytes) or not isinstance(vector, bytes):
        return None
    return hashlib.blake2b(key + vector, digest_size=_CHECKSUM_BYTES).digest()
