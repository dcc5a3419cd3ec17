"""Threads for the work of coroutines: `Lane` bounds how many calls run and wait."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from indexer.errors import LikewiseError

Result = TypeVar("Result")

SEARCH_THREADS = 4
"""Threads that search. Two threads are as fast as 32 (`python -m benchmarks.serve --threads`), and larger batches are
embedded; the other two are for questions that take long."""
DATABASE_THREADS = 32
"""Threads that search if an index is in a database, for which they wait."""


class Overloaded(LikewiseError):
    """More calls wait than a lane takes, or one has waited too long."""

    exit_code = 3
    http_status = 503
    slug = "full"


class Lane:
    """A bounded number of threads for one kind of work, with a queue before them. A call that is cancelled leaves it.

    The service has lanes for searches, filters that read values, probes, originals, pictures, heavy work (embedding,
    reranking) and writing, so that none waits for another.
    """

    def __init__(
        self,
        threads: int,
        waiting: float = math.inf,
        deadline_s: float = math.inf,
        observe_wait: Callable[[float], None] = lambda _: None,
    ) -> None:
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
        self.idle = asyncio.Event()
        """Set when the last call has ended."""
        self._gate = _Gate()

    async def run(self, work: Callable[[], Result], prepare: Callable[[], Future[Any] | None] | None = None) -> Result:
        """Run a function in a thread and return its result.

        Args:
            prepare: begins what must end before a thread is taken. Its result and its error are left to `work`. It is
                called for all calls that wait together, when the calls before have taken their threads: batches are
                larger, and what is prepared does not wait behind the preparation of others.

        Raises:
            Overloaded: the queue is full, or no thread became free before the deadline.
        """
        if self.calls >= self._most:
            raise Overloaded("more requests wait than the service answers in time: try again in a second")
        self.calls += 1
        self.idle.clear()
        try:
            if prepare is None:
                return await self._in_thread(work)
            try:
                # Twice the deadline, because the first question also loads the model.
                async with asyncio.timeout(2 * self._deadline_s) as limit, self._gate.turn() as move_on:
                    if (preparing := prepare()) is not None:
                        await ended(preparing)
                    limit.reschedule(None)  # a thread has a deadline of its own
                    return await self._in_thread(work, move_on)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise Overloaded("the model did not answer in time: try again in a second") from None
        finally:
            self.calls -= 1
            if not self.calls:
                self.idle.set()

    async def _in_thread(self, work: Callable[[], Result], on_start: Callable[[], None] | None = None) -> Result:
        began, loop = time.perf_counter(), asyncio.get_running_loop()

        def observed() -> Result:
            if on_start is not None:
                loop.call_soon_threadsafe(on_start)
            self._observe_wait(time.perf_counter() - began)
            return work()

        running = self._threads.submit(observed)
        timer = loop.call_later(self._deadline_s, running.cancel)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # the caller has left
                await self._after_caller_left(running)
                raise
            raise Overloaded("no thread became free in time: try again in a second") from None
        finally:
            timer.cancel()

    async def _after_caller_left(self, running: Future[Any]) -> None:
        """Do nothing more for a running call whose caller has left. A subclass may wait for its end."""

    def close(self, *, wait: bool = False) -> None:
        """End the threads when their calls have ended.

        Args:
            wait: return when they have ended.
        """
        self._threads.shutdown(wait=wait)


class _Gate:
    """Lets calls begin together. Those that wait begin when all calls that began before have moved on."""

    def __init__(self) -> None:
        self._preparing = 0  # calls that have begun and not moved on
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn of a call. Gives the function by which it moves on. The end of the block calls it too."""
        has_moved_on = False

        def move_on() -> None:
            nonlocal has_moved_on
            if has_moved_on:
                return
            has_moved_on = True
            self._preparing -= 1
            if not self._preparing:
                waiting, self._waiting = self._waiting, []
                for turn in waiting:
                    if not turn.done():  # a caller that has left
                        self._preparing += 1
                        turn.set_result(None)

        if self._preparing:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # its turn came at the same moment
                    move_on()
                raise
        else:
            self._preparing = 1
        try:
            yield move_on
        finally:
            move_on()


async def ended(future: Future[Any]) -> None:
    """Wait until a future of another thread has ended in some way."""
    ended = asyncio.wrap_future(future)
    await asyncio.wait({ended})
    if not ended.cancelled():
        ended.exception()  # otherwise asyncio reports that nobody has looked at it
