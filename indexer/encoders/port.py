"""The port between texts and vectors. What implements it lives in the files beside this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipe import Recipe
from indexer.records import Vector

Role = Literal["document", "query"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into unit vectors, and counts tokens as its model does."""

    @property
    def recipe(self) -> Recipe: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Tokens the model reads of one text, special tokens and prompt counted."""

    def overhead(self, role: Role = "document") -> int:
        """Tokens that every text of this role costs: special tokens and the prompt's own."""

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Code-point spans (tokens, 2) of each text's own tokens: no special tokens, no prompt, no cut."""

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        """Unit rows (n, dimensions), float32.

        Raises:
            TextTooLong: a text is over `max_tokens` and `truncate` is False.
        """


@runtime_checkable
class Switching(Protocol):
    """An encoder that may hand many documents to another runtime, and may measure first which one is faster."""

    def steady(self) -> Encoder:
        """The same encoder on its own runtime alone."""


def steady(encoder: Encoder) -> Encoder:
    """`encoder` so that it never measures nor switches its runtime: for everything but embedding documents."""
    return encoder.steady() if isinstance(encoder, Switching) else encoder
