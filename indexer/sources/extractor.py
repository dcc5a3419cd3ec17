"""The caller of the worker process, which reads formats that need a library. It ends a worker that takes too long.

It is a subprocess, not multiprocessing, so that scripts without a `__main__` guard work. There is one for all files,
because starting it takes half a second.
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

from indexer.ledger import Code, from_stored
from indexer.records import Section
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.worker import LENGTH_HEADER, send

MAX_FILE_SECONDS = 60.0
"""Longest time for one file."""

_START_SECONDS = 60.0  # more time for the first file of a format, whose library is imported from a cold disk


class Extractor:
    """One worker, started at the first file and again after a file that ended it. Safe to share among threads."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._modules: set[str] = set()
        self._lock = threading.Lock()

    def extract(self, path: str, module: str, max_characters: int) -> Content:
        """Read one file.

        Args:
            module: name of its reader in readers/.
            max_characters: longest text to accept.

        Raises:
            Unreadable: the file is damaged, encrypted or over a bound, or the reader crashed.
            Skip: it holds nothing to index.
        """
        with self._lock:
            answer = self._ask({"path": path, "module": module, "max_characters": max_characters})
        if "failed" in answer:
            raise Unreadable(from_stored(answer["failed"]))
        if "skipped" in answer:
            raise Skip(from_stored(answer["skipped"]))
        content = answer["content"]
        content["sections"] = tuple(Section(**section) for section in content["sections"])
        content["note"] = from_stored(content["note"])
        return Content(**content)

    def close(self) -> None:
        """End the worker; the next file starts a new one."""
        worker, self._worker = self._worker, None
        if worker is not None and self._owner == os.getpid():  # a forked child does not end its parent's worker
            worker.kill()
            worker.communicate()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        worker = self._running_worker()
        assert worker.stdin and worker.stdout
        module = str(request["module"])
        seconds = MAX_FILE_SECONDS + (_START_SECONDS if module not in self._modules else 0)
        try:
            send(worker.stdin, {**request, "seconds": seconds})
            answer = _receive(worker.stdout.fileno(), time.monotonic() + seconds)
        except TimeoutError as error:
            self.close()
            raise Unreadable(Code.TOO_SLOW(f"{MAX_FILE_SECONDS:g}")) from error
        except OSError as error:
            code = worker.wait()
            self.close()
            how = "signal" if code < 0 else "exit"
            raise Unreadable(Code.READER_CRASHED(how, abs(code))) from error
        except BaseException:  # interrupted: the answer on its way would be taken for that of the next file
            self.close()
            raise
        self._modules.add(module)
        return answer

    def _running_worker(self) -> subprocess.Popen[bytes]:
        if self._worker is None or self._worker.poll() is not None or self._owner != os.getpid():
            self.close()
            root = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))
            self._worker = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "indexer.sources.worker",
                ],  # -P: not from the working folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C reaches only the parent, which then closes the pipe
            )
            self._owner = os.getpid()
            self._modules.clear()
        return self._worker


def _receive(stream: int, deadline: float) -> dict[str, Any]:
    """Return the next message.

    Raises:
        TimeoutError: there is none before the deadline.
        OSError: the stream was closed.
    """
    length = LENGTH_HEADER.unpack(_read(stream, LENGTH_HEADER.size, deadline))[0]
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
"""The extractor that every source of the process shares."""

atexit.register(EXTRACTOR.close)
