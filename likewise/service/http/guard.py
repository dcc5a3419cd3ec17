"""The checks of every request before it reaches a route: host, origin, token, size and number of requests.

The order limits what a stranger may learn: a request with a wrong host or origin learns nothing else.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.service.http import limits
from likewise.service.http.problems import Problem

_LARGE_BODIES = ("/documents", "/v1/embeddings", "/rerank")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Rules:
    """The rules that decide who may send requests.

    Attributes:
        token: what clients must send as `Authorization: Bearer TOKEN`; None asks for none.
        hosts: names that clients may send as Host, beside those of `loopback_only`.
        loopback_only: accept only this machine's own names as Host. Otherwise every numeric address is accepted too,
            because DNS rebinding needs a name.
        origins: the pages (scheme://host:port) whose scripts may ask from a browser, beside the service's own.
        open_routes: the paths that are answered without a token.
    """

    token: str | None = None
    hosts: Sequence[str] = ()
    loopback_only: bool = True
    origins: Sequence[str] = ()
    open_routes: Sequence[str] = ("/healthz",)
    _names: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = {"localhost", *(() if self.loopback_only else (socket.gethostname().lower(),))}
        object.__setattr__(self, "_names", frozenset(own | {host.lower() for host in self.hosts}))

    def accepts_host(self, header: str) -> bool:
        """Return whether a Host header names this service."""
        try:
            parts = urlsplit(f"//{header}")
            name, _ = parts.hostname, parts.port  # a port that is no number raises
        except ValueError:
            return False
        if not name or parts.username is not None or parts.path or parts.query or parts.fragment:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.loopback_only

    def accepts_origin(self, origin: str, scheme: str, host: str) -> bool:
        """Return whether a page of this origin may send requests: the service's own page, or a page that was named."""
        return origin == f"{scheme}://{host}" or origin in self.origins

    def accepts_token(self, header: str) -> bool:
        """Return whether an Authorization header has the token; the comparison takes the same time for every token."""
        if self.token is None:
            return True
        scheme, _, token = header.partition(" ")
        return hmac.compare_digest(token.strip().encode("latin-1"), self.token.encode()) and scheme.lower() == "bearer"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a service that listens on this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Guard:
    """ASGI middleware that refuses requests which break the rules, and reads the body of all other requests."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules
        self._requests = 0
        self._buffered = 0
        self._answered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = self._counted(scope, receive, send)
        answering = asyncio.create_task(self._answer(scope, receive, send))
        try:
            await asyncio.shield(answering)
        except asyncio.CancelledError:  # the server ends, and the thread of the request may compute for longer
            answering.cancel()
            problem = Problem(503, "stopping", "the service is ending: send the request again when it has started")
            await problem.response(scope["path"])(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken = 0
        self._requests += 1
        try:
            try:
                self._check(scope)
                body = b""
                if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                    limit = _body_limit(scope["path"])
                    taken = self._take(Headers(scope=scope).get("content-length"), limit)
                    body = await _read_body(receive, limit)
            except Problem as problem:
                await problem.response(scope["path"])(scope, receive, send)
                return
            await self._app(scope, replay(body, receive), send)
        finally:
            self._requests -= 1
            self._buffered -= taken

    def _counted(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Add the headers of every answer, and send answers in pieces, each when the client has read most of the piece
        before. Count the bytes of an answer until its last piece is sent, and refuse a large answer for which there is
        no room.

        An answer that comes in several messages is refused by its first one alone, because these messages are small.
        """
        start: Message | None = None
        is_started = is_refused = False

        async def sent(message: Message) -> None:
            nonlocal start, is_started, is_refused
            if message["type"] == "http.response.start":
                is_refused = is_refused or is_started
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                start = message
                return
            if is_refused:
                return
            body = message.get("body", b"")
            size = len(body)
            if start is not None:
                head, start = start, None
                if size > limits.PIECE_BYTES and self._answered + size > limits.MAX_ANSWERED_BYTES:
                    problem = Problem(503, "full", "too many large answers are being read: try again in a second")
                    await problem.response(scope["path"])(scope, receive, sent)
                    is_refused = True
                    return
                is_started = True
                await send(head)
            self._answered += size
            try:
                for begin in range(0, max(size, 1), limits.PIECE_BYTES):
                    end = begin + limits.PIECE_BYTES
                    more = end < size or message.get("more_body", False)
                    await send({**message, "body": body[begin:end], "more_body": more})
            finally:
                self._answered -= size

        return sent

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._rules.accepts_host(hosts[0]):
            raise Problem(421, "wrong-host", "the service does not answer to this host name: its operator can allow it")
        if len(scope["headers"]) > limits.MAX_HEADERS:
            raise Problem(431, "too-many-headers", f"a request has {limits.MAX_HEADERS} headers at most")
        if "transfer-encoding" in headers and "content-length" in headers:
            detail = "the request has both Content-Length and Transfer-Encoding: send one"
            raise Problem(400, "two-lengths", detail, {"Connection": "close"})
        origin = headers.get("origin")
        if origin is not None and not self._rules.accepts_origin(origin, scope["scheme"], hosts[0]):
            raise Problem(403, "foreign-origin", "pages of this origin may not ask: the operator can allow it")
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # of the folder in which it is mounted
        if path not in self._rules.open_routes:
            given = headers.getlist("authorization")
            if not self._rules.accepts_token(given[0] if len(given) == 1 else ""):
                problem = "the token is wrong" if given else "a token is needed: Authorization: Bearer TOKEN"
                raise Problem(401, "unauthorized", problem, {"WWW-Authenticate": "Bearer"})
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Problem(415, "compressed", "compressed bodies are not read: send the body as it is")
        if self._requests > limits.MAX_REQUESTS:
            raise Problem(503, "full", "too many requests at the same time: try again in a second")

    def _take(self, length: str | None, limit: int) -> int:
        """Reserve memory for a body, and return how many bytes: the announced size, or else the maximum."""
        announced = int(length) if length and length.isdigit() else limit
        if announced > limit:
            raise Problem(413, "too-large", f"the body has {announced} bytes, and {limit} is the limit: send less")
        if self._buffered + announced > limits.MAX_BUFFERED_BYTES:
            raise Problem(503, "full", "too many large requests at the same time: try again in a second")
        self._buffered += announced
        return announced


def _body_limit(path: str) -> int:
    return limits.MAX_DOCUMENTS_BYTES if path.endswith(_LARGE_BODIES) else limits.MAX_BODY_BYTES


async def _read_body(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(limits.BODY_DEADLINE_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Problem(400, "disconnected", "the client left before it had sent the body")
                body += message.get("body", b"")
                if len(body) > limit:
                    raise Problem(413, "too-large", f"the body has more than {limit} bytes: send less")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        detail = f"the body did not arrive within {limits.BODY_DEADLINE_S:.0f} seconds"
        raise Problem(408, "slow-body", detail, {"Connection": "close"}) from None


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body in one message, and then the server's messages."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
