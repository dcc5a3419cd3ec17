"""`AsyncSearcher`: a `Searcher` for coroutines. Its methods are awaited and run in threads of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from itertools import islice
from os import PathLike
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from indexer.deadline import Deadline
from indexer.encoders import Encoder
from indexer.errors import BadInput
from indexer.filters.mapping import Filter
from indexer.stores.addresses.open import is_uri
from search.answering import UnknownFields
from search.asker import Asker
from search.hits.hits import Hits
from search.lanes import DATABASE_THREADS, SEARCH_THREADS, Lane
from search.query.query import Query
from search.searcher import PAGE_DOCUMENTS, Searcher

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[Searcher, P], R],
) -> Callable[Concatenate[AsyncSearcher, P], Coroutine[Any, Any, R]]:
    """Return the coroutine function that runs a method of `Searcher` in a thread."""

    @wraps(method)
    async def run(self: AsyncSearcher, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(lambda searcher: method(searcher, *args, **kwargs))

    return run


def _asked(
    method: Callable[Concatenate[Any, P], Hits],
) -> Callable[Concatenate[AsyncSearcher, P], Coroutine[Any, Any, Hits]]:
    """Return the coroutine function that asks what a method of `Asker` asks."""

    @wraps(method)
    async def ask(self: AsyncSearcher, /, *args: P.args, **kwargs: P.kwargs) -> Hits:
        reader = _QuestionReader()
        method(reader, *args, **kwargs)
        return await self.answer(reader.query)

    return ask


def _iterated(
    method: Callable[[Searcher, Filter | None], Iterator[R]],
) -> Callable[[AsyncSearcher, Filter | None], AsyncIterator[R]]:
    """Return the method whose iterator is read with `async for`, one page at a time in a thread."""

    @wraps(method)
    async def iterate(self: AsyncSearcher, where: Filter | None = None) -> AsyncIterator[R]:
        rows = await self._run(lambda searcher: method(searcher, where))
        while page := await self._run(lambda _: list(islice(rows, PAGE_DOCUMENTS))):
            for row in page:
                yield row

    return iterate


class _QuestionReader:
    """Keeps the question that a method of `Asker` asks."""

    query: Query

    def answer(self, query: Query) -> None:
        self.query = query


class AsyncSearcher:
    """The members of `Searcher`, awaited. Share one among the tasks of an event loop.

    Python awaits neither `len()` nor `in`: `await searcher.count()` is `len(searcher)`, and
    `await searcher.contains(uri)` is `uri in searcher`. Properties are those of `searcher.searcher`.

    Questions that tasks ask at the same time are embedded together. A task that is cancelled, also by
    `asyncio.timeout`, leaves the queue, and its question ends at the next step.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        encoder: Encoder | None = None,
        *,
        unknown_fields: UnknownFields = "error",
        trust_remote_code: bool = False,
        threads: int | None = None,
    ) -> None:
        """Open an index for searching, as `Searcher` does, without waiting for anything.

        Args:
            path: the index.
            encoder: as in `Searcher`.
            unknown_fields: as in `Searcher`.
            trust_remote_code: as in `Searcher`.
            threads: maximum calls that run at the same time; the default is 4, or 32 for an index in a database.

        Raises:
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: there is no index that can be read; when the index is
                first read.
            RecipeMismatch: `encoder` is not the one the index was made with.
        """
        self.searcher = Searcher(path, encoder, unknown_fields=unknown_fields, trust_remote_code=trust_remote_code)
        """The searcher behind it, whose methods block."""
        self._lane = Lane(threads or (DATABASE_THREADS if is_uri(path) else SEARCH_THREADS))
        self._is_closed = False

    async def close(self) -> None:
        """Wait for the calls that run, and release threads, connections and memory. Later calls are refused."""
        self._is_closed = True
        if self._lane.calls:
            await self._lane.idle.wait()
        await asyncio.to_thread(self._lane.close, wait=True)
        self.searcher.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _run(self, work: Callable[[Searcher], R], query: Query | None = None) -> R:
        """Run a function in a thread, after the question was embedded together with those of other tasks."""
        if self._is_closed:
            raise BadInput(f"{self.searcher.address}: this Searcher is closed: make another AsyncSearcher of this path")
        deadline = Deadline()
        limited = self.searcher.until(deadline)
        embed = None if query is None else limited.ask_ahead(query)
        try:
            return await self._lane.run(lambda: work(limited), embed)
        except asyncio.CancelledError:
            deadline.cancel()
            raise

    async def answer(self, query: Query) -> Hits:
        return await self._run(lambda searcher: searcher.answer(query), query)

    documents = _iterated(Searcher.documents)
    all_vectors = _iterated(Searcher.all_vectors)
    search = _asked(Asker.search)
    search_vector = _asked(Asker.search_vector)
    search_many = _awaited(Searcher.search_many)
    similar = _awaited(Searcher.similar)
    get = _awaited(Searcher.get)
    get_many = _awaited(Searcher.get_many)
    documents_page = _awaited(Searcher.documents_page)
    original = _awaited(Searcher.original)
    passages = _awaited(Searcher.passages)
    vectors = _awaited(Searcher.vectors)
    contains = _awaited(Searcher.__contains__)
    count = _awaited(Searcher.count)
    uris = _awaited(Searcher.uris)
    beginnings = _awaited(Searcher.beginnings)
    values = _awaited(Searcher.values)
    histogram = _awaited(Searcher.histogram)
    folders = _awaited(Searcher.folders)
    filter_notes = _awaited(Searcher.filter_notes)
    commonest_fields = _awaited(Searcher.commonest_fields)
    central_passages = _awaited(Searcher.central_passages)
    embed = _awaited(Searcher.embed)
    map = _awaited(Searcher.map)
    info = _awaited(Searcher.info)
    committed_at = _awaited(Searcher.committed_at)
