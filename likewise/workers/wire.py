"""The messages between a run and its workers: a JSON object and rows of float32. Nothing is pickled.

A worker answers one request after the other. The first request has an `Embedder`, whose recipe and probe vector the
worker returns. Each further request has documents, without the metadata, which nobody embeds.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

import numpy as np

from indexer.encoders import Recipe
from indexer.encoders.machine.runtime import Runtime
from indexer.errors import LikewiseError
from indexer.exchange import Embedded
from indexer.indexing.embedder import Embedder
from indexer.passages.cut import PassageSettings
from indexer.records import Document, Section, Span, Vector


def pack(message: dict[str, Any], rows: Vector | None = None) -> bytes:
    """Return a message as bytes; `rows` (n, dimensions) follow it."""
    text = json.dumps(message).encode()
    return struct.pack("<I", len(text)) + text + (b"" if rows is None else rows.astype("<f4").tobytes())


def unpack(data: bytes) -> tuple[dict[str, Any], Vector]:
    """Return a message and its rows as one array of numbers (n * dimensions,)."""
    end = 4 + struct.unpack_from("<I", data)[0]
    return json.loads(data[4:end]), np.frombuffer(memoryview(data)[end:], "<f4")


def pack_embedder(embedder: Embedder) -> bytes:
    return pack(
        {
            "recipe": embedder.recipe.to_json(),
            "passages": asdict(embedder.passages),
            "runtime": asdict(embedder.runtime),
        }
    )


def unpack_embedder(message: dict[str, Any]) -> Embedder:
    return Embedder(
        Recipe.from_json(message["recipe"]),
        PassageSettings(**message["passages"]),
        runtime=Runtime(**message["runtime"]),
    )


def pack_documents(documents: Sequence[Document]) -> bytes:
    fields = [
        (each.uri, each.text, each.title, each.format, [astuple(part) for part in each.sections]) for each in documents
    ]
    return pack({"documents": fields})


def unpack_documents(message: dict[str, Any]) -> list[Document]:
    return [
        Document(uri, text, title, format=format_, sections=tuple(Section(*part) for part in sections))
        for uri, text, title, format_, sections in message["documents"]
    ]


def pack_embedded(embedded: Sequence[Embedded], notes: Sequence[str]) -> bytes:
    passages = [[astuple(span) for span in item.spans] for item in embedded]
    rows = [item.vectors for item in embedded if item.spans]
    recipe = embedded[0].recipe if embedded else ""
    message = {"recipe": recipe, "passages": passages, "too_long": [item.too_long for item in embedded], "notes": notes}
    return pack(message, np.concatenate(rows) if rows else None)


def unpack_embedded(message: dict[str, Any], numbers: Vector) -> list[Embedded]:
    """Return passages with their rows. Raises ValueError if the numbers do not make one row of one width for each."""
    counts = [len(spans) for spans in message["passages"]]
    rows = np.split(numbers.reshape(sum(counts), -1) if any(counts) else numbers.reshape(0, 0), np.cumsum(counts)[:-1])
    return [
        Embedded(tuple(Span(*span) for span in spans), own, message["recipe"], too_long=too_long)
        for spans, own, too_long in zip(message["passages"], rows, message["too_long"], strict=True)
    ]


class Answering:
    """The work of a worker: it answers requests. Its first request says what it embeds with."""

    def __init__(self) -> None:
        self._embedder: Embedder | None = None

    def answer(self, request: bytes) -> bytes:
        """Return the answer to a request, or the error that it ended with."""
        message, _ = unpack(request)
        try:
            if self._embedder is None:
                self._embedder = unpack_embedder(message)
                probe = self._embedder.probe()
                recipe = self._embedder.encoder.recipe
                return pack({"fingerprint": recipe.fingerprint}, probe)
            embedded = self._embedder.embed(unpack_documents(message))
            return pack_embedded(embedded, self._embedder.notes)
        except LikewiseError as error:
            return pack({"error": type(error).__name__, "message": str(error)})
        except Exception as error:  # noqa: BLE001 a library may raise anything: the run then replaces this worker
            return pack({"lost": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"})
