"""Closing connections of clients that send nothing, or only a part of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_DEADLINE_S = 10.0
"""Maximum seconds in which a client must send the headers of its next request. Bodies have a deadline in guard.py."""


class TimedProtocol(H11Protocol):
    """uvicorn's protocol with a deadline for headers: its own timer only closes connections that are idle."""

    count: Callable[[float], None] | None = None
    """Is called with 1 for each connection that is opened, and with -1 for each that is closed."""
    _headers_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.count is not None:
            self.count(1)
        self._watch_headers()

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
            self.transport.close()
