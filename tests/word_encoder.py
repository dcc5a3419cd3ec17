"""An encoder that needs no model."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from indexer.encoders import Recipe
from indexer.errors import TextTooLong

DIMENSIONS = 64


@cache
def _row(word: str) -> NDArray[np.float32]:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIMENSIONS).astype(np.float32)


@dataclass
class WordEncoder:
    """A bag of words: each is a random row of its own, a text their sum. Texts that share words are near.

    Attributes:
        seen: every text that was encoded, in order.
        ask: called with the texts before they are encoded.
    """

    name: str = "words"
    weights: str = "1"
    max_tokens: int = 32
    dimensions: int = DIMENSIONS
    seen: list[str] = field(default_factory=list)
    ask: Callable[[Sequence[str]], None] = lambda texts: None

    @property
    def recipe(self) -> Recipe:
        fingerprint = hashlib.sha256(self.weights.encode()).hexdigest()
        return Recipe(self.name, fingerprint, self.dimensions, self.max_tokens)

    def overhead(self, role: Literal["document", "query"] = "document") -> int:
        return 2

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [
            np.array([match.span() for match in re.finditer(r"\w+|[^\w\s]", text)], np.int32).reshape(-1, 2)
            for text in texts
        ]

    def encode(
        self, texts: Sequence[str], role: Literal["document", "query"] = "document", truncate: bool = False
    ) -> NDArray[np.float32]:
        self.ask(texts)
        self.seen.extend(texts)
        rows = np.empty((len(texts), self.dimensions), np.float32)
        for at, (text, tokens) in enumerate(zip(texts, self.offsets(texts), strict=True)):
            if len(tokens) + 2 > self.max_tokens and not truncate:
                raise TextTooLong(at, len(tokens) + 2, self.max_tokens)
            words = [text[start:end].casefold() for start, end in tokens[: self.max_tokens - 2]]
            rows[at] = sum((_row(word) for word in words), _row(""))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
