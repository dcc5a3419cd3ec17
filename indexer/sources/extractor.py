"""Drives the worker process that reads formats which need a library, and ends it when a file takes too long.

A subprocess rather than multiprocessing, so that scripts without a `__main__` guard work; one for all files,
since starting it takes half a second.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from indexer.records import Section
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.worker import LENGTH, send

SECONDS = 60.0
"""How long one file may take."""

_START_SECONDS = 60.0  # importing a library from a cold disk, the first time a format is met


class Extractor:
    """One worker, started at the first file and again after one that it did not survive. Thread-safe."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._modules: set[str] = set()
        self._lock = threading.Lock()

    def extract(self, path: str, module: str, max_characters: int) -> Content:
        """Read one file with the reader of this name.

        Raises:
            Unreadable: damaged, encrypted, over a bound, or the reader did not survive it.
            Skip: nothing in it to index.
        """
        with self._lock:
            answer = self._ask({"path": path, "module": module, "max_characters": max_characters})
        if "failed" in answer:
            raise Unreadable(answer["failed"])
        if "skipped" in answer:
            raise Skip(answer["skipped"])
        content = answer["content"]
        content["sections"] = tuple(Section(**section) for section in content["sections"])
        return Content(**content)

    def close(self) -> None:
        """End the worker; the next file starts a new one."""
        worker, self._worker = self._worker, None
        if worker is not None and self._owner == os.getpid():  # a forked child leaves its parent's alone
            worker.kill()
            worker.communicate()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        worker = self._running()
        assert worker.stdin and worker.stdout
        module = str(request["module"])
        seconds = SECONDS + (_START_SECONDS if module not in self._modules else 0)
        try:
            send(worker.stdin, {**request, "seconds": seconds})
            answer = _receive(worker.stdout.fileno(), time.monotonic() + seconds)
        except TimeoutError as error:
            self.close()
            raise Unreadable(f"reading it takes longer than {SECONDS:g} seconds") from error
        except OSError as error:
            code = worker.wait()
            self.close()
            how = "signal" if code < 0 else "exit"
            raise Unreadable(f"its reader crashed ({how} {abs(code)})") from error
        except BaseException:  # interrupted: what is under way would be taken for the next file's answer
            self.close()
            raise
        self._modules.add(module)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._worker is None or self._worker.poll() is not None or self._owner != os.getpid():
            self.close()
            root = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))
            self._worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "indexer.sources.worker"],  # -P: nothing is imported from here
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for the parent, which then closes its end
            )
            self._owner = os.getpid()
            self._modules.clear()
        return self._worker


def _receive(stream: int, deadline: float) -> dict[str, Any]:
    """The next message before the deadline (TimeoutError); a closed stream is an OSError."""
    length = LENGTH.unpack(_read(stream, LENGTH.size, deadline))[0]
    message: dict[str, Any] = json.loads(_read(stream, length, deadline))
    return message


def _read(stream: int, size: int, deadline: float) -> bytes:
    received = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(received) < size:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            if not (part := os.read(stream, min(size - len(received), 2**20))):
                raise ConnectionResetError
            received += part
    return bytes(received)


EXTRACTOR = Extractor()
"""The one that every source of the process shares."""

atexit.register(EXTRACTOR.close)
