"""An encoder of two models whose vectors are in one space: a small model for questions, a large one for documents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.port import Encoder, Role, Tokenizing, steady
from indexer.encoders.recipes.recipe import Recipe
from indexer.errors import ModelError
from indexer.records import Vector

_SPACE_TEXTS = (
    *("How do vaccines work?", "The bank robber was seen fishing on the river.", "A recipe for bread with olives"),
    *("Why do some stars explode?", "The court dismissed the appeal.", "Install the package with pip"),
    *("Two dogs run through the snow.", "Interest rates rose in March.", "She plays the flute in an orchestra."),
    *("The train to the airport is late.", "Wie wird das Wetter in den Bergen?", "История города", "東京の公園の桜"),
)
"""Texts of different subjects. Both models embed them, one as questions and the other as documents."""

MIN_NEAREST = 0.5
"""Minimum share of the texts whose own document must be the nearest to them. Models of two spaces reach about 0.08."""


class TwoModels(Tokenizing):
    """An `Encoder` that passes questions to one encoder and documents to another. Threads may share it."""

    def __init__(self, recipe: Recipe, questions: Encoder, documents: Callable[[], Encoder]) -> None:
        """Use `pair`, or this for the recipe that an index stores.

        Args:
            documents: returns the encoder of documents; called when it is first needed. A search needs it only to
                explain hits.
        """
        self.recipe = recipe
        self._questions, self._load = questions, documents
        self._documents: Encoder | None = None
        self._lock = threading.Lock()

    def of_role(self, role: Role) -> Encoder:
        """Return the encoder of questions or of documents."""
        if role == "query":
            return self._questions
        with self._lock:
            if self._documents is None:
                self._documents = self._load()
            return self._documents

    def overhead(self, role: Role = "document") -> int:
        return self.of_role(role).overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Return the tokens of texts as the model of documents reads them."""
        return self.of_role("document").offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return self.of_role(role).encode(texts, role, truncate)

    def steady(self) -> TwoModels:
        """Return the same encoder, which never changes its runtime."""
        return TwoModels(self.recipe, steady(self._questions), lambda: steady(self.of_role("document")))


def pair(documents: Encoder, questions: Encoder, *, trained_together: bool = False) -> TwoModels:
    """Return the encoder of a new recipe of two models.

    Args:
        trained_together: one folder holds both models, so that their spaces are not compared.

    Raises:
        ModelError: the vectors of the two models differ in width, or are not in one space.
    """
    ours, theirs = documents.recipe, questions.recipe
    if ours.dimensions != theirs.dimensions:
        raise ModelError(
            f"{theirs} gives questions {theirs.dimensions} dimensions, and {ours} gives documents {ours.dimensions}: "
            "take two models that were trained together"
        )
    if not trained_together and (share := _nearest(documents, questions)) < MIN_NEAREST:
        raise ModelError(
            f"{theirs} and {ours} do not embed into one space: of {len(_SPACE_TEXTS)} sentences, {share:.0%} are "
            "nearest to themselves; take two models that were trained together"
        )
    return TwoModels(replace(ours, question=theirs), questions, lambda: documents)


def _nearest(documents: Encoder, questions: Encoder) -> float:
    """Return the share of the texts that both models read, as questions, to which the same text is the nearest
    document."""
    texts = [
        text
        for text, *spans in zip(
            _SPACE_TEXTS, documents.offsets(_SPACE_TEXTS), questions.offsets(_SPACE_TEXTS), strict=True
        )
        if all(map(len, spans))
    ]
    if len(texts) < 2:
        return 0.0
    rows = questions.encode(texts, "query", True), documents.encode(texts, "document", True)
    # A prompt moves all questions in one direction, which says nothing about the subjects.
    asked, answers = (side - side.mean(axis=0) for side in rows)
    cosines = asked @ (answers / np.linalg.norm(answers, axis=1, keepdims=True)).T
    return float((cosines.argmax(axis=1) == np.arange(len(texts))).mean())
