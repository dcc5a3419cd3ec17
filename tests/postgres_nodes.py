"""Three nodes of Citus: PostgreSQL 17 with pgvector from Debian 13 unpacked into a folder, and the compiled extension.

The extension is in `citus` of the folder that LIKEWISE_EVAL_DATA names. Debian is unpacked with debootstrap, once, into
the folder that LIKEWISE_TEST_SHARDS names or a temporary one, which needs root and Debian's packages. The nodes listen
on 127.0.0.1 and end with this process.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import psycopg
import pytest

VARIABLE = "LIKEWISE_TEST_SHARDS"
_BIN = "/usr/lib/postgresql/17/bin"
_FOLDER = Path(os.environ.get(VARIABLE) or Path(tempfile.gettempdir()) / "likewise-trixie")
_CITUS = Path(os.environ.get("LIKEWISE_EVAL_DATA", "none")) / "citus" / "citus-pg17.tar.zst"
_POSTGRES = _FOLDER / _BIN[1:] / "postgres"
_CAN_UNPACK = os.geteuid() == 0 and shutil.which("debootstrap") is not None

needs_citus = pytest.mark.skipif(
    not (_CITUS.exists() and (_POSTGRES.exists() or _CAN_UNPACK)), reason="needs Citus, root and debootstrap"
)


def _unpacked() -> Path:
    if not _FOLDER.is_absolute():
        raise ValueError(
            f"{VARIABLE} is {str(_FOLDER)!r}: give the absolute path of a folder that Debian is unpacked into"
        )
    if not _POSTGRES.exists():
        if _FOLDER.exists() and any(_FOLDER.iterdir()):
            raise ValueError(
                f"{VARIABLE} is {_FOLDER}: is there, and is no Debian with PostgreSQL 17: give another folder"
            )
        packages = "postgresql-17,postgresql-17-pgvector"
        command = ["debootstrap", "--variant=minbase", f"--include={packages}", "trixie", str(_FOLDER)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if not (_FOLDER / "usr/lib/postgresql/17/lib/citus.so").exists():
        subprocess.run(["tar", "-I", "zstd", "-xf", str(_CITUS), "-C", str(_FOLDER)], check=True)
    return _FOLDER


@dataclass
class Node:
    """A server: its port, and how it is started, stopped and killed."""

    root: Path
    data: str
    port: int

    @property
    def uri(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, *command: str) -> None:
        subprocess.run(
            ["/usr/sbin/chroot", "--userspec=postgres:postgres", str(self.root), *command],
            check=True,
            stdout=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin:/usr/sbin", "LC_ALL": "C.UTF-8", "HOME": "/srv"},
        )

    def start(self) -> None:
        self.run(f"{_BIN}/pg_ctl", "-D", self.data, "-l", f"{self.data}/log", "-w", "-t", "600", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run(f"{_BIN}/pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "600", "stop")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have it answer nothing, without an end to its connections."""
        process = psutil.Process(int((self.root / self.data[1:] / "postmaster.pid").read_text().split()[0]))
        process.suspend()  # before its children are listed, so that it starts no others
        stopped = [process, *process.children(recursive=True)]
        try:
            for each in stopped:
                each.suspend()
            yield
        finally:
            for each in reversed(stopped):
                each.resume()

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


_SETTINGS = """
listen_addresses = '127.0.0.1'
dynamic_shared_memory_type = mmap
fsync = off  # nothing here survives the machine
full_page_writes = off
max_connections = 100
shared_buffers = 256MB
shared_preload_libraries = 'citus'
max_prepared_transactions = 100
wal_level = logical
citus.node_conninfo = 'sslmode=disable'
citus.recover_2pc_interval = 5s
"""


@cache
def nodes(count: int = 3) -> list[Node]:
    """Return the running nodes of a cluster, the coordinator first; the first call unpacks and starts them."""
    started = [new_node() for _ in range(count)]
    coordinator, *workers = started
    coordinator.sql(
        f"SELECT citus_set_coordinator_host('127.0.0.1', {coordinator.port})",
        *(f"SELECT citus_add_node('127.0.0.1', {worker.port})" for worker in workers),
        f"SELECT citus_set_node_property('127.0.0.1', {coordinator.port}, 'shouldhaveshards', true)",
    )
    return started


def new_node(primary: Node | None = None) -> Node:
    """Return a running server that no cluster has, with both extensions; or a standby of a server."""
    base = _base()
    node = Node(_FOLDER, f"/srv/{base.name}/{secrets.token_hex(4)}", free_port())
    if primary is None:
        node.run(f"{_BIN}/initdb", "-D", node.data, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    else:
        node.run(f"{_BIN}/pg_basebackup", "-R", "-c", "fast", "-d", primary.uri, "-D", node.data, "--no-sync")
    with (_FOLDER / node.data[1:] / "postgresql.conf").open("a") as settings:
        settings.write(f"port = {node.port}\nunix_socket_directories = '{node.data}'\n{_SETTINGS}")
    node.start()
    _STARTED.append(node)
    if primary is None:
        node.sql("CREATE EXTENSION vector", "CREATE EXTENSION citus")
    return node


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


_STARTED: list[Node] = []


@cache
def _base() -> Path:
    """Return the folder of all nodes, which is removed with them when this process ends."""
    root = _unpacked()
    (root / "srv").chmod(0o777)
    base = Path(tempfile.mkdtemp(prefix="nodes-", dir=root / "srv"))
    base.chmod(0o777)
    process = os.getpid()

    def end() -> None:
        if os.getpid() == process:
            for node in _STARTED:
                with suppress(subprocess.CalledProcessError):  # a test has stopped it
                    node.stop()
            shutil.rmtree(base, ignore_errors=True)

    atexit.register(end)
    return base
