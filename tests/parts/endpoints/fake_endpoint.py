"""A server in OpenAI's embeddings form that can be slow, refuse, lie and break."""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 32


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


@dataclass
class FakeEndpoint:
    """The behaviour of the server. Its model is a bag of words: a text is the sum of a random row for each of its
    words.

    Attributes:
        answer: called with the number of a request (from 0) and the right answer; returns a status, headers and a body
            (an object becomes JSON, bytes stay as they are, pieces of an iterator are sent one by one).
        limit: words that the model reads; a longer text is refused, or cut if `cuts`.
        refusal: status and body for a text over the limit.
        requests: the JSON of every request.
        keys: the Authorization header of every request.
    """

    address: str = ""
    model: str = "one"
    width: int = WIDTH
    limit: int = 10_000
    cuts: bool = False
    refusal: tuple[int, Any] = (400, {"error": {"message": "this model's maximum context length is 512 tokens"}})
    most_texts: int = 10_000
    encoding: str = "float"
    honours_input_type: bool = False
    answer: Callable[[int, dict[str, Any]], tuple[int, dict[str, str], Any]] = lambda number, right: (200, {}, right)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request["input"]]

    def vector(self, text: str, role: str = "document") -> NDArray[np.float32]:
        """The vector of a text, with a length of its own: it is not a unit row."""
        words = words_of(text)[: self.limit]
        if self.honours_input_type and role == "query":
            words = ["question", "question", *words]
        seeds = [zlib.crc32(f"{self.model} {word}".encode()) for word in words]
        rows = [np.random.default_rng(seed).normal(size=self.width) for seed in seeds]
        return np.sum(rows, axis=0).astype(np.float32) if rows else np.zeros(self.width, np.float32)

    def unit(self, text: str) -> NDArray[np.float32]:
        row = self.vector(text)
        return row / np.linalg.norm(row)

    def right_answer(self, request: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        texts = request["input"]
        if len(texts) > self.most_texts:
            return 422, {}, {"error": f"batch size {len(texts)} > maximum allowed batch size {self.most_texts}"}
        if not self.cuts and any(len(words_of(text)) > self.limit for text in texts):
            return self.refusal[0], {}, self.refusal[1]
        rows = [self.vector(text, request.get("input_type", "document")) for text in texts]
        data = [
            {
                "object": "embedding",
                "index": place,
                "embedding": base64.b64encode(row.astype("<f4").tobytes()).decode()
                if self.encoding == "base64"
                else row.tolist(),
            }
            for place, row in enumerate(rows)
        ]
        return 200, {}, {"object": "list", "data": data, "model": request["model"]}


@contextmanager
def serve(fake: FakeEndpoint) -> Iterator[FakeEndpoint]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # One packet per answer: a second one would wait for the acknowledgement of the first.

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = len(fake.requests)
            fake.requests.append(request)
            fake.keys.append(self.headers["Authorization"])
            status, headers, body = fake.right_answer(request)
            if status == 200:
                status, headers, body = fake.answer(number, body)
            pieces = body if isinstance(body, Iterator) else ()
            data = b"" if pieces else body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(data))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
            if int(headers.get("Content-Length", "0")) > len(data):
                self.close_connection = True

        def log_message(self, format: str, *arguments: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    fake.address = f"http://127.0.0.1:{server.server_address[1]}/v1#{fake.model}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
