"""Files that need a library are read elsewhere, by the workers of a run, before their turn in the walk has come.

Only the bytes of a file travel. What cannot be read elsewhere is read here at its turn, so the reason of a failure does
not depend on where a file was read.
"""

# ruff: noqa: PTH122, PTH123
from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from indexer.records import Stamp
from indexer.sources.formats import FORMATS, Format, format_of
from indexer.sources.walk import WalkedFile

Answer = dict[str, Any]
"""What `Extractor.answer` returns; empty if the file is to be read here."""

Read = Callable[[str, Format, bytes, int], Future[Answer]]
"""Reads a file elsewhere: its path, format and bytes, and the longest text to accept."""

_MAX_WALKED = 1000
"""Maximum files that were walked and wait for their turn."""

_MAX_BYTES = 256 * 2**20
"""Maximum bytes of files that are read elsewhere together, unless a single file is larger."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where files are read.

    Attributes:
        read: returns what reads a file; None if nobody can now.
        window: returns how many files to be ahead.
    """

    read: Callable[[], Read | None]
    window: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A file that is read elsewhere, with its stamp when its bytes were taken."""

    stamp: Stamp
    answer: Future[Answer]


class Ahead:
    """The files that are read elsewhere, and whose turn has not come."""

    def __init__(self, elsewhere: Elsewhere, max_bytes: int, max_characters: int) -> None:
        """Leave out files of more than `max_bytes`, and refuse texts of more than `max_characters`."""
        self._elsewhere, self._max_bytes, self._max_characters = elsewhere, max_bytes, max_characters
        self._asked: dict[str, Asked] = {}

    def files(self, files: Iterator[WalkedFile], is_due: Callable[[WalkedFile], bool]) -> Iterator[WalkedFile]:
        """Yield the files in their order. Those that follow and are due for reading are being read."""
        waiting: deque[WalkedFile] = deque()
        for file in files:
            if is_due(file):
                self._ask(file.path)
            waiting.append(file)
            while waiting and self._is_enough(len(waiting)):
                yield waiting.popleft()
        yield from waiting

    def take(self, path: str) -> Asked | None:
        """Return the reading of a file whose turn has come; None if it was not asked for."""
        return self._asked.pop(path, None)

    def _is_enough(self, walked: int) -> bool:
        size = sum(asked.stamp.size for asked in self._asked.values())
        return walked > _MAX_WALKED or size > _MAX_BYTES or len(self._asked) > self._elsewhere.window()

    def _ask(self, path: str) -> None:
        by_name = FORMATS.get(os.path.splitext(path)[1].lower())
        if by_name is None or by_name.kind != "extracted" or (read := self._elsewhere.read()) is None:
            return
        with suppress(OSError), open(path, "rb") as file:  # at its turn, the same error is its reason
            read_ns = time.time_ns()
            status = os.fstat(file.fileno())
            if not 0 < status.st_size <= self._max_bytes:
                return
            data = file.read(self._max_bytes)
            if (format_ := format_of(path, data)) is by_name:
                stamp = Stamp(status.st_size, status.st_mtime_ns, status.st_ino, read_ns)
                self._asked[path] = Asked(stamp, read(path, format_, data, self._max_characters))
