"""The end of a question: at a given time, or as soon as nobody waits for the answer."""

from __future__ import annotations

import math
import time

from indexer.errors import DeadlinePassed


class Deadline:
    """The end of the time that a question may take. Any thread may end it earlier.

    Work checks the deadline between its steps: between two parts of a filter, between two segments, and while a
    database compares rows.
    """

    __slots__ = ("_end", "_seconds", "waits")

    def __init__(self, seconds: float = math.inf, *, waits: bool = True) -> None:
        """Begin to count the seconds.

        Args:
            waits: wait until a replica of the words of a database is built, which may take minutes. Otherwise the
                question raises WordsBuilding, and the replica is built for later questions.
        """
        self._seconds, self._end, self.waits = seconds, time.monotonic() + seconds, waits

    def cancel(self) -> None:
        """End the time now, because nobody waits for the answer."""
        self._end = -math.inf

    def passed(self) -> bool:
        return time.monotonic() > self._end

    def check(self) -> None:
        """Raise DeadlinePassed if the time is over."""
        if self.passed():
            raise DeadlinePassed(
                f"the question took longer than {self._seconds:g} seconds: ask again later, or give a filter with "
                "fewer conditions and shorter patterns"
            )


NEVER = Deadline()
"""The deadline of questions that may take any time. Nobody cancels it."""
