"""Connections whose clients send nothing, or not all of a request, and those of clients that do."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from likewise.service.http import connections
from likewise.service.http.connections import TimedProtocol
from likewise.service.http.guard import Guard, Rules

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answer_slowly(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.6)  # longer than the deadline for headers
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def served(app: Any = answer_slowly, protocol: type[TimedProtocol] = TimedProtocol) -> Iterator[int]:
    """The port of a server with room for four connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, http=protocol, lifespan="off", log_config=None, limit_concurrency=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def connect(port: int, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Wait for the end of a connection, which may come before the server has read what was sent."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_connections_without_a_whole_request_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_DEADLINE_S", 0.2)
    with served() as port:
        half_open = [connect(port, sent) for sent in (b"", b"GET", b"GET / HTTP/1.1\r\nHost: localhost\r\nx", b"", b"")]
        assert all(map(is_closed, half_open))
        with connect(port, REQUEST) as connection:  # there is room again
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        for connection in half_open:
            connection.close()


def test_a_client_that_sends_byte_after_byte_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_DEADLINE_S", 0.3)
    with served() as port, connect(port, b"GET / HTTP/1.1\r\nx: ") as connection:
        connection.settimeout(0.05)
        for _ in range(200):
            try:
                assert connection.recv(100) == b""
                break
            except TimeoutError:
                connection.sendall(b"a")
        else:
            pytest.fail("the connection was never closed")


def test_requests_on_one_connection_are_answered_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_DEADLINE_S", 0.4)
    with served() as port, connect(port, b"") as connection:
        for _ in range(2):
            connection.sendall(REQUEST)
            received = b""
            while not received.endswith(b"ok"):
                received += connection.recv(1000)
            assert received.startswith(b"HTTP/1.1 200 OK")


def test_many_connections_without_a_request_keep_no_client_out() -> None:
    with served() as port:
        half_open = [connect(port, b"GET / HTTP/1.1\r\n") for _ in range(40)]
        with connect(port, REQUEST) as connection:
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        assert all(map(is_closed, half_open[:30]))
        for connection in half_open:
            connection.close()


def test_an_answer_arrives_with_its_head_in_one_piece() -> None:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else b"ok"})

    with served(answer) as port, connect(port, REQUEST) as connection:
        received = connection.recv(1000)
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert received.endswith(b"\r\n\r\nok")
        connection.sendall(REQUEST.replace(b"GET", b"HEAD"))
        assert connection.recv(1000).endswith(b"\r\n\r\n")


def test_answers_that_nobody_reads_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    large = b"x" * (24 << 20)  # more than the buffers of both sides hold

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        body = large if scope["path"] == "/large" else b"small"
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def received(connection: socket.socket) -> bytes:
        with connection:
            return b"".join(iter(lambda: connection.recv(1 << 20), b""))

    monkeypatch.setattr("likewise.service.http.limits.MAX_ANSWERED_BYTES", 40 << 20)
    closing = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    ask = closing.replace(b"GET /", b"GET /large")
    with served(Guard(answer, Rules())) as port:
        with connect(port, ask) as unread:
            assert unread.recv(15) == b"HTTP/1.1 200 OK"
            refused = received(connect(port, ask))
            assert refused.startswith(b"HTTP/1.1 503")
            assert b"too many large answers are being read" in refused
            assert received(connect(port, closing)).endswith(b"\r\n\r\nsmall")
        whole = b""
        while not whole.startswith(b"HTTP/1.1 200"):  # until the server has seen that the first client left
            whole = received(connect(port, ask))
        assert whole.endswith(b"\r\n\r\n" + large)


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    body, lost = b"x" * (64 << 20), threading.Event()  # more than the buffers of both sides hold

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})

    class Reported(TimedProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    with served(answer, Reported) as port, connect(port, REQUEST) as connection:
        received = len(connection.recv(1000))
        while chunk := connection.recv(1 << 20):
            received += len(chunk)
            if received > len(body):
                break
        assert received > len(body)  # who reads gets all of it
        connection.sendall(REQUEST)
        monkeypatch.setattr(connections, "READ_DEADLINE_S", 0.3)
        assert lost.wait(60)
