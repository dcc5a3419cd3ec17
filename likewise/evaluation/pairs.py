"""The most similar pairs of a collection: of the texts of a file, or of the passages of an index.

The search itself is in indexer/stores/pairs.py. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexer.encoders import Encoder, Role, steady
from indexer.errors import TextTooLong
from indexer.passages.cut import titled_text
from indexer.records import Document, Vector
from indexer.stores.pairs import nearest_pairs
from indexer.stores.reading.store import Store

_BATCH_TEXTS = 16_384
"""Number of texts that are embedded at a time."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two texts of a pair.

    Attributes:
        uri: uri of a passage's document; for a text of a file, the record's id or the line's number.
        count: how often the file has exactly this text; `uri` is the first place.
        start: offset of a passage in its document, in code points.
        format: format of a passage's document.
    """

    uri: str
    text: str
    count: int = 1
    start: int = 0
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and their cosine."""

    first: Side
    second: Side
    score: float


@dataclass(frozen=True, slots=True)
class PairReport:
    """The pairs of a collection, best first.

    Attributes:
        texts: how many distinct texts, or passages, were compared.
        repeated: texts that the file has more than once, the most frequent first.
        cut: how many texts were longer than the model reads and were cut.
    """

    pairs: tuple[Pair, ...]
    texts: int
    repeated: tuple[Side, ...] = ()
    cut: int = 0


def pairs_of_texts(documents: Sequence[Document], encoder: Encoder, count: int, min_score: float = -1.0) -> PairReport:
    """Return the `count` most similar pairs of distinct texts; title and text of a document are one text.

    Args:
        min_score: leave out pairs with a lower cosine.
    """
    uris_of: dict[str, list[str]] = {}
    for document in documents:
        text = titled_text(document.title, document.text, document.format)
        uris_of.setdefault(text, []).append(document.uri)
    sides = [Side(uris[0], text, len(uris)) for text, uris in uris_of.items()]
    vectors, cut = embed([side.text for side in sides], encoder)
    nearest = nearest_pairs(vectors, count, min_score)
    rows = zip(nearest.first.tolist(), nearest.second.tolist(), nearest.scores.tolist(), strict=True)
    return PairReport(
        tuple(Pair(sides[first], sides[second], score) for first, second, score in rows),
        len(sides),
        tuple(sorted((side for side in sides if side.count > 1), key=lambda side: -side.count)),
        cut,
    )


def pairs_of_passages(store: Store, count: int, min_score: float = -1.0) -> PairReport:
    """Return the `count` most similar pairs of passages of different documents, by their stored vectors."""
    with store.snapshot() as snapshot:
        nearest = snapshot.nearest_pairs(count, min_score)
        passages = snapshot.passages_by_id([*nearest.first.tolist(), *nearest.second.tolist()])
    sides = [Side(passage.uri, passage.text, start=passage.start, format=passage.format) for passage in passages]
    rows = zip(sides[: len(nearest.first)], sides[len(nearest.first) :], nearest.scores.tolist(), strict=True)
    return PairReport(tuple(Pair(*row) for row in rows), nearest.passages)


def embed(texts: Sequence[str], encoder: Encoder) -> tuple[Vector, int]:
    """Return unit rows (n, dimensions), and the number of texts that were cut because they were too long."""
    encoder = steady(encoder)
    rows = np.empty((len(texts), encoder.dimensions), np.float32)
    cut = 0
    for start in range(0, len(texts), _BATCH_TEXTS):
        batch = texts[start : start + _BATCH_TEXTS]
        try:
            vectors = encoder.encode(batch)
        except TextTooLong:
            cut += len(too_long(encoder, batch))
            vectors = encoder.encode(batch, truncate=True)
        rows[start : start + len(batch)] = vectors
    return rows, cut


def too_long(encoder: Encoder, texts: Sequence[str], role: Role = "document") -> set[int]:
    """Return the positions of the texts that have more tokens than the model reads."""
    limit = encoder.max_tokens - encoder.overhead(role)
    return {position for position, offsets in enumerate(encoder.offsets(texts)) if len(offsets) > limit}
