"""More work than the service can do: bounded queues, 503 with Retry-After, deadlines, and normal again afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from indexer.errors import DeadlinePassed
from indexer.filters.mapping import filter_tree
from likewise.service import create_app
from search import Hits, Query, Searcher
from search.lanes import Lane, Overloaded

SEARCH = "/v1/indexes/papers/search"


def test_a_lane_runs_so_many_keeps_so_many_waiting_and_refuses_the_rest() -> None:
    release, outcomes, waits = threading.Event(), list[str](), list[float]()
    running = list[int]()
    most = list[int]()
    lock = threading.Lock()

    def work() -> str:
        with lock:
            running.append(1)
            most.append(len(running))
        release.wait(60)
        with lock:
            running.pop()
        return "done"

    async def ask(lane: Lane) -> None:
        try:
            outcomes.append(await lane.run(work))
        except Overloaded as error:
            outcomes.append(f"{error.http_status} {error.slug}")

    async def burst() -> None:
        lane = Lane(threads=2, waiting=3, deadline_s=60, observe_wait=waits.append)
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(ask, lane)
            while len(outcomes) < 5:
                await anyio.sleep(0.01)
            assert outcomes == ["503 full"] * 5
            assert lane.calls == 5  # two run, three wait
            release.set()
        assert lane.calls == 0
        assert await lane.run(lambda: 7) == 7

    anyio.run(burst)
    assert sorted(outcomes) == ["503 full"] * 5 + ["done"] * 5
    assert max(most) == 2
    assert len(waits) == 6


def test_a_call_that_waits_too_long_is_given_up_and_never_runs() -> None:
    ran, release = list[str](), threading.Event()

    async def late(lane: Lane) -> None:
        with pytest.raises(Overloaded, match="in time"):
            await lane.run(lambda: ran.append("late"))
        release.set()

    async def ask() -> None:
        lane = Lane(threads=1, waiting=5, deadline_s=0.1, observe_wait=lambda _: None)
        async with anyio.create_task_group() as group:
            group.start_soon(lane.run, lambda: (release.wait(10), ran.append("first")))
            await anyio.sleep(0.01)
            group.start_soon(late, lane)

    anyio.run(ask)
    assert ran == ["first"]


def test_a_call_does_not_wait_for_ever_for_what_is_prepared() -> None:
    never: Future[None] = Future()

    async def ask() -> list[str]:
        lane = Lane(threads=1, waiting=5, deadline_s=0.1, observe_wait=lambda _: None)
        said = []

        async def wait() -> None:
            with pytest.raises(Overloaded) as refused:
                await lane.run(lambda: None, lambda: never)
            said.append(str(refused.value))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
        assert lane.calls == 0
        return said

    assert anyio.run(ask) == ["the model did not answer in time: try again in a second"] * 2


def test_a_search_ends_at_its_deadline(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.service.served.SEARCH_SECONDS", -1.0)
    answer = shared.post(SEARCH, json={"query": "moon", "where": "year >= 2019"})
    assert (answer.status_code, answer.json()["slug"]) == (503, "too-slow")
    assert "a filter with fewer conditions" in answer.json()["detail"]
    monkeypatch.undo()
    assert shared.post(SEARCH, json={"query": "moon", "where": "year >= 2019"}).status_code == 200


ASKS = b'{"query": "moon", "mode": "words"}'
CALLS = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": ' + ASKS + b"}}"


@pytest.mark.parametrize(("path", "body"), [(SEARCH, ASKS), ("/mcp", CALLS)], ids=["search", "mcp"])
def test_a_search_ends_when_its_client_has_left(
    papers: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: bytes
) -> None:
    app = create_app({"papers": str(papers)})
    ended, begun, over = list[type[BaseException]](), threading.Event(), threading.Event()

    def forever(searcher: Searcher, query: Query) -> Hits:
        begun.set()
        try:
            while True:
                searcher.count("year >= 2019")
        except DeadlinePassed as error:
            ended.append(type(error))
            over.set()
            raise

    async def ask() -> None:
        sent = list[Any]()
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            if (message := next(messages, None)) is not None:
                return message
            while not begun.is_set():
                await anyio.sleep(0.01)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"accept", b"application/json"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "scheme": "http"}
        await app(scope | {"query_string": b"", "client": ("127.0.0.1", 1)}, receive, send)
        assert json.loads(sent[1]["body"])["slug"] == "disconnected"

    with TestClient(app, base_url="http://127.0.0.1"):
        monkeypatch.setattr(Searcher, "answer", forever)
        anyio.run(ask)
        assert over.wait(20)  # the task of a tool is not a child of its request, which may end before
    assert ended == [DeadlinePassed]


def test_filters_have_seconds_of_computing_of_their_own(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.service.served.FILTER_SECONDS", 1e-9)
    answer = shared.post(SEARCH, json={"query": "moon", "where": 'lang contains "d"'})
    assert (answer.status_code, answer.json()["slug"]) == (503, "too-slow")
    said = "the filter took longer than 1e-09 seconds of computing: give a filter with fewer conditions"
    assert answer.json()["detail"] == f"{said} and shorter patterns"
    assert shared.post(SEARCH, json={"query": "moon"}).status_code == 200
    monkeypatch.undo()
    assert shared.post(SEARCH, json={"query": "moon", "where": 'lang contains "d"'}).status_code == 200


FILTERED = {"query": "moon", "mode": "words", "where": 'lang contains "e"'}
FILTERED_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": FILTERED}}
MCP = {"Accept": "application/json, text/event-stream"}


def test_filters_that_read_values_and_probes_have_threads_of_their_own(
    open_client: Callable[..., TestClient], papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions that compute as long as they like stop neither questions of the other kind nor probes."""
    client = open_client({"papers": papers})
    release, stopped, answer = threading.Event(), list[bool](), Searcher.answer
    stops: dict[bool, bool] = {True: True, False: False}

    def stopping(searcher: Searcher, query: Query) -> Hits:
        if stops[is_filtered := query.condition is not None]:
            stopped.append(is_filtered)
            release.wait(60)
        return answer(searcher, query)

    monkeypatch.setattr(Searcher, "answer", stopping)
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(client.post, SEARCH, json=FILTERED) for _ in range(5)]
        waiting += [pool.submit(client.post, "/mcp", json=FILTERED_CALL, headers=MCP) for _ in range(5)]
        while len(stopped) < 2:
            threading.Event().wait(0.01)
        assert client.post(SEARCH, json={"query": "moon", "mode": "words"}).status_code == 200
        assert client.get("/v1/indexes/papers/count").status_code == 200
        assert stopped == [True, True]
        stops[False] = True
        waiting += [pool.submit(client.post, SEARCH, json={"query": "moon", "mode": "words"}) for _ in range(5)]
        while len(stopped) < 6:
            threading.Event().wait(0.01)
        assert stopped == [True, True, False, False, False, False]
        assert [client.get(path).status_code for path in ("/readyz", "/metrics", "/healthz")] == [200] * 3
        release.set()
        assert {each.result().status_code for each in waiting} == {200}


def test_others_are_answered_while_a_long_filter_is_parsed(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    parsing, release = threading.Event(), threading.Event()

    def slow(where: str, limits: Any) -> Any:
        if len(where) > 4096:
            parsing.set()
            release.wait(60)
        return filter_tree(where, limits)

    monkeypatch.setattr("likewise.service.http.requests.filter_tree", slow)
    long = " or ".join(['lang = "en"'] * 400)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(shared.post, SEARCH, json={"query": "moon", "where": long})
        assert parsing.wait(60)
        assert shared.get("/healthz").status_code == 200
        short = shared.get("/v1/indexes/papers/count", params={"where": 'lang = "en"'})
        assert short.json()["documents"] == 3
        assert not waiting.done()
        release.set()
        assert {hit["uri"] for hit in waiting.result().json()["hits"]} == {"moon", "sun", "bread"}


def test_work_that_fails_frees_its_thread() -> None:
    async def ask() -> None:
        lane = Lane(threads=1, waiting=1, deadline_s=5, observe_wait=lambda _: None)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await lane.run(lambda: 1 // 0)
        assert await lane.run(lambda: 1) == 1

    anyio.run(ask)


def test_a_burst_is_answered_or_refused_and_the_next_question_is_answered(
    open_client: Callable[..., TestClient], papers: Path, monkeypatch: pytest.MonkeyPatch, encoder: Any
) -> None:
    monkeypatch.setattr("likewise.service.http.app.SEARCH_THREADS", 2)
    monkeypatch.setattr("likewise.service.http.app.SEARCH_QUEUE", 4)
    release = threading.Event()
    encoder.ask = lambda _: release.wait(10)
    monkeypatch.setattr("likewise.service.served.ServedIndexes.warm", lambda _: None)
    client = open_client({"papers": papers})
    with ThreadPoolExecutor(20) as pool:
        burst = [pool.submit(client.post, SEARCH, json={"query": "moon", "mode": "dense"}) for _ in range(20)]
        while sum(answer.done() for answer in burst) < 14:
            threading.Event().wait(0.01)
        assert client.get("/healthz").status_code == 200  # waits for nobody
        release.set()
    answers = [answer.result() for answer in burst]
    assert sorted(answer.status_code for answer in answers) == [200] * 6 + [503] * 14
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert (refused.json()["slug"], refused.headers["retry-after"]) == ("full", "1")
    assert client.post(SEARCH, json={"query": "moon"}).status_code == 200
