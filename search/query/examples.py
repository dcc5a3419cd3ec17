"""Examples: documents that the hits shall be like, or unlike, as one vector with the question (Rocchio 1971)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexer.errors import BadInput
from indexer.records import Vector
from indexer.stores.vectors import unit_rows

QUESTION_WEIGHT = 1.0
"""Weight of the question in the mean with the liked documents, each of which has the weight 1."""

UNLIKED_WEIGHT = 0.25
"""Share of the mean of the unliked documents that is subtracted. docs/measured.md has the measurement."""


def read_uris(name: str, uris: object) -> tuple[str, ...]:
    """Return the uris of examples, each once.

    Args:
        name: "like" or "unlike", for the message.

    Raises:
        BadInput: this is not a list of strings.
    """
    if isinstance(uris, str) or not isinstance(uris, Sequence) or not all(isinstance(uri, str) for uri in uris):
        raise BadInput(f'{name} is {uris!r:.80}: give a list of uris, such as {name}=["notes/bread.txt"]')
    return tuple(dict.fromkeys(uris))


def with_examples(question: Vector | None, liked: Sequence[Vector], unliked: Sequence[Vector]) -> Vector:
    """Return the vector of a question with examples (dimensions,), of length 1.

    Args:
        question: unit vector (dimensions,), if there is a question.
        liked, unliked: the vectors of the passages of each document (passages, dimensions).

    Raises:
        BadInput: the vectors cancel each other.
    """
    means = [_mean(rows) for rows in liked]
    weights = [1.0] * len(means)
    if question is not None:
        means, weights = [*means, question], [*weights, QUESTION_WEIGHT]
    vector = np.average(means, axis=0, weights=weights)
    if unliked:
        vector -= UNLIKED_WEIGHT * np.mean([_mean(rows) for rows in unliked], axis=0)
    row: Vector = unit_rows(vector[None].astype(np.float32), len(vector), ["the question with its examples"])[0]
    return row


def _mean(rows: Vector) -> Vector:
    mean: Vector = unit_rows(rows.mean(axis=0, keepdims=True), rows.shape[1], ["the example"])[0]
    return mean
