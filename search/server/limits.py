"""Limits of a client's request, and of the number of requests at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from search.server.problems import Problem

Result = TypeVar("Result")

MAX_QUERY_CHARACTERS = 10_000
"""Maximum characters of a question. The model reads about 1,000 of them; the words of the rest still count."""
MAX_DIMENSIONS = 16_384
MAX_EXPLAINED = 100
"""Maximum hits that are explained. Explaining 1,000 hits took 15 seconds."""
MAX_QUESTIONS = 100
"""Maximum questions in one request. They are embedded together, and the first answer waits for the last."""
MAX_HITS_TOGETHER = 10_000
"""Maximum hits that the questions of one request may ask for together: about 17 MB."""
MAX_FACETS = 20
"""Maximum fields that one request counts: as many as a person looks at."""
MAX_BODY_BYTES = 1 << 20
MAX_DOCUMENTS_BYTES = 16 << 20
"""Maximum bytes of a body with documents or with texts to embed."""
MAX_TEXT_CHARACTERS = 4_000_000
"""Maximum characters of a document, about 700 pages of a book: one document is one commit, and other writers wait for
its embedding."""
MAX_METADATA_FIELDS = 1000
"""Maximum metadata fields of a document. Each listed field needs a query of its own."""
MAX_TEXTS = 2048
"""Maximum texts to embed in one request."""
MAX_TEXTS_CHARACTERS = 1_000_000
"""Maximum characters, or tokens, of all texts of a request together. Their tokens take about 130 bytes of memory per
character."""
MAX_BUFFERED_BYTES = 256 << 20
"""Maximum bytes of the bodies of all requests in memory at the same time."""
MAX_HEADERS = 100
MAX_REQUESTS = 512
"""Maximum requests that are read or wait at the same time. A further request is answered with 503."""
BODY_DEADLINE_S = 10.0
"""Maximum seconds until a body has arrived."""


class Lane:
    """A bounded number of threads for one kind of work, with a bounded queue before them.

    Searches and heavy work (embedding, reranking, writing) have a lane each, so that neither waits for the other.
    """

    def __init__(self, threads: int, waiting: int, deadline_s: float, observe_wait: Callable[[float], None]) -> None:
        """Make a lane.

        Args:
            threads: number of calls that run at the same time.
            waiting: maximum number of calls that wait for a thread.
            deadline_s: maximum seconds that a call waits.
            observe_wait: is called with the seconds that each call has waited.
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
