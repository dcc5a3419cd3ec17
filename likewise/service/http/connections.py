"""Closing connections of clients that send nothing, only a part of a request, or that do not read their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_DEADLINE_S = 10.0
"""Maximum seconds in which a client must send the headers of its next request. Bodies have a deadline in guard.py."""

READ_DEADLINE_S = 30.0
MIN_READ_BYTES = 1 << 18
"""Minimum bytes of its answer that a client must read in READ_DEADLINE_S."""


class _JoiningConnection(h11.Connection):
    """Gives the head of an answer together with the beginning of its body: one call to the system sends both."""

    _head: Sequence[bytes] = ()

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        pieces = super().send_with_data_passthrough(event)
        if pieces is None:
            return None
        if isinstance(event, h11.Response):
            self._head, pieces = pieces, []
        else:
            self._head, pieces = (), [*self._head, *pieces]
        return pieces


class _StrictBuffer(ReceiveBuffer):
    """Refuses a line of a head that ends with a bare LF: a proxy may read the line on, and see another request."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        received = bytes(self._data)
        lines = super().maybe_extract_lines()
        head = received[: len(received) - len(self._data)]
        if head.count(b"\n") != head.count(b"\r\n"):
            raise h11.RemoteProtocolError("a line of the head does not end with CR and LF")
        return lines


class TimedProtocol(H11Protocol):
    """uvicorn's protocol with a deadline for headers: its own timer only closes connections that are idle.

    When half of the connections that the server may have are open, each new one closes the one that has waited longest
    for headers. So a client that opens many keeps no other client out.
    """

    count: Callable[[float], None] | None = None
    """Is called with 1 for each connection that is opened, and with -1 for each that is closed."""
    _headers_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = _JoiningConnection(h11.SERVER)
        self.conn._receive_buffer = _StrictBuffer()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.count is not None:
            self.count(1)
        self._watch_headers()
        if self.limit_concurrency is not None and 2 * len(self.connections) > self.limit_concurrency:
            others = (each for each in self.connections if isinstance(each, TimedProtocol) and each is not self)
            deadlines = {each: each._headers_timer.when() for each in others if each._headers_timer is not None}
            if deadlines:
                min(deadlines, key=deadlines.__getitem__)._close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.count is not None:
            self.count(-1)
        self._stop_timer()
        self._stop_read_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading(None)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():  # closing waits until the rest is read, too
            self._stop_read_timer()

    def _watch_reading(self, unread: int | None) -> None:
        """End the connection when a client has not read MIN_READ_BYTES in READ_DEADLINE_S: closing would wait for it.

        Args:
            unread: bytes that were unread when the timer began; None begins it.
        """
        left = self.transport.get_write_buffer_size()
        if unread is not None and left > unread - MIN_READ_BYTES:
            self.transport.abort()
        else:
            self._stop_read_timer()
            self._read_timer = self.loop.call_later(READ_DEADLINE_S, self._watch_reading, left)

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _watch_headers(self) -> None:
        """Run one timer from the end of a response to the end of the next headers; data does not begin it again."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._headers_timer is None and not self.transport.is_closing():
            self._headers_timer = self.loop.call_later(HEADERS_DEADLINE_S, self._close)

    def _stop_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            if self.conn.our_state is h11.IDLE:
                self.conn.send(h11.ConnectionClosed())
            self._stop_timer()
            self.transport.close()
            if self.transport.get_write_buffer_size():
                self._watch_reading(None)
