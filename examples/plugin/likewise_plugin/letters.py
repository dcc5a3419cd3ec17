"""Models named letters://N. The vector of a text has N dimensions and counts the letters of the text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.kinds import Loader
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.port import Role
from indexer.encoders.recipes.recipe import Recipe, RecipeSpec
from likewise import ModelError

_FINGERPRINT = "letters-1"
"""Changes with the vectors, so that an index is never asked with other vectors than it was made with."""


class LettersEncoder:
    """Counts letters. Every character is a token."""

    max_tokens = 512

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.dimensions = recipe.dimensions

    def overhead(self, role: Role = "document") -> int:
        return 0

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [np.array([(at, at + 1) for at in range(len(text))], np.int32).reshape(-1, 2) for text in texts]

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> NDArray[np.float32]:
        rows = np.full((len(texts), self.dimensions), 1e-3, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text.casefold():
                row[ord(letter) % self.dimensions] += 1
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


class _Letters(Loader):
    def load(self, spec: RecipeSpec, runtime: Runtime) -> LettersEncoder:
        """Return the encoder of letters://N. Raises ModelError if N is not a number."""
        dimensions = spec.model.partition("://")[2]
        if not dimensions.isdecimal() or int(dimensions) < 1:
            raise ModelError(f"{spec.model}: write how many letters to count, as in letters://26")
        return LettersEncoder(Recipe(spec.model, _FINGERPRINT, int(dimensions), LettersEncoder.max_tokens))


LETTERS = _Letters()
