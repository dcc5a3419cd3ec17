"""`AsyncSearcher`: the answers of `Searcher`, awaited; questions together in one batch; tasks that are cancelled."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.errors import BadInput
from likewise import AsyncSearcher, Document, Index, Searcher, UnknownUri
from search.asker import Asker

TEXTS = ["the moon orbits", "bread in the oven", "a river of tea", "stars and the moon"]


@pytest.fixture
def address(tmp_path: Path, encoder: Any) -> Path:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"d{n}", text, "title", {"n": n}) for n, text in enumerate(TEXTS)])
    return tmp_path / "x.index"


def test_it_has_the_public_members_of_a_searcher() -> None:
    blocking = {"until", "ask_ahead"}  # parts of its own calls
    methods = {
        name
        for name, value in inspect.getmembers(Searcher)
        if not name.startswith("_") and inspect.isfunction(value) and name not in blocking
    }
    assert methods <= set(dir(AsyncSearcher))
    for name in methods - {"documents", "all_vectors", "close", "answer"}:
        assert inspect.iscoroutinefunction(getattr(AsyncSearcher, name)), name
        assert inspect.signature(getattr(AsyncSearcher, name)) == inspect.signature(getattr(Searcher, name)), name
    assert AsyncSearcher.search.__doc__ == Asker.search.__doc__


@pytest.mark.asyncio
async def test_its_answers_are_those_of_a_searcher(address: Path, encoder: Any) -> None:
    with Searcher(address, encoder) as one:
        async with AsyncSearcher(address, encoder) as searcher:
            for mode in ("dense", "words", "hybrid"):
                asked: Any = {"where": "n < 3", "mode": mode, "min_score": 0.1}
                assert await searcher.search("moon", 2, **asked) == one.search("moon", 2, **asked)
            vector = encoder.encode(["river"])[0]
            assert await searcher.search_vector(vector, 1) == one.search_vector(vector, 1)
            assert await searcher.search_many(["tea", "oven"], 2) == one.search_many(["tea", "oven"], 2)
            assert await searcher.similar("d0", 2, where="n > 0") == one.similar("d0", 2, where="n > 0")
            assert (await searcher.get("d1"), await searcher.count("n > 1")) == (one.get("d1"), 2)
            assert await searcher.passages("d1") == one.passages("d1")
            assert (await searcher.count(), await searcher.contains("d1")) == (len(one), "d1" in one) == (4, True)
            assert not await searcher.contains("nothing")
            assert [document async for document in searcher.documents("n > 0")] == list(one.documents("n > 0"))
            every = {uri: rows.tolist() async for uri, rows in searcher.all_vectors("n > 0")}
            assert every == {uri: rows.tolist() for uri, rows in one.all_vectors("n > 0")}
            assert (await searcher.embed(["tea"])).tolist() == one.embed(["tea"]).tolist()
            with pytest.raises(UnknownUri):
                await searcher.get("nothing")
            with pytest.raises(ValueError, match="the question is empty"):
                await searcher.search(" ")


@pytest.mark.asyncio
async def test_questions_of_several_tasks_are_embedded_together(address: Path, encoder: Any) -> None:
    release, batches = threading.Event(), list[int]()
    async with AsyncSearcher(address, encoder, threads=1) as searcher:
        await searcher.search("moon")

        def hold(texts: list[str]) -> None:
            batches.append(len(texts))
            release.wait(60)

        encoder.ask = hold
        first = asyncio.create_task(searcher.search("tea"))
        await _until(lambda: batches == [1])
        others = [asyncio.create_task(searcher.search(text)) for text in TEXTS]
        await asyncio.sleep(0)  # each task runs up to its first wait
        release.set()
        answers = await asyncio.gather(first, *others)
    assert batches == [1, 4]
    assert [hits[0].uri for hits in answers] == ["d2", "d0", "d1", "d2", "d3"]


@pytest.mark.asyncio
async def test_a_cancelled_call_frees_its_place_and_ends_its_question(
    address: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()
    answer = Searcher.answer

    def forever(searcher: Searcher, query: Any) -> Any:
        begun.set()
        try:
            while True:
                searcher.count("n < 2")  # until the deadline of the call is cancelled
        finally:
            ended.set()

    async with AsyncSearcher(address, encoder, threads=1) as searcher:
        monkeypatch.setattr(Searcher, "answer", forever)
        running = asyncio.create_task(searcher.search("moon", mode="words"))
        waiting = asyncio.create_task(searcher.search("tea", mode="words"))
        await _until(begun.is_set)
        assert searcher._lane.calls == 2
        waiting.cancel()  # it waits for the only thread
        running.cancel()
        assert [type(error) for error in await asyncio.gather(running, waiting, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 2
        assert searcher._lane.calls == 0
        await _until(ended.is_set)
        monkeypatch.setattr(Searcher, "answer", answer)
        assert (await searcher.search("moon", 1, mode="words"))[0].uri == "d0"


@pytest.mark.asyncio
async def test_closing_waits_for_running_calls_and_refuses_later_calls(address: Path, encoder: Any) -> None:
    begun, release = threading.Event(), threading.Event()
    searcher = AsyncSearcher(address, encoder, threads=1)
    await searcher.count()

    def hold(texts: list[str]) -> None:
        begun.set()
        release.wait(60)

    encoder.ask = hold
    running = asyncio.create_task(searcher.search("moon", 1))
    await _until(begun.is_set)
    closing = asyncio.create_task(searcher.close())
    done, _ = await asyncio.wait({closing}, timeout=0.05)
    assert not done
    with pytest.raises(BadInput, match="this Searcher is closed"):
        await searcher.count()
    release.set()
    assert (await running)[0].uri == "d0"
    await closing
    with pytest.raises(BadInput, match="this Searcher is closed"):
        await searcher.search("tea", 1)


@pytest.mark.asyncio
async def test_closing_waits_for_calls_that_wait_for_others(address: Path, encoder: Any) -> None:
    begun, release = threading.Event(), threading.Event()
    searcher = AsyncSearcher(address, encoder, threads=2)
    await searcher.search("moon")

    def hold(texts: list[str]) -> None:
        begun.set()
        release.wait(60)

    encoder.ask = hold
    tasks = [asyncio.create_task(searcher.search(f"moon {n}", 1)) for n in range(20)]
    await _until(begun.is_set)
    closing = asyncio.create_task(searcher.close())
    await asyncio.sleep(0)
    release.set()
    assert all(len(hits) == 1 for hits in await asyncio.gather(*tasks))
    await closing


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.001)
