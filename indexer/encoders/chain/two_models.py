"""The encoder of a Router: one model for questions and another for documents, whose vectors are in one space."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.port import Encoder, Role, Tokenizing, steady
from indexer.encoders.recipes.recipe import Recipe
from indexer.records import Vector


class TwoModels(Tokenizing):
    """An `Encoder` that passes questions to one encoder and documents to another. Threads may share it."""

    def __init__(self, recipe: Recipe, questions: Encoder, documents: Callable[[], Encoder]) -> None:
        """Take the recipe of both models.

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
