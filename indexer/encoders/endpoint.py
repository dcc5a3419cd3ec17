"""One request to an embeddings endpoint in OpenAI's form: deadlines, retries, and checks of what comes back.

What is asked, and what the vectors mean, is in remote.py.
"""

from __future__ import annotations

import base64
import binascii
import email.utils
import json
import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.encoders.endpoint_address import EndpointAddress
from indexer.encoders.named_hosts import require_named
from indexer.errors import EndpointUnavailable, ModelError
from indexer.records import Vector

if TYPE_CHECKING:
    import urllib3

KEY_VARIABLE = "LIKEWISE_API_KEY"
"""The environment variable with the key of endpoints. It is read for each request and never kept."""

CONNECT_SECONDS = 10.0
MAX_ANSWER_BYTES = 256 * 2**20
"""A larger answer is refused: 64 vectors of 16,384 numbers, written out, have 25 MB."""

FIRST_PAUSE_SECONDS = 0.25
"""Pause before the second attempt; it doubles with each attempt, up to MAX_PAUSE_SECONDS, and varies by a half."""
MAX_PAUSE_SECONDS = 20.0
MAX_ATTEMPTS = 5
"""Attempts after an internal error or half of an answer, which may have the same cause each time."""
MAX_REFUSED_CONNECTIONS = 3
"""Attempts to connect where nothing listens."""
MAX_BUSY_ATTEMPTS = 100
"""Attempts after a server has said that it is busy: the deadline ends them before."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed later."""
_REJECTING = frozenset({400, 413, 422})
"""Statuses with which servers refuse texts that are too long or too many."""

_sleep = time.sleep


class Rejected(ModelError):
    """The endpoint does not accept these texts: they are too long, or too many, or it does not know a member.

    Attributes:
        answer: what it says, for people.
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
            seconds: until when the answer must be here, all attempts and pauses included.
            members: of the request, beside those of OpenAI's form.

        Raises:
            Rejected: the endpoint does not accept these texts.
            EndpointUnavailable: it cannot be reached, is too busy, or too slow.
            ModelError: it refuses the key, does not know the model, or answers with something else than vectors.
        """
        request = {"model": self.address.name, "input": list(texts), "encoding_format": "float", **(members or {})}
        body = json.dumps(request).encode()
        deadline = time.monotonic() + seconds
        attempt = 0
        while True:
            attempt += 1
            try:
                return _vectors(self._post(body, deadline), len(texts), self.address)
            except _Passing as passing:
                pause = passing.pause(attempt)
                if attempt >= passing.attempts or time.monotonic() + pause >= deadline:
                    raise EndpointUnavailable(self._unavailable(passing, attempt, seconds)) from passing
                _sleep(pause)

    def _unavailable(self, passing: _Passing, attempts: int, seconds: float) -> str:
        within = "" if attempts >= passing.attempts else f" in {seconds:.0f} seconds"
        again = f" ({attempts} attempts{within})" if attempts > 1 else ""
        return f"the endpoint {self.address.url} {passing}{again}: {passing.advice}"

    def _post(self, body: bytes, deadline: float) -> Any:
        """Return the value of the answer's JSON. Raises _Passing for what may succeed later."""
        import urllib3

        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "likewise"}
        key = os.environ.get(KEY_VARIABLE, "")
        if key:
            if not key.isprintable() or not key.isascii():
                raise ModelError(f"{KEY_VARIABLE} holds characters that a header cannot have: set it to the key alone")
            headers["Authorization"] = f"Bearer {key}"
        left = max(deadline - time.monotonic(), 0.05)
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
                pool_timeout=None,
            )
            try:
                data = _read(response, deadline)
            except BaseException:
                response.close()  # A connection with half of an answer in it must not be used again.
                raise
            response.release_conn()
        except urllib3.exceptions.NameResolutionError as error:
            raise _Passing("cannot be reached: no such host is known", _START, attempts=1) from error
        except urllib3.exceptions.NewConnectionError as error:
            raise _Passing("cannot be reached: nothing listens there", _START, MAX_REFUSED_CONNECTIONS) from error
        except urllib3.exceptions.SSLError as error:
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                raise ModelError(
                    f"the endpoint {self.address.url} does not speak TLS as this machine does "
                    f"({_clean(str(error))}): if it speaks plain HTTP, write http://"
                ) from error
            raise ModelError(
                f"the endpoint {self.address.url} has no certificate that this machine trusts "
                f"({_clean(str(error))}): set SSL_CERT_FILE to the file of its authority"
            ) from error
        except urllib3.exceptions.TimeoutError as error:
            raise _Passing("did not answer in time", _SLOW) from error
        except urllib3.exceptions.HTTPError as error:
            raise _Passing(f"ended the connection ({type(error).__name__})", _START) from error
        return self._value(response.status, response.headers, data)

    def _value(self, status: int, headers: Mapping[str, str], data: bytes) -> Any:
        if status in _PASSING:
            wait = _seconds(headers.get("Retry-After"))
            busy = status in (429, 503)
            attempts = MAX_BUSY_ATTEMPTS if busy else MAX_ATTEMPTS
            raise _Passing(f"answers {status}: {_message(data)}", _BUSY if busy else _LOG, attempts, wait)
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
        if status in _REJECTING:
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
                f"the endpoint {self.address.url} answers with something else than JSON, or with a part of it: check "
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


class _Passing(Exception):
    """Something that may pass, as the predicate of a sentence about the endpoint."""

    def __init__(self, message: str, advice: str, attempts: int = MAX_ATTEMPTS, wait: float | None = None) -> None:
        super().__init__(message)
        self.advice, self.attempts, self.wait = advice, attempts, wait

    def pause(self, attempt: int) -> float:
        """Return how many seconds to wait after this many attempts: what the server asks for, or more each time."""
        if self.wait is not None:
            return max(self.wait, FIRST_PAUSE_SECONDS)
        longest = min(FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1), MAX_PAUSE_SECONDS)
        return longest * random.uniform(0.5, 1)


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """Return the body, however slowly it comes, until the deadline."""
    data = bytearray()
    while block := response.read1(2**16):
        data += block
        if len(data) > MAX_ANSWER_BYTES:
            raise ModelError(f"an endpoint answered with more than {MAX_ANSWER_BYTES // 2**20} MB: nothing was kept")
        if time.monotonic() > deadline:
            raise _Passing("did not answer in time", _SLOW)
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
        raise ModelError(f"the endpoint {address.url} does not say which vector is of which text: nothing was stored")
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
    with np.errstate(over="ignore"):  # A number beyond float32 becomes infinity, which is refused.
        # null and text become not-a-number or an error, and never a zero.
        return np.array(embedding, dtype=np.float64).astype(np.float32)


def _seconds(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait: a number, or the time of a date; None without one."""
    if header is None:
        return None
    try:
        return float(header) if header.strip()[:1].isdigit() else _until(header)
    except (ValueError, TypeError, OverflowError):
        return None


def _until(date: str) -> float:
    when: float = email.utils.parsedate_to_datetime(date).timestamp()
    return max(when - time.time(), 0.0)


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
