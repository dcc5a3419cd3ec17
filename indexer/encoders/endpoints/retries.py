"""The retries of one request to an endpoint, as a policy of urllib3. Only endpoint.py imports this, when it asks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import urllib3
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import InvalidHeader, MaxRetryError

CONNECT_SECONDS = 10.0
"""Maximum seconds of one attempt to connect."""
BACKOFF_SECONDS = 0.25
"""Seconds of half the first pause. urllib3 tries again at once, then after twice this time, and doubles the pause up
to MAX_PAUSE_SECONDS."""
MAX_PAUSE_SECONDS = 20.0
ERROR_RETRIES = 4
"""Maximum retries after an internal error or a broken answer, which may have the same cause each time."""
CONNECT_RETRIES = 2
"""Maximum retries if nothing listens at the address."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed later."""
BUSY = frozenset({429, 503})
"""Statuses of a busy server. These retries are not counted: only the deadline ends them."""


@dataclass(slots=True)
class Budget:
    """The time of one request, all attempts and pauses included, and the number of attempts that failed.

    Attributes:
        deadline: on the clock of `time.monotonic`.
    """

    deadline: float
    failed: int = 0

    @property
    def seconds_left(self) -> float:
        return max(self.deadline - time.monotonic(), 0.05)


class Retries(urllib3.Retry):
    """A `urllib3.Retry` that gives up before a pause that would pass the deadline of its budget."""

    budget: Budget

    @classmethod
    def within(cls, budget: Budget) -> Self:
        retries = cls(
            total=None,
            connect=CONNECT_RETRIES,
            read=ERROR_RETRIES,
            status=ERROR_RETRIES,
            other=0,
            allowed_methods={"POST"},
            status_forcelist=(),  # endpoint.py decides by status, because urllib3 reads a refused answer without limit.
            backoff_factor=BACKOFF_SECONDS,
            backoff_max=MAX_PAUSE_SECONDS,
            backoff_jitter=BACKOFF_SECONDS,
        )
        retries.budget = budget
        return retries

    def new(self, **changes: Any) -> Self:
        copy = super().new(**changes)
        copy.budget = self.budget
        return copy

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        """Count one failed attempt. Raises MaxRetryError if no other attempt is to be made."""
        self.budget.failed += 1
        counted = super().increment(method, url, response, error, _pool, _stacktrace)
        pause = counted.get_backoff_time() if response is None else counted.get_retry_after(response)
        if time.monotonic() + (pause or counted.get_backoff_time()) >= self.budget.deadline:
            raise MaxRetryError(_pool, url or "", error)  # type: ignore[arg-type]
        return counted.new(status=self.status) if response is not None and response.status in BUSY else counted

    def parse_retry_after(self, retry_after: str) -> float:
        """Return the seconds that a header asks to wait; 0 if the header cannot be read."""
        try:
            return super().parse_retry_after(retry_after)
        except InvalidHeader:
            return 0.0


class TimeLeft(urllib3.Timeout):
    """A timeout that gives each attempt the remaining time of a budget."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def clone(self) -> urllib3.Timeout:
        left = self._budget.seconds_left
        return urllib3.Timeout(connect=min(CONNECT_SECONDS, left), read=left)
