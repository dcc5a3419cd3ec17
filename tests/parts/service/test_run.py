"""The process: what it says, how it ends, and workers that die."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import os
import pickle
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from starlette.testclient import TestClient

from indexer import Index
from indexer.encoders.machine.hardware import named_threads
from indexer.errors import NotAnIndex
from likewise.service import create_app
from likewise.service.http import run


def ask(address: str, query: str = "moon", name: str = "vectors", timeout_s: float = 10) -> list[str]:
    request = urllib.request.Request(
        f"{address}/v1/indexes/{name}/search", json.dumps({"query": query}).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        return [hit["uri"] for hit in json.load(answer)["hits"]]


@pytest.mark.parametrize(
    ("cores", "gigabytes", "address", "loads_models", "platform", "workers"),
    [
        (1, 8, "a.index", False, "linux", 1),
        (2, 8, "a.index", False, "linux", 2),
        (16, 64, "a.index", False, "linux", 4),
        (4, 3, "a.index", False, "linux", 3),
        (2, 0.5, "a.index", False, "linux", 1),
        (4, 8, "a.index", True, "linux", 1),
        (4, 8, "postgresql:///db", False, "linux", 1),
        (4, 8, "a.index", False, "win32", 1),
        (4, 8, "a.index", False, "darwin", 1),
    ],
)
def test_the_machine_decides_how_many_workers_answer(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    gigabytes: float,
    address: str,
    loads_models: bool,
    platform: str,
    workers: int,
) -> None:
    monkeypatch.setattr(run, "cores", lambda: cores)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": int(gigabytes * 2**18), "SC_PAGE_SIZE": 4096}.__getitem__)
    assert run.default_workers(["b.index", address], loads_models=loads_models) == workers


@pytest.mark.parametrize(("named", "threads"), [("3", 3), ("0", None), ("4,2", None), ("", None)])
def test_a_worker_computes_with_the_threads_that_are_named(
    monkeypatch: pytest.MonkeyPatch, named: str, threads: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", named)
    assert named_threads() == threads


def test_no_other_service_gets_the_port_while_the_indexes_are_opened() -> None:
    with run._bind("127.0.0.1", 0) as free:
        address = free.getsockname()

    def create(**_: Any) -> Any:
        with pytest.raises(run.CannotListen) as refused:
            run._bind(*address)
        assert isinstance(refused.value.__cause__, OSError)
        assert refused.value.__cause__.errno == errno.EADDRINUSE
        raise NotAnIndex("read no further")

    with pytest.raises(NotAnIndex, match="read no further"):
        run.serve(create, address[0], address[1], print)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the workers share one socket")
def test_no_other_service_gets_the_port_before_the_workers_listen() -> None:
    with run._bind("127.0.0.1", 0) as free:
        address = free.getsockname()
    with run._reserve(*address), ExitStack() as workers:
        for _ in range(2):
            with pytest.raises(run.CannotListen):
                run._reserve(*address)
            pickled = pickle.dumps(run._OwnSocket(*address))
            worker = workers.enter_context(pickle.loads(pickled))  # noqa: S301 - pickled here
            worker.listen()
            assert worker.getsockname() == address
    run._reserve(*address).close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the workers share one socket")
def test_a_service_without_a_worker_answers_503_until_one_listens() -> None:
    with run._bind("127.0.0.1", 0) as free:
        address = free.getsockname()
    url = f"http://127.0.0.1:{address[1]}/healthz"
    sentinel, worker = os.pipe()
    process = SimpleNamespace(process=SimpleNamespace(sentinel=sentinel))
    sockets = [run._OwnSocket(*address)]
    supervisor = SimpleNamespace(processes=[process], should_exit=threading.Event(), sockets=sockets)
    listens, announced = threading.Event(), threading.Event()
    with run._reserve(*address):
        arguments = (address, supervisor, listens, announced.set)
        standing_in = threading.Thread(target=run._announce_and_stand_in, args=arguments)
        standing_in.start()
        assert not announced.wait(0.2)  # ten looks
        listens.set()
        assert announced.wait(30)
        os.close(worker)  # it has died
        await_true(lambda: not listens.is_set())
        with pytest.raises(urllib.error.HTTPError) as refused:
            await_true(lambda: slug_of(url) == "restarting")
            urllib.request.urlopen(url, timeout=60)
        with refused.value as answer:
            assert (answer.code, answer.headers["Retry-After"]) == (503, "1")
        supervisor.processes = []
        listens.set()
        with pytest.raises(urllib.error.URLError, match="refused"):
            while True:
                with suppress(ConnectionResetError):  # the last client in its queue
                    slug_of(url)
        supervisor.should_exit.set()
        standing_in.join()
    os.close(sentinel)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the workers share one socket")
def test_a_service_answers_while_all_workers_are_replaced_and_leaves_no_folder(
    serving: Any, own_vectors: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with serving(own_vectors, "--workers", "2", TMPDIR=str(temporary)) as service:
        answers = {slug_of(f"{service.address}/healthz")}
        for worker in children(service.process.pid):
            os.kill(worker, signal.SIGKILL)

        def answers_again() -> bool:
            with suppress(ConnectionResetError, http.client.RemoteDisconnected):  # of a worker that is ending
                answers.add(slug_of(f"{service.address}/healthz"))
            return "restarting" in answers and slug_of(f"{service.address}/readyz") is None

        await_true(answers_again)
        assert answers == {None, "restarting"}
        service.stop(signal.SIGKILL)
        (left,) = temporary.iterdir()
    with serving(own_vectors, "--workers", "2", TMPDIR=str(temporary)) as service:
        assert left not in temporary.iterdir()
        assert service.stop() == 0
    assert list(temporary.iterdir()) == []


def test_it_says_where_it_serves_and_ends_with_0(serving: Any, own_vectors: Path) -> None:
    with serving(f"notes={own_vectors}") as service:
        assert service.name == "notes"
        assert ask(service.address, name="notes") == ["moon"]
        assert service.stop(signal.SIGINT) == 0
    with serving(own_vectors) as service:
        assert service.stop(signal.SIGTERM) == 0
    assert Index.open(own_vectors).check().ok


def test_it_finishes_what_it_accepted(serving: Any, own_vectors: Path) -> None:
    """A request is answered even if its body is still arriving at Ctrl-C, also if somebody presses it twice."""
    body = json.dumps({"query": "moon"}).encode()
    with serving(own_vectors) as service, socket.create_connection(("127.0.0.1", service.port), timeout=60) as client:
        head = f"POST /v1/indexes/vectors/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body[:5])
        for _ in range(2):
            time.sleep(0.3)
            service.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        client.sendall(body[5:])
        received = b""
        while part := client.recv(65536):
            received += part
        assert received.startswith(b"HTTP/1.1 200 OK")
        assert b'"moon"' in received
        assert (service.process.wait(timeout=60), service.process.stderr.read()) == (0, "")


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_request_that_outlasts_the_service_gets_a_problem(
    own_vectors: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def compute(*_: Any, **__: Any) -> list[Any]:
        begun.set()
        may_end.wait(60)
        return []

    monkeypatch.setattr("search.searcher.Searcher.search_many", compute)
    monkeypatch.setattr("likewise.service.http.documents.Writers.put", compute)
    of_method: dict[str, tuple[str, dict[str, Any]]] = {
        "POST": ("search-many", {"queries": ["moon"]}),
        "PUT": ("documents", {"documents": [{"uri": "a", "text": "a"}], "vectors": [[1, 0, 0]]}),
    }
    route, body = of_method[method]
    app, sent = create_app({"x": str(own_vectors)}, writable=True), list[Any]()

    async def receive() -> dict[str, Any]:
        if asked.pop():
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Any) -> None:
        sent.append(message)

    async def end_during_the_request() -> None:
        head = {"type": "http", "method": method, "path": f"/v1/indexes/x/{route}", "query_string": b""}
        scope = {**head, "scheme": "http", "headers": [(b"host", b"localhost")], "client": None}
        request = asyncio.create_task(app(scope, receive, send))
        await asyncio.to_thread(begun.wait, 60)
        request.cancel()
        await request  # uvicorn would write a traceback of an exception
        may_end.set()

    asked = [False, True]
    asyncio.run(end_during_the_request())
    start, content = sent
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"1")
    assert json.loads(content["body"])["slug"] == "stopping"


def test_a_thread_that_computes_does_not_keep_the_process(own_vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends a moment after the application. Python alone would wait for every thread."""
    ended, codes = threading.Event(), list[int]()

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr("likewise.service.http.run.END_S", 0.01)
    monkeypatch.setattr("likewise.service.http.run.os._exit", end)
    monkeypatch.setattr("likewise.service.http.connections.TimedProtocol.count", None)
    with TestClient(run.make_app(partial(create_app, {"x": str(own_vectors)}), lambda: False)):
        assert not codes
    assert ended.wait(60)
    assert codes == [0]
    assert run.GRACE_S + run.END_S < 10


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_it_answers_while_it_drains_and_ends_at_once_with_a_second_signal(
    serving: Any, own_vectors: Path, workers: int
) -> None:
    options = ("--drain", "600", "--workers", str(workers))
    with serving(own_vectors, *options) as service:
        ready = f"{service.address}/readyz"
        with urllib.request.urlopen(ready, timeout=60) as answer:
            assert json.load(answer)["status"] == "ready"
        service.process.send_signal(signal.SIGTERM)
        await_true(lambda: slug_of(ready) == "draining")
        assert ask(service.address) == ["moon"]
        assert service.stop() == 0


@pytest.mark.slow
def test_it_ends_when_it_has_drained(serving: Any, own_vectors: Path) -> None:
    with serving(own_vectors, "--drain", "1") as service:
        assert service.stop() == 0


@pytest.mark.slow
def test_readiness_is_open_without_the_token_where_that_was_asked_for(serving: Any, own_vectors: Path) -> None:
    with serving(own_vectors, "--open-readyz", LIKEWISE_TOKEN="secret") as service:
        assert slug_of(f"{service.address}/v1/indexes") == "unauthorized"
        assert slug_of(f"{service.address}/readyz") is None


def slug_of(url: str) -> str | None:
    """Return the slug of the error at an address; None if it answers."""
    try:
        urllib.request.urlopen(url, timeout=60).close()
    except urllib.error.HTTPError as error:
        return str(json.load(error)["slug"])
    return None


@contextmanager
def asking(address: str, outcomes: list[str]) -> Iterator[None]:
    """Ask from four threads, and record what each gets: the hits, or the error of its connection."""
    stop = threading.Event()

    def client() -> None:
        while not stop.is_set():
            try:
                outcomes.append(",".join(ask(address)))
            except (urllib.error.URLError, ConnectionError, http.client.HTTPException) as error:
                outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def fewest_connections(service: int) -> int:
    """Return the number of TCP sockets of the worker that has the fewest; one of them listens."""
    sockets = []
    for worker in children(service):
        with suppress(psutil.NoSuchProcess):  # a busy machine may be slow to answer its supervisor, which replaces it
            sockets.append(len(psutil.Process(worker).net_connections("tcp")))
    return min(sockets) if len(sockets) == 2 else 0


@pytest.mark.slow
def test_a_worker_that_is_killed_under_load_is_replaced(serving: Any, own_vectors: Path) -> None:
    outcomes: list[str] = []
    with serving(own_vectors, "--workers", "2") as service:
        host, port = service.address.removeprefix("http://").split(":")
        with pytest.raises(run.CannotListen):  # by another service
            run._bind(host, int(port))

        def spreads_connections() -> bool:
            with ExitStack() as opened:
                for _ in range(64):
                    opened.enter_context(socket.create_connection((host, int(port)), timeout=60))
                return fewest_connections(service.process.pid) > 4  # it has fewer once in 10**14 times

        await_true(spreads_connections)
        workers = children(service.process.pid)
        with asking(service.address, outcomes):
            await_true(lambda: len(outcomes) > 20)
            os.kill(workers[0], signal.SIGKILL)
            await_true(lambda: len(set(children(service.process.pid)) - {workers[0]}) == 2)
            answered = outcomes.count("moon")
            await_true(lambda: outcomes.count("moon") > answered + 20)
        with urllib.request.urlopen(f"{service.address}/metrics", timeout=60) as metrics:
            text = metrics.read().decode()
        for name in ("likewise_requests_total", "likewise_connections"):
            assert name in text
        assert service.stop() == 0
    assert set(outcomes) <= {"moon", "URLError", "ConnectionResetError", "RemoteDisconnected", "IncompleteRead"}
    assert Index.open(own_vectors).check().ok


@pytest.mark.slow
def test_a_service_that_is_killed_under_load_serves_at_once_again(serving: Any, own_vectors: Path) -> None:
    outcomes: list[str] = []
    with serving(own_vectors, "--writable") as service, asking(service.address, outcomes):
        await_true(lambda: len(outcomes) > 20)
        service.process.kill()
        await_true(lambda: outcomes[-1] != "moon")
    assert Index.open(own_vectors).check().ok
    with serving(own_vectors) as service:
        assert ask(service.address) == ["moon"]


@pytest.mark.slow
def test_workers_end_with_their_parent(serving: Any, own_vectors: Path) -> None:
    with serving(own_vectors, "--workers", "2") as service:
        workers = children(service.process.pid)
        service.process.kill()
        await_true(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    with serving(own_vectors) as service:
        assert ask(service.address) == ["moon"]


@pytest.mark.slow
def test_a_watch_ends_with_its_service(serving: Any, own_vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    with serving(own_vectors, "--watch", tmp_path / "sources") as service:
        (watch,) = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
        assert b"sources" in Path(f"/proc/{watch}/cmdline").read_bytes()
        service.process.kill()
        service.process.wait()
        await_true(lambda: not Path(f"/proc/{watch}").exists())


@pytest.mark.slow
def test_a_watch_that_dies_is_reported_and_the_service_goes_on(serving: Any, own_vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    with serving(own_vectors, "--watch", tmp_path / "sources") as service:
        (watch,) = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
        os.kill(int(watch), signal.SIGKILL)
        assert any("the watch has ended with exit code -9" in line for line in service.process.stderr)
        assert ask(service.address) == ["moon"]


def children(process: int) -> list[int]:
    """The processes that serve, which the resource tracker of multiprocessing does not."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def await_true(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not happen within 100 seconds")
