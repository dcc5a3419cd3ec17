"""The end of a question: at a given time, or as soon as nobody waits for the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from indexer.errors import DeadlinePassed


class Deadline:
    """The end of the time that a question may take. Any thread may end it earlier.

    Work checks the deadline between its steps: between two parts of a filter, between two segments, and while a
    database compares rows.
    """

    __slots__ = ("_end", "_filter_end", "_filter_left", "_filter_seconds", "_seconds", "waits")

    def __init__(self, seconds: float = math.inf, *, waits: bool = True, filter_seconds: float = math.inf) -> None:
        """Begin to count the seconds.

        Args:
            waits: wait until a replica of the words of a database is built, which may take minutes. Otherwise the
                question raises WordsBuilding, and the replica is built for later questions.
            filter_seconds: maximum seconds of this process's CPU for filters. A database counts its own.
        """
        self._filter_seconds = self._filter_left = filter_seconds
        self._filter_end = math.inf
        self._seconds, self._end, self.waits = seconds, time.monotonic() + seconds, waits

    def cancel(self) -> None:
        """End the time now, because nobody waits for the answer."""
        self._end = -math.inf

    @contextmanager
    def filtering(self) -> Iterator[None]:
        """Count the CPU time of this thread as time of filters for the length of a block."""
        self._filter_end = time.thread_time() + self._filter_left
        try:
            yield
        finally:  # A deadline without a limit, which threads may share, keeps its infinite values.
            self._filter_left, self._filter_end = self._filter_end - time.thread_time(), math.inf

    def passed(self) -> bool:
        is_over = self._filter_left < 0 or (self._filter_end < math.inf and time.thread_time() > self._filter_end)
        return is_over or time.monotonic() > self._end

    def check(self) -> None:
        """Raise DeadlinePassed if the time is over."""
        if self.passed():
            is_filter = time.monotonic() <= self._end
            limit = f"{self._filter_seconds:g} seconds of computing" if is_filter else f"{self._seconds:g} seconds"
            raise DeadlinePassed(
                f"the {'filter' if is_filter else 'question'} took longer than {limit}: "
                f"{'' if is_filter else 'ask again later, or '}give a filter with fewer conditions and shorter patterns"
            )


NEVER = Deadline()
"""The deadline of questions that may take any time. Nobody cancels it."""
