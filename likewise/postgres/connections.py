"""Connections to the server: kept for the next question, a deadline for every answer, and errors in one line each."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors
from psycopg.adapt import Buffer, Loader

from indexer.deadline import NEVER, Deadline
from indexer.errors import (
    BadInput,
    DeadlinePassed,
    DiskFull,
    IndexDamaged,
    IndexLocked,
    IndexUnavailable,
    LikewiseError,
    Message,
    NotAnIndex,
    NotPermitted,
    StorageError,
)
from likewise.postgres.address import Address, passwords
from likewise.postgres.vectors import IdArray, IdArrayDumper

T = TypeVar("T")

CONNECT_SECONDS = 4
"""Maximum seconds to make a connection, unless the address has another value (`connect_timeout`)."""

SILENT_SECONDS = 2.0
"""Seconds after which a statement without an answer makes another connection try the server."""

TRIAL_SECONDS = 2
"""Maximum seconds that this connection waits. If it gets no answer either, the server is down; else the statement is
slow. The least that psycopg allows."""

NODE_SECONDS = 5
"""Maximum seconds that the server then waits for a connection to each node of Citus."""

_TURN_SECONDS = 0.1
"""Maximum seconds that a thread waits while another thread tries a server that did not answer before."""

ANSWER_SECONDS = float(os.environ.get("LIKEWISE_POSTGRES_SECONDS", "60"))
"""Maximum seconds that a question waits for the server. A server that stops answering must not block its clients
forever."""

WORK_SECONDS = 24 * 3600.0
"""Maximum seconds to wait for work that grows with the number of passages, such as building a graph."""

MAX_CONNECTIONS = 8
"""Maximum connections of one process. If all are in use, a thread waits for one."""

_IDLE_SECONDS = 600.0
"""Maximum seconds that an unused connection is kept."""

MIN_PGVECTOR = (0, 8)
"""The first version with hnsw.iterative_scan, without which a filter would get too few passages from the graph."""

SOUND_PGVECTOR = (0, 8, 4)
"""The first version without known damage to graphs (its change log, 0.8.2 to 0.8.4)."""


class ServerSilent(errors.OperationalError):
    """The server did not answer in time."""


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection whose statements end with an error in time, even if the server does not answer at all.

    Attributes:
        address: where its server is; None until it is connected.
        seconds: maximum seconds of a statement. None: ANSWER_SECONDS, or less if the server is down.
        deadline: the deadline of the question that uses the connection now.
        ef_search: width of the graph search in the current transaction, if it was set.
        idle_since: when it was last given back (time.monotonic).
        epoch: of `Connections`, when it was made.
    """

    address: Address | None = None
    seconds: float | None = None
    deadline: Deadline = NEVER
    ef_search: int | None = None
    idle_since = 0.0
    epoch = 0

    def __del__(self, warn: Any = None) -> None:
        """Leave the closing to libpq, which never touches the connection of a parent process."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        seconds = self.seconds or ANSWER_SECONDS
        try:
            return super().wait(self._watched(gen), interval, seconds if timeout is None else timeout)
        except DeadlinePassed:
            self._try_cancel(timeout=5.0)  # otherwise the server would work on
            self.pgconn.finish()  # its state is unknown
            raise
        except ServerSilent:
            self.pgconn.finish()
            raise
        except errors._WaitTimeout:
            self.pgconn.finish()
            raise ServerSilent(f"the server did not answer within {seconds:g} s") from None

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Wait as psycopg's generator does, and look at deadline and server each time it is resumed: at least ten times
        a second.

        Raises:
            DeadlinePassed: the time of the question is over.
            ServerSilent: the server answers neither this connection nor a new one, or a node of Citus is silent.
        """
        try:
            ready = next(gen)
            since = time.monotonic()
            while True:
                resumed = yield ready
                self.deadline.check()
                if resumed:
                    since = time.monotonic()
                elif self.seconds is None and self.address and time.monotonic() - since > SILENT_SECONDS:
                    _require_answers(self.address, self.deadline)
                    since = time.monotonic()
                ready = gen.send(resumed)
        except StopIteration as stop:
            result: T = stop.value
            return result


_NODE_OF_INDEX = """
WITH used AS MATERIALIZED (
    SELECT DISTINCT nodename, nodeport FROM likewise.index i
    JOIN pg_dist_shard s ON s.logicalrelid = to_regclass(i.tables || '.shard')
    JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
    WHERE i.name = %s AND n.isactive AND n.noderole = 'primary'
)
SELECT nodename || ':' || nodeport FROM used WHERE NOT citus_check_connection_to_node(nodename, nodeport) LIMIT 1
"""


def _require_answers(address: Address, deadline: Deadline = NEVER) -> None:
    """Raise ServerSilent if the server, or a node with shards of the index, does not answer a new connection.

    An error is an answer, and so is a connection without a free process behind it, as a pooler makes them.
    """
    limits: dict[str, Any] = {"autocommit": True, "connect_timeout": TRIAL_SECONDS, "client_encoding": "utf8"}
    try:
        with DeadlineConnection.connect(address.conninfo, **limits) as trial:
            trial.seconds, trial.deadline = float(TRIAL_SECONDS + NODE_SECONDS), deadline
            if trial.execute("SELECT to_regclass('pg_dist_node') IS NULL").fetchone() == (True,):
                return
            with trial.transaction():
                trial.execute(f"SET LOCAL citus.node_connection_timeout = '{int(NODE_SECONDS)}s'")
                row = trial.execute(_NODE_OF_INDEX, (address.index,)).fetchone()
    except errors.ConnectionTimeout:
        raise ServerSilent(f"the server did not answer within {SILENT_SECONDS + TRIAL_SECONDS:g} s") from None
    except psycopg.Error:
        return
    if row is not None:
        raise ServerSilent(f"the node {row[0]} did not answer")


class Connections:
    """The connections of a store. Safe to share among threads; a forked child makes its own.

    The thread that needs a connection makes it. So, if the server is down, this thread gets the error at once. While a
    server does not answer, one thread at a time tries it and the others get the error at once: a service needs its
    threads for its other indexes.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._epoch = 0
        self._reset()

    def _reset(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._idle: list[DeadlineConnection] = []  # the one used last is at the end
        self._trial, self._silent_at = threading.Lock(), -math.inf  # when it was found that the server does not answer

    @contextmanager
    def connection(self) -> Iterator[DeadlineConnection]:
        """Lend a connection that is in no transaction and has just answered.

        Raises:
            IndexUnavailable: the server cannot be reached, refuses, or stops answering.
        """
        with self.begun(lambda connection: connection.execute("")) as (connection, _):
            yield connection

    @contextmanager
    def begun(self, begin: Callable[[DeadlineConnection], T]) -> Iterator[tuple[DeadlineConnection, T]]:
        """Lend a connection on which `begin` has run, and the result of `begin`.

        If a kept connection turns out to be dead, `begin` runs again on another connection: the server may have been
        restarted, and no statement was sent before.

        Raises:
            IndexUnavailable: the server cannot be reached, refuses, or stops answering.
        """
        with translated(self._address):
            if self._process != os.getpid():  # another thread of the parent may have held the lock
                self._reset()
            process, free, begun_at = self._process, self._free, time.monotonic()
            if not free.acquire(timeout=ANSWER_SECONDS):
                raise IndexUnavailable(
                    f"{self._address.shown}: all {MAX_CONNECTIONS} connections of this process were in use for "
                    f"{ANSWER_SECONDS:g} s: ask fewer questions at once"
                )
            try:
                with self._turn(begun_at):
                    connection, begun = self._take(begin)
                self._silent_at = -math.inf
                try:
                    yield connection, begun
                finally:
                    if process == os.getpid():  # not in a child that was forked inside the block
                        self._give_back(connection)
            except (ServerSilent, errors.ConnectionTimeout):
                self._silent_at = time.monotonic()
                raise
            finally:
                if process == os.getpid():
                    free.release()

    @contextmanager
    def _turn(self, begun_at: float) -> Iterator[None]:
        """Let one thread at a time try a server that did not answer. Raises ServerSilent in the others.

        A thread that began to wait before the others found that out does not try again: it has waited long enough.
        """
        if self._silent_at == -math.inf:
            yield
            return
        trial = self._trial
        if begun_at < self._silent_at or not trial.acquire(timeout=_TURN_SECONDS):
            raise ServerSilent("the server does not answer")
        try:
            _require_answers(self._address)
            yield
        finally:
            trial.release()

    def close(self) -> None:
        if self._process != os.getpid():
            self._reset()
        self._drop_idle()

    def _take(self, begin: Callable[[DeadlineConnection], T]) -> tuple[DeadlineConnection, T]:
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            connection = kept or self._connect()
            try:
                return connection, begin(connection)
            except errors.OperationalError as error:
                if kept is None or not connection.closed or isinstance(error, ServerSilent):
                    self._give_back(connection)
                    raise
                self._drop_idle()  # the others are as old
            except BaseException:
                self._give_back(connection)
                raise

    def _connect(self) -> DeadlineConnection:
        connection = connect(self._address)
        try:
            _require_extension(connection, self._address)
            register_vector(connection)
            _load_vectors_raw(connection)
            connection.adapters.register_dumper(IdArray, IdArrayDumper)
        except BaseException:
            connection.close()
            raise
        connection.epoch = self._epoch
        return connection

    def _give_back(self, connection: DeadlineConnection) -> None:
        connection.seconds, connection.deadline = None, NEVER
        if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            _roll_back(connection)
        if connection.closed:
            return
        now = connection.idle_since = time.monotonic()
        stale = []
        with self._lock:
            if connection.epoch == self._epoch:
                self._idle.append(connection)
            else:
                stale.append(connection)
            while now - self._idle[0].idle_since > _IDLE_SECONDS if self._idle else False:
                stale.append(self._idle.pop(0))
        for unneeded in stale:
            unneeded.close()

    def _drop_idle(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._epoch += 1
        for connection in idle:
            connection.close()


# Statements are not prepared: a pooler such as pgbouncer may answer the next one from another server process, and the
# planner should see the values of a filter.
_OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}


def connect(address: Address) -> DeadlineConnection:
    """Return a connection of one's own, which the caller closes. Other errors are psycopg's.

    Raises:
        BadInput: the URI has a parameter that libpq does not know, or a value that it cannot read.
    """
    limit: dict[str, Any] = {} if "connect_timeout=" in address.conninfo else {"connect_timeout": CONNECT_SECONDS}
    try:
        # The settings of a role or a database may be others, and each of these would change what is written or read.
        connection = DeadlineConnection.connect(address.conninfo, **_OPTIONS, **limit, client_encoding="utf8")
        connection.address = address
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        if (
            connection.info.parameter_status("standard_conforming_strings") != "on"
        ):  # psycopg writes lists of bytes by it
            connection.execute("SET standard_conforming_strings = on")
        return connection
    except psycopg.ProgrammingError as error:
        raise BadInput(f"{address.shown}: {one_line(error, address)}") from error


class _RawLoader(Loader):
    """Leaves a vector as the server sends it in binary: many are converted at once (vectors.py)."""

    format = psycopg.pq.Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def _load_vectors_raw(connection: DeadlineConnection) -> None:
    halfvec = connection.adapters.types.get("halfvec")
    if halfvec is not None:  # registered with the extension
        connection.adapters.register_loader(halfvec.oid, _RawLoader)


def _roll_back(connection: DeadlineConnection) -> None:
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()  # another connection replaces it


def _require_extension(connection: DeadlineConnection, address: Address) -> None:
    """Raise NotAnIndex if the database has no pgvector and no registry: nothing was ever created there.

    Raises:
        NotAnIndex: the database has no index.
        IndexDamaged: the database has indexes, but the extension was dropped together with all columns of vectors.
    """
    if extension_schema(connection) is None:
        if connection.execute("SELECT to_regclass('likewise.index') IS NULL").fetchone() == (False,):
            raise IndexDamaged(
                f"{address.shown}: the extension vector was dropped from its database, and with it the vectors of all "
                "indexes there: restore a backup of the database"
            )
        raise NotAnIndex(
            Message(
                f"{address.shown}: is not an index, and its database has none",
                ": likewise index creates one; if the role may not create extensions, a superuser must first run "
                "CREATE EXTENSION vector",
            )
        )


def extension_schema(connection: DeadlineConnection) -> str | None:
    """Return the schema of pgvector; None if the database does not have pgvector.

    Raises:
        NotPermitted: this role does not see its types.
    """
    row = connection.execute(
        "SELECT n.nspname, to_regtype('vector') IS NOT NULL FROM pg_extension e"
        " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    ).fetchone()
    if row is None:
        return None
    if not row[1]:
        user, schema = connection.info.user, row[0]
        raise NotPermitted(
            f"the role {user} does not see pgvector in schema {schema!r}: GRANT USAGE ON SCHEMA "
            f'"{schema}" TO "{user}"; ALTER ROLE "{user}" SET search_path = "$user", public, "{schema}"'
        )
    return str(row[0])


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn psycopg's errors into ours, in one line that names the address without its password."""
    try:
        yield
    except LikewiseError:
        raise
    except errors.ReadOnlySqlTransaction as error:
        line = one_line(error, address)
        raise NotPermitted(
            f"{address.shown}: {line}: this server only reads, as a standby does: write to the primary"
        ) from error
    except errors.InsufficientPrivilege as error:
        line = one_line(error, address)
        what = "ask for the grants of docs/postgres.md" if line.startswith("permission denied") else "ask the owner"
        raise NotPermitted(f"{address.shown}: {line}; {what}") from error
    except errors.FeatureNotSupported as error:
        line = one_line(error, address)
        what = "; install its package on the server (docs/postgres.md)" if line.startswith("extension ") else ""
        raise StorageError(f"{address.shown}: {line}{what}") from error
    except errors.DiskFull as error:
        raise DiskFull(f"{address.shown}: {one_line(error, address)}; what was committed before is kept") from error
    except ServerSilent as error:
        raise IndexUnavailable(
            f"{address.shown}: {one_line(error, address)}; "
            "what was committed before is kept, run it again when the server answers"
        ) from error
    except errors.LockNotAvailable as error:
        raise IndexLocked(
            f"{address.shown}: another writer held the same rows for {ANSWER_SECONDS:g} s; run it again"
        ) from error
    except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
        name = address.index.replace("'", "''")
        raise IndexDamaged(
            f"{address.shown}: tables of this index are missing ({one_line(error, address)}): restore a backup, or "
            f"forget the index with DELETE FROM likewise.index WHERE name = '{name}' and index its sources again"
        ) from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise IndexDamaged(f"{address.shown}: {one_line(error, address)}: restore a backup of the database") from error
    except errors.IoError as error:
        # Of the server's disk, or of Citus if a node ends in the middle of a COPY.
        line = one_line(error, address)
        raise (IndexUnavailable if " COPY " in line else StorageError)(f"{address.shown}: {line}") from error
    # InternalError is also what Citus reports if a node ends in the middle of a transaction.
    except (errors.OperationalError, errors.InternalError) as error:
        raise IndexUnavailable(f"{address.shown}: {one_line(error, address)}") from error
    except errors.DataError as error:
        raise BadInput(f"{address.shown}: PostgreSQL cannot hold this value ({one_line(error, address)})") from error


def one_line(error: BaseException, address: Address) -> str:
    """Return the first line of the server's message, without passwords."""
    line = " ".join(str(error).split("\n")[0].split()) or "a server ended and gave no reason"
    for password in passwords(address):
        line = line.replace(password, "***")
    return line
