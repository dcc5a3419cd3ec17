"""One line of JSON per request on standard output. The text of questions is logged only if this was requested.

A reader that does not read must not stop the service: lines go through a bounded queue. If the queue is full, lines are
dropped, and the next line has their number.
"""

from __future__ import annotations

import json
import os
import queue
import select
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_LINES = 10_000


class AccessLog:
    """Writes the log in a thread of its own."""

    def __init__(self, descriptor: int | None = None, *, questions: bool = False) -> None:
        """Start the log.

        Args:
            descriptor: the file descriptor that lines go to; standard output by default.
            questions: log the text of questions.
        """
        self.questions = questions
        # Not through sys.stdout: its buffer is locked while a reader does not read, and Python's exit waits for that.
        self._descriptor = sys.stdout.fileno() if descriptor is None else descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(_LINES)
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name="likewise access log", daemon=True)
        self._thread.start()

    def write(self, entry: Mapping[str, Any]) -> None:
        """Add a line. Members without a value are left out."""
        members = {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        members |= {name: value for name, value in entry.items() if value is not None}
        if self._lost:
            members["lost"] = self._lost  # type: ignore[assignment]
        try:
            self._lines.put_nowait(json.dumps(members))
        except queue.Full:
            self._lost += 1
        else:
            self._lost = 0

    def close(self, timeout_s: float = 1.0) -> None:
        """Write the remaining lines, if the reader takes them within this time."""
        try:
            self._lines.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            rest = line.encode() + b"\n"
            while rest:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except BlockingIOError:  # the parent process may have made standard output non-blocking
                    select.select([], [self._descriptor], [])
                except OSError:  # the reader has left: the service continues
                    return
