"""One request to an embeddings endpoint in OpenAI's form, and checks of the answer.

The content of requests and the meaning of vectors are in remote.py.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.errors import EndpointUnavailable, ModelError
from indexer.records import Vector
from likewise.endpoints.endpoint_address import EndpointAddress
from likewise.endpoints.named_hosts import require_named

if TYPE_CHECKING:
    import urllib3

KEY_VARIABLE = "LIKEWISE_API_KEY"
"""The environment variable with the key of endpoints. It is read for each request and never kept."""

MAX_ANSWER_BYTES = 256 * 2**20
"""Maximum bytes of an answer. 64 vectors of 16,384 numbers, written out, have 25 MB."""

CONNECT_SECONDS = 10.0
"""Maximum seconds of one attempt to connect."""
BACKOFF_SECONDS = 0.25
"""Seconds of half the first pause. The second attempt follows at once; each later pause is twice as long, up to
MAX_PAUSE_SECONDS."""
MAX_PAUSE_SECONDS = 20.0
ERROR_RETRIES = 4
"""Maximum retries after an internal error or a broken answer, which may have the same cause each time."""
CONNECT_RETRIES = 2
"""Maximum retries if nothing listens at the address."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed later."""
_BUSY_STATUSES = frozenset({429, 503})
"""Statuses of a busy server. These retries are not counted: only the deadline ends them."""
_REJECTING = frozenset({400, 413, 422})
"""Statuses with which servers refuse texts that are too long or too many."""
_TOO_LONG = re.compile(
    r"(?=.*\b(?:input|inputs|text|prompt|request|tokens|length|context (?:size|window)|batch size)\b)"
    r"(?=.*(?:too (?:large|long|big|many)|exceed|larger|longer|maximum|less than|overflow))"
    r"(?!.*\b(?:memory|deadline|time|quota|rate|requests))",
    re.IGNORECASE,
)
"""Explanations of an internal error (500) that name the length of a text. llama.cpp and Ollama refuse long texts so."""


class Rejected(ModelError):
    """The endpoint does not accept these texts: they are too long, or too many, or it does not know a member.

    Attributes:
        answer: the endpoint's explanation, for people.
    """

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


class Endpoint:
    """A client of one endpoint. Threads may share it; a forked process opens connections of its own."""

    def __init__(self, address: EndpointAddress) -> None:
        """Raises ModelError if this user has not named the host of `address`."""
        require_named(address)
        self.address = address
        self._pool: urllib3.HTTPConnectionPool | None = None
        self._pid = 0
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], *, seconds: float, members: Mapping[str, str] | None = None) -> Vector:
        """Return the vectors of texts: finite rows (texts, dimensions) in their order, float32, not normalised.

        Args:
            seconds: maximum seconds until the answer, all attempts and pauses included.
            members: further members of the request, in addition to the members of OpenAI's form.

        Raises:
            Rejected: the endpoint does not accept these texts.
            EndpointUnavailable: it cannot be reached, is too busy, or too slow.
            ModelError: it refuses the key, does not know the model, or answers with something other than vectors.
        """
        request = {"model": self.address.name, "input": list(texts), "encoding_format": "float", **(members or {})}
        return _vectors(self._value(*self._post(json.dumps(request).encode(), seconds)), len(texts), self.address)

    def _post(self, body: bytes, seconds: float) -> tuple[int, Mapping[str, str], bytes, int]:
        """Return status, headers and body of the last answer, and how many attempts failed."""
        import urllib3
        from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, SSLError

        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "likewise"}
        key = os.environ.get(KEY_VARIABLE, "")
        if key:
            if not key.isprintable() or not key.isascii():
                raise ModelError(f"{KEY_VARIABLE} holds characters that a header cannot have: set it to the key alone")
            headers["Authorization"] = f"Bearer {key}"
        deadline = time.monotonic() + seconds
        failed, connects_left, errors_left = 0, CONNECT_RETRIES, ERROR_RETRIES
        while True:
            left = max(deadline - time.monotonic(), 0.05)
            error: HTTPError | None = None
            pause = 0.0
            try:
                response = self._connections().urlopen(
                    "POST",
                    f"{self.address.path}/embeddings",
                    body=body,
                    headers=headers,
                    retries=False,
                    redirect=False,
                    timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, left), read=left),
                    preload_content=False,
                )
                try:
                    data = _read(response, deadline)
                    response.release_conn()
                finally:
                    response.close()  # A connection with a part of an answer in it must not be used again.
                if response.status not in _PASSING or _is_refusal(response.status, data):
                    return response.status, response.headers, data, failed
                errors_left -= response.status not in _BUSY_STATUSES
                pause = _retry_after(response)
            except (ConnectTimeoutError, NewConnectionError) as caught:
                error = caught
                connects_left -= 1
            except HTTPError as caught:
                error = caught
                errors_left = -1 if isinstance(error, SSLError) else errors_left - 1
            failed += 1
            if not pause and failed > 1:
                pause = min(BACKOFF_SECONDS * (2 ** (failed - 1) + random.random()), MAX_PAUSE_SECONDS)
            if min(connects_left, errors_left) < 0 or time.monotonic() + pause >= deadline:
                if error is not None:
                    raise self._failure(error, failed) from error
                return response.status, response.headers, data, failed
            time.sleep(pause)

    def _failure(self, error: Exception, attempts: int) -> ModelError | EndpointUnavailable:
        """Return the error for a request that got no whole answer."""
        from urllib3 import exceptions

        if isinstance(error, exceptions.SSLError):
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                return ModelError(
                    f"the endpoint {self.address.url} does not speak TLS as this machine does "
                    f"({_clean(str(error))}): if it speaks plain HTTP, write http://"
                )
            return ModelError(
                f"the endpoint {self.address.url} has no certificate that this machine trusts "
                f"({_clean(str(error))}): set SSL_CERT_FILE to the file of its authority"
            )
        if isinstance(error, exceptions.NameResolutionError):
            return self._unavailable("cannot be reached: no such host is known", attempts, _START)
        if isinstance(error, exceptions.NewConnectionError):
            return self._unavailable("cannot be reached: nothing listens there", attempts, _START)
        if isinstance(error, exceptions.TimeoutError):
            return self._unavailable("did not answer in time", attempts, _SLOW)
        return self._unavailable(f"ended the connection ({type(error).__name__})", attempts, _START)

    def _unavailable(self, problem: str, attempts: int, advice: str) -> EndpointUnavailable:
        again = f" ({attempts} attempts)" if attempts > 1 else ""
        return EndpointUnavailable(f"the endpoint {self.address.url} {problem}{again}: {advice}")

    def _value(self, status: int, headers: Mapping[str, str], data: bytes, attempts: int) -> Any:
        """Return the value of an answer's JSON. Raises an error for any status but 200."""
        is_refusal = _is_refusal(status, data)
        if status in _PASSING and not is_refusal:
            advice = _BUSY if status in _BUSY_STATUSES else _LOG
            raise self._unavailable(f"answers {status}: {_message(data)}", attempts, advice)
        if 300 <= status < 400:
            raise ModelError(
                f"the endpoint {self.address.url} answers that it has moved ({status}), to "
                f"{_clean(headers.get('Location', 'no address'))}: nothing was sent there; name that address if you "
                "trust it"
            )
        if status in (401, 403):
            wrong = "refuses the key of" if os.environ.get(KEY_VARIABLE) else "wants a key in"
            raise ModelError(
                f"the endpoint {self.address.url} {wrong} {KEY_VARIABLE} ({status}: {_message(data)}): set that "
                "variable to your key"
            )
        if is_refusal:
            answer = _message(data)
            raise Rejected(f"the endpoint {self.address.url} rejects the texts ({status}: {answer})", answer)
        if status != 200:
            raise ModelError(
                f"the endpoint {self.address.url} answers {status}: {_message(data)}; check the path and whether it "
                f"has a model {self.address.name!r}"
            )
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:  # the second for brackets within brackets
            raise ModelError(
                f"the endpoint {self.address.url} answers with something other than JSON, or with a part of it: check "
                "the path, which often ends with /v1"
            ) from error

    def _connections(self) -> urllib3.HTTPConnectionPool:
        """Return this process's connections to the host. No proxy of the environment is used."""
        import urllib3

        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool = urllib3.connection_from_url(self.address.host, maxsize=4, block=False)
                self._pid = os.getpid()
            return self._pool


_START = "start it there, or check the address, and try again; what was committed is kept"
_SLOW = "it may be loading the model or be busy: try again later; what was committed is kept"
_BUSY = "it is busy or limits requests: try again later; what was committed is kept"
_LOG = "its own log says why; what was committed is kept"


def _is_refusal(status: int, data: bytes) -> bool:
    """Return whether an answer refuses the texts of a request, which would be refused again."""
    return status in _REJECTING or (status == 500 and _TOO_LONG.match(_message(data)) is not None)


def _retry_after(response: urllib3.BaseHTTPResponse) -> float:
    """Return the seconds that an answer asks to wait; 0 if it does not ask, or cannot be read."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return Retry().get_retry_after(response) or 0.0
    except InvalidHeader:
        return 0.0


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """Return the body, however slowly it comes. Raises urllib3's TimeoutError after the deadline."""
    from urllib3.exceptions import TimeoutError as TooSlow

    data = bytearray()
    while block := response.read1(2**16):
        data += block
        if len(data) > MAX_ANSWER_BYTES:
            raise ModelError(f"an endpoint answered with more than {MAX_ANSWER_BYTES // 2**20} MB: nothing was kept")
        if time.monotonic() > deadline:
            raise TooSlow
    return bytes(data)


def _vectors(value: Any, count: int, address: EndpointAddress) -> Vector:
    """Return the vectors of an answer in the order of the texts.

    Raises:
        ModelError: there is not exactly one finite vector for each text, or they differ in width.
    """
    try:
        items = value["data"]
        order = [item.get("index", place) for place, item in enumerate(items)]
        rows = [_row(item["embedding"]) for item in items]
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ModelError(
            f"the endpoint {address.url} does not answer in the form of OpenAI's embeddings ({type(error).__name__}: "
            f"{_clean(str(error))}): check the path, which often ends with /v1"
        ) from error
    if len(rows) != count:
        raise ModelError(f"the endpoint {address.url} gave {len(rows)} vectors for {count} texts: nothing was stored")
    if any(type(place) is not int for place in order) or sorted(order) != list(range(count)):
        raise ModelError(f"the endpoint {address.url} does not say which vector is for which text: nothing was stored")
    if len({row.shape for row in rows}) != 1 or rows[0].ndim != 1 or not rows[0].size:
        raise ModelError(f"the endpoint {address.url} gave vectors of different widths: nothing was stored")
    vectors = np.empty((count, rows[0].size), np.float32)
    for place, row in zip(order, rows, strict=True):
        vectors[place] = row
    if not np.isfinite(vectors).all():
        raise ModelError(
            f"the endpoint {address.url} gave a vector that holds infinity or not-a-number: nothing was stored; its "
            "model is broken, or its precision is too low"
        )
    return vectors


def _row(embedding: Any) -> Vector:
    if isinstance(embedding, str):
        try:
            return np.frombuffer(base64.b64decode(embedding, validate=True), np.dtype("<f4")).astype(np.float32)
        except binascii.Error as error:
            raise ValueError(f"base64 that cannot be read: {error}") from error
    if not isinstance(embedding, list):
        raise TypeError("an embedding is not a list of numbers")
    if embedding and isinstance(embedding[0], list):
        raise TypeError("a list of vectors for a text: start the server with pooling")
    with np.errstate(over="ignore"):  # A number beyond float32 becomes infinity, which is refused.
        # null and text become not-a-number or an error, and never a zero.
        return np.array(embedding, dtype=np.float64).astype(np.float32)


def _message(data: bytes) -> str:
    """Return what a server says about an error, in one line for people."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _clean(data[:400].decode("utf-8", "replace")) or "no reason"
    for name in ("error", "detail", "message", "title"):
        if isinstance(value, dict) and name in value:
            value = value[name]
    return _clean(value if isinstance(value, str) else json.dumps(value))


def _clean(text: str) -> str:
    """Return text of a server for people: one short line without control characters, and without the key."""
    key = os.environ.get(KEY_VARIABLE, "")
    if key:
        text = text.replace(key, "...")
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= 200 else f"{line[:200]}..."
