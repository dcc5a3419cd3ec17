"""Limits of a client's request, and of the number of requests at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

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
        self._threads = ThreadPoolExecutor(threads, "likewise lane")
        self._most, self._deadline_s, self._observe_wait = threads + waiting, deadline_s, observe_wait
        self.calls = 0
        """Number of calls that run or wait."""
        self._start = _Start()

    async def run(self, work: Callable[[], Result], prepare: Callable[[], Future[Any] | None] | None = None) -> Result:
        """Run a function in a thread and return its result.

        Args:
            prepare: begins what must end before a thread is taken. Its result and its error are left to `work`. It is
                called for all calls that wait together, when the calls before have taken their threads: batches are
                larger, and what is prepared does not wait behind the preparation of others.

        Raises:
            Problem: 503, the queue is full, or no thread became free before the deadline.
        """
        if self.calls >= self._most:
            raise Problem(503, "full", "more requests wait than the service answers in time: try again in a second")
        self.calls += 1
        try:
            if prepare is None:
                return await self._in_thread(work)
            try:
                # Twice the deadline, because the first question also loads the model.
                async with asyncio.timeout(2 * self._deadline_s) as limit, self._start.turn() as begun:
                    if (preparing := prepare()) is not None:
                        await _ended(preparing)
                    limit.reschedule(None)  # a thread has a deadline of its own
                    return await self._in_thread(work, begun)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise Problem(503, "full", "the model did not answer in time: try again in a second") from None
        finally:
            self.calls -= 1

    async def _in_thread(self, work: Callable[[], Result], begun: Callable[[], None] | None = None) -> Result:
        began, loop = time.perf_counter(), asyncio.get_running_loop()

        def observed() -> Result:
            if begun is not None:
                loop.call_soon_threadsafe(begun)
            self._observe_wait(time.perf_counter() - began)
            return work()

        running = self._threads.submit(observed)
        timer = loop.call_later(self._deadline_s, running.cancel)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # the caller has left
                with anyio.CancelScope(shield=True):
                    await _ended(running)  # a thread that runs cannot be stopped
                raise
            raise Problem(503, "full", "no thread became free in time: try again in a second") from None
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the threads when their calls have ended."""
        self._threads.shutdown(wait=False)


class _Start:
    """Where calls wait so that they begin together: the next ones when the ones before have all gone on."""

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn of a call. Gives the function by which it goes on, which the end of the block calls too."""
        gone = False

        def go_on() -> None:
            nonlocal gone
            if gone:
                return
            gone = True
            self._begun -= 1
            if not self._begun:
                waiting, self._waiting = self._waiting, []
                for turn in waiting:
                    if not turn.done():  # a caller that has left
                        self._begun += 1
                        turn.set_result(None)

        if self._begun:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # its turn came at the same moment
                    go_on()
                raise
        else:
            self._begun = 1
        try:
            yield go_on
        finally:
            go_on()


async def _ended(future: Future[Any]) -> None:
    """Wait until a future of another thread has ended in some way."""
    ended = asyncio.wrap_future(future)
    await asyncio.wait({ended})
    if not ended.cancelled():
        ended.exception()  # otherwise asyncio reports that nobody has looked at it
