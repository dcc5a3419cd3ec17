"""A browser, and a service in this process for it to visit."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

CHROMIUM = os.environ.get("LIKEWISE_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
"""An installed Chromium; None where there is none."""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@contextmanager
def serving_here(app: Any, port: int = 0) -> Iterator[int]:
    """Serve an application on loopback in a thread of this process, and give the port."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none"))
        started = threading.Event()
        server.config.load()
        startup = server.startup

        async def announced(sockets: list[socket.socket] | None = None) -> None:
            await startup(sockets)
            started.set()

        server.startup = announced  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        assert started.wait(30)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)
