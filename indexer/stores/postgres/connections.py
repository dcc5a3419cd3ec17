"""Connections to the server: a pool for each process, a deadline for every answer, and errors in one line each."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolTimeout

from indexer.errors import BadInput, LikewiseError, NotAnIndex, StorageError
from indexer.stores.postgres.address import Address

CONNECT_SECONDS = 10
"""How long a connection may take to be made, unless the address says otherwise (`connect_timeout`)."""

ANSWER_SECONDS = float(os.environ.get("LIKEWISE_POSTGRES_SECONDS", "60"))
"""How long a question may wait for the server: a server that stops answering must not hold up its clients for ever."""

WORK_SECONDS = 24 * 3600.0
"""The same for work that takes as long as there are passages, such as the building of a graph."""

MAX_CONNECTIONS = 8
"""Connections of one process. A thread that finds all in use waits for one."""

MIN_PGVECTOR = (0, 7)
"""The first version with halfvec."""

SOUND_PGVECTOR = (0, 8, 4)
"""The first version without known damage to graphs (its change log, 0.8.2 to 0.8.4)."""


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection whose statements end with an error after `seconds`, also if the server says nothing at all."""

    seconds = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        except errors._WaitTimeout:
            self.pgconn.finish()  # its state is unknown
            raise ServerSilent from None


class ServerSilent(errors.OperationalError):
    """The server did not answer in time."""


class Connections:
    """The pool of a store. Safe to share among threads; a forked child makes its own."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._process, self._lock = os.getpid(), threading.Lock()
        self._pool: ConnectionPool[DeadlineConnection] | None = None
        self._inherited: list[object] = []  # pools of the parent process: to be neither used nor closed here

    @contextmanager
    def connection(self) -> Iterator[DeadlineConnection]:
        """Lend a connection that is in no transaction.

        Raises:
            StorageError: the server cannot be reached, refuses, or stops answering.
        """
        with translated(self._address):
            pool = self._open()
            connection = pool.getconn()
            process = os.getpid()
            try:
                yield connection
            finally:
                if process == os.getpid():
                    connection.seconds = ANSWER_SECONDS
                    if (
                        not connection.closed
                        and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
                    ):
                        _roll_back(connection)
                    pool.putconn(connection)
                else:  # a child that was forked inside the block
                    self._inherited.append((pool, connection))

    def close(self) -> None:
        if self._process != os.getpid():
            self._after_fork()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _after_fork(self) -> None:
        self._inherited.append(self._pool)
        self._process, self._lock, self._pool = os.getpid(), threading.Lock(), None

    def _open(self) -> ConnectionPool[DeadlineConnection]:
        if self._process != os.getpid():
            self._after_fork()
        with self._lock:
            if self._pool is None:
                # The first connection is made here, so that its error is the caller's and comes at once.
                with connect(self._address) as connection:
                    _require_extension(connection)
                self._pool = ConnectionPool(
                    self._address.conninfo,
                    connection_class=DeadlineConnection,
                    kwargs=_OPTIONS | _connect_timeout(self._address),
                    min_size=0,
                    max_size=MAX_CONNECTIONS,
                    timeout=ANSWER_SECONDS,
                    configure=_configure,
                    open=True,
                )
            return self._pool


# Statements are not prepared: a pooler such as pgbouncer may answer the next one from another server process, and the
# planner should see the values of a filter.
_OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}


def _connect_timeout(address: Address) -> dict[str, Any]:
    return {} if "connect_timeout=" in address.conninfo else {"connect_timeout": CONNECT_SECONDS}


def connect(address: Address) -> DeadlineConnection:
    """Return a connection of one's own, which the caller closes. Errors are psycopg's."""
    return DeadlineConnection.connect(address.conninfo, **_OPTIONS, **_connect_timeout(address))


def _configure(connection: DeadlineConnection) -> None:
    register_vector(connection)


def _roll_back(connection: DeadlineConnection) -> None:
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()  # the pool replaces it


def _require_extension(connection: DeadlineConnection) -> None:
    """Raise NotAnIndex where the database has no pgvector: nothing was ever created there."""
    row = connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        raise NotAnIndex(
            f"{connection.info.dbname}: this database has no index: likewise index creates one, after "
            "CREATE EXTENSION vector by a superuser where the role may not do that itself"
        )


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn psycopg's errors into ours, in one line that names the address without its password."""
    try:
        yield
    except LikewiseError:
        raise
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
        raise StorageError(f"{address.shown}: {one_line(error)}; ask for the grants of docs/postgres.md") from error
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StorageError(f"{address.shown}: {one_line(error)}; what was committed before is kept") from error
    except ServerSilent as error:
        raise StorageError(
            f"{address.shown}: the server did not answer within {ANSWER_SECONDS:g} s; "
            "what was committed before is kept, run it again when the server answers"
        ) from error
    except PoolTimeout as error:
        raise StorageError(
            f"{address.shown}: no connection within {ANSWER_SECONDS:g} s: too many questions at once, "
            "or the server is gone"
        ) from error
    except errors.OperationalError as error:
        raise StorageError(f"{address.shown}: {one_line(error)}") from error
    except errors.DataError as error:
        raise BadInput(f"{address.shown}: PostgreSQL cannot hold this value ({one_line(error)})") from error


def one_line(error: BaseException) -> str:
    """Return what the server said, without its second line, and never a password."""
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__
