"""The most similar pairs of a collection: of the texts of a file, or of the passages of an index.

The search itself is indexer/stores/pairs.py's. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexer.encoders import Encoder, Recipe, steady
from indexer.errors import TextTooLong
from indexer.records import Document, Vector
from indexer.stores.pairs import nearest_pairs
from indexer.stores.port import Store

_TOGETHER = 16_384
"""Texts embedded at a time."""


@dataclass(frozen=True, slots=True)
class Text:
    """One side of a pair.

    Attributes:
        uri: of a file's text the record's id or the number of its line, of a passage that of its document.
        count: how often the file has exactly this text; `uri` is then the first.
        start: where a passage begins in its document, in code points.
    """

    uri: str
    text: str
    count: int = 1
    start: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    first: Text
    second: Text
    score: float


@dataclass(frozen=True, slots=True)
class Report:
    """The pairs of a collection, best first.

    Attributes:
        texts: how many distinct texts, or passages, were compared.
        repeated: texts that the file has more than once, the most frequent first.
        cut: texts that were longer than the model reads, and were cut there.
    """

    pairs: tuple[Pair, ...]
    texts: int
    repeated: tuple[Text, ...] = ()
    cut: int = 0


def pairs_of_texts(
    documents: Sequence[Document], encoder: Encoder, recipe: Recipe, count: int, min_score: float = -1.0
) -> Report:
    """The `count` most similar pairs of distinct texts; title and text of a document are one text.

    Args:
        recipe: of `encoder`, or one that still asks for post-processing, which is fitted to these texts.
    """
    known: dict[str, list[str]] = {}
    for document in documents:
        known.setdefault(f"{document.title} {document.text}".strip(), []).append(document.uri)
    texts = [Text(uris[0], text, len(uris)) for text, uris in known.items()]
    vectors, cut = embed([each.text for each in texts], encoder, recipe)
    return Report(
        tuple(Pair(texts[first], texts[second], score) for first, second, score in _nearest(vectors, count, min_score)),
        len(texts),
        tuple(sorted((each for each in texts if each.count > 1), key=lambda each: -each.count)),
        cut,
    )


def pairs_of_passages(store: Store, count: int, min_score: float = -1.0) -> Report:
    """The `count` most similar pairs of passages of different documents, by their vectors as stored."""
    with store.snapshot() as snapshot:
        found = snapshot.nearest_pairs(count, min_score)
        wanted = [*found.first.tolist(), *found.second.tolist()]
        sides = [Text(each.uri, each.text, start=each.start) for each in snapshot.passages_by_id(wanted)]
    halves = zip(sides[: len(found.first)], sides[len(found.first) :], found.scores.tolist(), strict=True)
    return Report(tuple(Pair(*pair) for pair in halves), found.passages)


def embed(texts: Sequence[str], encoder: Encoder, recipe: Recipe) -> tuple[Vector, int]:
    """Unit rows (n, dimensions) of `recipe`, and how many texts were cut at what the model reads."""
    encoder = steady(encoder)
    rows = np.empty((len(texts), encoder.dimensions), np.float32)
    cut = 0
    for start in range(0, len(texts), _TOGETHER):
        some = texts[start : start + _TOGETHER]
        try:
            vectors = encoder.encode(some)
        except TextTooLong:
            cut += too_long(encoder, some)
            vectors = encoder.encode(some, truncate=True)
        rows[start : start + len(some)] = vectors
    if recipe.fitted or recipe.post is None:
        return rows, cut
    from indexer.encoders import fit_post

    return fit_post(encoder, rows, recipe.post, recipe.dimensions).apply(rows), cut


def too_long(encoder: Encoder, texts: Sequence[str]) -> int:
    """How many texts have more tokens than the model reads."""
    room = encoder.max_tokens - encoder.overhead()
    return sum(len(spans) > room for spans in encoder.offsets(texts))


def _nearest(vectors: Vector, count: int, min_score: float) -> list[tuple[int, int, float]]:
    found = nearest_pairs(vectors, count, min_score)
    return list(zip(found.first.tolist(), found.second.tolist(), found.scores.tolist(), strict=True))
