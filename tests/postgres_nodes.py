"""Three servers of PostgreSQL 17 with pgvector and postgres_fdw, from Debian 13 unpacked into a folder.

LIKEWISE_TEST_SHARDS names that folder; what is missing is unpacked there with debootstrap, once, which needs root and
Debian's packages. The servers listen on 127.0.0.1 and end with this process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VARIABLE = "LIKEWISE_TEST_SHARDS"
_BIN = "/usr/lib/postgresql/17/bin"


def _unpacked() -> Path:
    folder = Path(os.environ[VARIABLE])
    if not folder.is_absolute():
        raise ValueError(
            f"{VARIABLE} is {str(folder)!r}: give the absolute path of a folder that Debian is unpacked into"
        )
    if not (folder / _BIN[1:] / "postgres").exists():
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(
                f"{VARIABLE} is {folder}: is there, and is no Debian with PostgreSQL 17: give another folder"
            )
        packages = "postgresql-17,postgresql-17-pgvector"
        command = ["debootstrap", "--variant=minbase", f"--include={packages}", "trixie", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


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
            env={"PATH": "/usr/bin:/bin:/usr/sbin", "LC_ALL": "C.UTF-8"},
        )

    def start(self) -> None:
        log = f"{self.data}/log"
        self.run(f"{_BIN}/pg_ctl", "-D", self.data, "-l", log, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run(f"{_BIN}/pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    @property
    def pid(self) -> int:
        return int((self.root / self.data[1:] / "postmaster.pid").read_text().split()[0])


@cache
def nodes(count: int = 3) -> list[Node]:
    """Return running servers; the first call unpacks and starts them."""
    root = _unpacked()
    (root / "srv").chmod(0o777)
    base = Path(tempfile.mkdtemp(prefix="nodes-", dir=root / "srv"))
    base.chmod(0o777)
    started = []
    for number in range(count):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        node = Node(root, f"/srv/{base.name}/{number}", port)
        node.run(f"{_BIN}/initdb", "-D", node.data, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        with (root / node.data[1:] / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{node.data}'\n"
                "dynamic_shared_memory_type = mmap\nmax_connections = 60\nshared_buffers = 256MB\n"
            )
        node.start()
        started.append(node)
    process = os.getpid()

    def end() -> None:
        if os.getpid() == process:
            for node in started:
                subprocess.run(["kill", "-9", str(node.pid)], check=False)
            shutil.rmtree(base, ignore_errors=True)

    atexit.register(end)
    return started
