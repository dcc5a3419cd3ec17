"""The interface of all encoders. The encoders on torch are in torch/, the compiled encoder is in openvino/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.recipe import Recipe
from indexer.records import Vector

Role = Literal["document", "query"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into unit vectors, and counts tokens as its model does. Threads may share it."""

    @property
    def recipe(self) -> Recipe:
        """The recipe of its vectors."""

    @property
    def dimensions(self) -> int:
        """Dimensions of its vectors."""

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of one text, special tokens and prompt counted."""

    def overhead(self, role: Role = "document") -> int:
        """Return how many tokens special tokens and prompt add to every text of this role."""

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Return where the tokens of each text begin and end, without special tokens, prompt or truncation.

        Returns:
            One array (tokens, 2) of int32 per text: offsets in code points.
        """

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        """Return unit rows (texts, dimensions), float32.

        Args:
            role: role of the texts, which decides which prompt of the recipe is put before each text.
            truncate: leave out the end of a text that is too long.

        Raises:
            TextTooLong: a text has more than `max_tokens` tokens and `truncate` is False.
            BadInput: a text is empty, or is not a string.
            NothingKnown: the model knows no token of a text.
        """


class Counter(Protocol):
    """Counts tokens: a tokenizer, another encoder, or an estimate from the characters."""

    def overhead(self, role: Role = "document") -> int:
        """As in `Encoder`."""

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """As in `Encoder`."""


class Tokenizing:
    """The members of an `Encoder` that its recipe and its tokenizer answer, whatever computes the vectors."""

    __slots__ = ()
    recipe: Recipe
    tokenizer: Counter

    @property
    def dimensions(self) -> int:
        return self.recipe.dimensions

    @property
    def max_tokens(self) -> int:
        return self.recipe.max_tokens

    def overhead(self, role: Role = "document") -> int:
        return self.tokenizer.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.tokenizer.offsets(texts)


@runtime_checkable
class RoleSpecific(Protocol):
    """An encoder that has one encoder for questions and another for documents."""

    def of_role(self, role: Role) -> Encoder:
        """Return the encoder of texts of this role."""


def of_role(encoder: Encoder, role: Role) -> Encoder:
    """Return the encoder of texts of a role, which knows their tokens and their limit."""
    return encoder.of_role(role) if isinstance(encoder, RoleSpecific) else encoder


@runtime_checkable
class Deferred(Protocol):
    """An encoder whose model may not be loaded yet."""

    def undeferred(self) -> Encoder:
        """Return the encoder itself. Its model is loaded now if it was not loaded before."""


def loaded(encoder: Encoder) -> Encoder:
    """Return the encoder that a deferred encoder stands for; other encoders are returned as they are."""
    return encoder.undeferred() if isinstance(encoder, Deferred) else encoder


@runtime_checkable
class Switching(Protocol):
    """An encoder that may pass many documents to another runtime."""

    def steady(self) -> Encoder:
        """Return the same encoder, which then uses only its own runtime."""


def steady(encoder: Encoder) -> Encoder:
    """Return an encoder that never changes its runtime. Only documents are embedded with an encoder that may change
    it."""
    return encoder.steady() if isinstance(encoder, Switching) else encoder
