"""The caller of the worker process, which reads formats that need a library. It ends a worker that takes too long.

It is a subprocess, not a process of multiprocessing, so that scripts without a `__main__` guard work. The connection to
it comes from multiprocessing. There is one worker for all files, because starting it takes half a second.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.ledger import Code, from_stored
from indexer.records import Section
from indexer.sources.content import Content, Skip, Unreadable

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MAX_FILE_SECONDS = 60.0
"""Longest time for one file."""

_START_SECONDS = 60.0  # more time for the first file of a format, whose library is imported from a cold disk


class Extractor:
    """One worker, started at the first file and again after a file that ended it. Safe to share among threads."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
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
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if worker is not None and self._owner == os.getpid():  # a forked child does not end its parent's worker
            worker.kill()
            worker.wait()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        worker, connection = self._running_worker()
        module = str(request["module"])
        seconds = MAX_FILE_SECONDS + (_START_SECONDS if module not in self._modules else 0)
        try:
            connection.send_bytes(json.dumps({**request, "seconds": seconds}).encode())
            answer = _receive(connection, seconds)
        except TimeoutError as error:
            self.close()
            raise Unreadable(Code.TOO_SLOW(f"{MAX_FILE_SECONDS:g}")) from error
        except (EOFError, OSError) as error:
            code = worker.wait()
            self.close()
            how = "signal" if code < 0 else "exit"
            raise Unreadable(Code.READER_CRASHED(how, abs(code))) from error
        except BaseException:  # interrupted: the answer on its way would be taken for that of the next file
            self.close()
            raise
        self._modules.add(module)
        return answer

    def _running_worker(self) -> tuple[subprocess.Popen[bytes], Connection]:
        from multiprocessing.connection import Pipe

        if self._worker is None or self._worker.poll() is not None or self._owner != os.getpid():
            self.close()
            root = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))
            self._connection, of_worker = Pipe()
            with of_worker:
                descriptor = of_worker.fileno()
                self._worker = subprocess.Popen(
                    # -P: not from the working folder
                    [sys.executable, "-P", "-m", "indexer.sources.worker", str(descriptor)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # a library may print
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": path},
                    pass_fds=(descriptor,),
                    start_new_session=True,  # Ctrl-C reaches only the parent, which then closes the connection
                )
            self._owner = os.getpid()
            self._modules.clear()
        assert self._connection is not None
        return self._worker, self._connection


def _receive(connection: Connection, seconds: float) -> dict[str, Any]:
    """Return the next answer.

    Raises:
        TimeoutError: it does not begin within this many seconds. The worker's alarm ends one that does not end.
        EOFError, OSError: the connection was closed.
    """
    if not connection.poll(seconds):
        raise TimeoutError
    answer: dict[str, Any] = json.loads(connection.recv_bytes())
    return answer


EXTRACTOR = Extractor()
"""The extractor that every source of the process shares."""

atexit.register(EXTRACTOR.close)
