"""One request to an embeddings endpoint in OpenAI's form, and checks of the answer.

The retries and the deadline are in retries.py. The content of requests and the meaning of vectors are in remote.py.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.encoders.endpoints.endpoint_address import EndpointAddress
from indexer.encoders.endpoints.named_hosts import require_named
from indexer.errors import EndpointUnavailable, ModelError
from indexer.records import Vector

if TYPE_CHECKING:
    import urllib3

KEY_VARIABLE = "LIKEWISE_API_KEY"
"""The environment variable with the key of endpoints. It is read for each request and never kept."""

MAX_ANSWER_BYTES = 256 * 2**20
"""Maximum bytes of an answer. 64 vectors of 16,384 numbers, written out, have 25 MB."""

_REJECTING = frozenset({400, 413, 422})
"""Statuses with which servers refuse texts that are too long or too many."""


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

        from indexer.encoders.endpoints.retries import PASSING, Budget, Retries, TimeLeft

        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "likewise"}
        key = os.environ.get(KEY_VARIABLE, "")
        if key:
            if not key.isprintable() or not key.isascii():
                raise ModelError(f"{KEY_VARIABLE} holds characters that a header cannot have: set it to the key alone")
            headers["Authorization"] = f"Bearer {key}"
        budget = Budget(time.monotonic() + seconds)
        path = f"{self.address.path}/embeddings"
        retries: urllib3.Retry = Retries.within(budget)
        try:
            while True:
                response = self._connections().urlopen(
                    "POST",
                    path,
                    body=body,
                    headers=headers,
                    retries=retries,
                    redirect=False,
                    timeout=TimeLeft(budget),
                    preload_content=False,
                )
                retries = response.retries or retries
                try:
                    data = _read(response, budget.deadline)
                    response.release_conn()
                except urllib3.exceptions.ProtocolError as error:
                    retries = retries.increment("POST", path, error=error)
                    retries.sleep()
                    continue
                finally:
                    response.close()  # A connection with a part of an answer in it must not be used again.
                if response.status in PASSING:
                    with suppress(urllib3.exceptions.MaxRetryError):
                        retries = retries.increment("POST", path, response=response)
                        retries.sleep(response)
                        continue
                return response.status, response.headers, data, budget.failed
        except urllib3.exceptions.HTTPError as error:
            reason = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
            raise self._failure(reason or error, budget.failed) from error

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
        from indexer.encoders.endpoints.retries import BUSY, PASSING

        if status in PASSING:
            raise self._unavailable(f"answers {status}: {_message(data)}", attempts, _BUSY if status in BUSY else _LOG)
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
