"""The caller of the worker process, in which the readers of readers/ run. It ends a worker that takes too long.

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
import time
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.ledger import Code, from_stored, notes_from_stored
from indexer.records import Section
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.limits import MAX_FILE_SECONDS, MAX_PICTURE_SECONDS, START_SECONDS

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@dataclass(frozen=True)
class PagePicture:
    """The picture of a page.

    Attributes:
        png: the picture; empty if there is no such page.
        is_marked: whether the marks are drawn: they are not where the page has another text than the index.
        pages: how many pages there are.
    """

    png: bytes
    is_marked: bool
    pages: int


class Extractor:
    """One worker, started at the first file and again after a file that ended it. Safe to share among threads."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._owner = 0
        self._modules: set[str] = set()
        self._lock = threading.Lock()

    def extract(
        self,
        path: str,
        module: str,
        max_characters: int,
        text: str | None = None,
        data: bytes | None = None,
        seconds: float | None = None,
    ) -> Content:
        """Read one file, or a message of a mailbox.

        Args:
            module: name of its reader in readers/.
            max_characters: longest text to accept.
            text: the decoded text, for a reader that gets it in place of the path.
            data: the bytes of the message, which its reader gets in place of the path.
            seconds: maximum time; None for the usual limit.

        Raises:
            Unreadable: the file is damaged, encrypted or over a bound, or the reader crashed.
            Skip: it holds nothing to index.
        """
        with self._lock:
            request = {"path": path, "module": module, "max_characters": max_characters, "text": text}
            answer = self._ask({**request, "has_data": data is not None}, data, seconds)
        if "skipped" in answer:
            raise Skip(from_stored(answer["skipped"]))
        content = answer["content"]
        content["sections"] = tuple(Section(**section) for section in content["sections"])
        content["note"] = from_stored(content["note"])
        content["unread"] = notes_from_stored(content["unread"])
        content["unread_pages"] = tuple(content["unread_pages"])
        return Content(**content) if text is None else replace(Content(**content), text=text)

    def draw_page(self, data: bytes, page: int, text: str, marks: Sequence[tuple[int, int]]) -> PagePicture:
        """Draw a page of a PDF. Arguments are those of `pdf_picture.draw`.

        Raises:
            Unreadable: the file is damaged, encrypted or over a bound.
        """
        request = {"module": "pdf_picture", "page": page, "text": text, "marks": marks, "has_data": True}
        with self._lock:
            answer = self._ask(request, data, MAX_PICTURE_SECONDS)
        return PagePicture(b64decode(answer["png"]), answer["is_marked"], answer["pages"])

    def close(self) -> None:
        """End the worker; the next file starts a new one."""
        worker, self._worker = self._worker, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if worker is not None and self._owner == os.getpid():  # a forked child does not end its parent's worker
            worker.kill()
            worker.wait()

    def _ask(self, request: dict[str, Any], data: bytes | None, most: float | None) -> dict[str, Any]:
        worker, connection = self._running_worker()
        module = str(request["module"])
        seconds = MAX_FILE_SECONDS + (START_SECONDS if module not in self._modules else 0) if most is None else most
        deadline = time.monotonic() + seconds
        killer = threading.Timer(seconds, worker.kill)  # also in the middle of the request or the answer
        killer.start()
        try:
            answer = _exchange(connection, {**request, "seconds": seconds}, data)
        except (EOFError, OSError) as error:
            code = worker.wait()
            self.close()
            if time.monotonic() >= deadline:
                raise Unreadable(Code.TOO_SLOW(f"{MAX_FILE_SECONDS if most is None else most:.2g}")) from error
            how = "signal" if code < 0 else "exit"
            raise Unreadable(Code.READER_CRASHED(how, abs(code))) from error
        except BaseException:  # interrupted: the answer on its way would be taken for that of the next file
            self.close()
            raise
        finally:
            killer.cancel()
        self._modules.add(module)
        if "failed" in answer:
            raise Unreadable(from_stored(answer["failed"]))
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


def _exchange(connection: Connection, request: dict[str, Any], data: bytes | None) -> dict[str, Any]:
    """Send a request and return its answer. Raises EOFError or OSError if the worker ends before."""
    connection.send_bytes(json.dumps(request).encode())
    if data is not None:
        connection.send_bytes(data)
    answer: dict[str, Any] = json.loads(connection.recv_bytes())
    return answer


EXTRACTOR = Extractor()
"""The extractor that every source of the process shares."""

atexit.register(EXTRACTOR.close)
