"""What a client may ask for, and how many requests are worked on at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from search.server.problems import Problem

Result = TypeVar("Result")

MAX_QUERY_CHARACTERS = 10_000
"""Longest question: the model reads about 1,000 characters of it, the words of the rest still count."""
MAX_FILTER_CHARACTERS = 20_000
MAX_DIMENSIONS = 16_384
MAX_EXPLAINED = 100
"""Most hits that are explained: those of k = 1,000 took 15 seconds."""
MAX_BODY_BYTES = 1 << 20
MAX_DOCUMENTS_BYTES = 16 << 20
"""Largest body of documents or of texts to embed."""
MAX_BUFFERED_BYTES = 256 << 20
"""Most bytes of bodies in memory at the same time, of all requests together."""
MAX_HEADERS = 100
MAX_REQUESTS = 512
"""Most requests that are read or wait at the same time; an answer to one more is 503."""
BODY_DEADLINE_S = 10.0
"""Seconds within which a body must have arrived."""


class Lane:
    """A bounded number of threads for one kind of work, with a bounded queue before them.

    Searches and heavy work (embedding, reranking, writing) have a lane each, so that neither waits for the other.
    """

    def __init__(self, threads: int, waiting: int, deadline_s: float, observe_wait: Callable[[float], None]) -> None:
        """Make a lane.

        Args:
            threads: how many calls run at the same time.
            waiting: how many more may wait for a thread.
            deadline_s: seconds after which a call that still waits is given up.
            observe_wait: is told how many seconds each call has waited.
        """
        self._limiter = anyio.CapacityLimiter(threads)
        self._most_waiting, self._deadline_s, self._observe_wait = waiting, deadline_s, observe_wait
        self.waiting = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run a function in a thread and return its result.

        Raises:
            Problem: 503, the queue is full, or no thread became free before the deadline.
        """
        began, token = time.perf_counter(), object()
        try:
            self._limiter.acquire_on_behalf_of_nowait(token)
        except anyio.WouldBlock:
            await self._wait(token)
        self._observe_wait(time.perf_counter() - began)
        try:
            return await anyio.to_thread.run_sync(work, limiter=_UNLIMITED)
        finally:
            self._limiter.release_on_behalf_of(token)

    async def _wait(self, token: object) -> None:
        if self.waiting >= self._most_waiting:
            raise Problem(503, "full", "more requests wait than the service answers in time: try again in a second")
        self.waiting += 1
        try:
            with anyio.fail_after(self._deadline_s):
                await self._limiter.acquire_on_behalf_of(token)
        except TimeoutError:
            raise Problem(503, "full", "no thread became free in time: try again in a second") from None
        finally:
            self.waiting -= 1


_UNLIMITED = anyio.CapacityLimiter(float("inf"))  # lanes count their threads themselves
