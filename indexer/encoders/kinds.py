"""Kinds of models: what loads a model whose name begins with a scheme, SCHEME://.

A name without a scheme is a folder or a model on the hub: load.py loads it. Loaders come from parts of likewise, and
from packages of others by the entry point `likewise.encoders`.
"""

from __future__ import annotations

from typing import Protocol

from indexer.doors import find
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.recipes.recipe import Recipe, RecipeSpec, scheme_of, spec_of
from indexer.errors import ModelError, to_install


class Loader(Protocol):
    """Loads the models of a scheme. A subclass must have `load`. Encoders of a loader are never compiled.

    Attributes:
        uses_runtime: whether encoders differ by the runtime that is asked for.
    """

    uses_runtime: bool = True

    def load(self, spec: RecipeSpec, runtime: Runtime) -> Encoder:
        """Return the encoder of a model that somebody names.

        Args:
            spec: the request. Its `model` is the whole name, with the scheme.
            runtime: how the encoder should compute.

        Returns:
            An encoder. Its recipe has the name as its model, and a fingerprint that changes with the vectors.

        Raises:
            ModelError: there is no such model, or it cannot do what the request asks.
        """

    def open(self, recipe: Recipe, runtime: Runtime) -> Encoder:
        """Return the encoder of a recipe that an index stores. Raises ModelError if its vectors have changed."""
        return require_fingerprint(self.load(spec_of(recipe), runtime), recipe)

    def stored_name(self, model: str) -> str:
        """Return the name of a model as its recipe has it. Raises ModelError if the name makes no sense."""
        return model

    def allow(self, model: str) -> None:
        """Record that a user has named this model for an index. Opening an index does not call this."""
        return


def loader_of(model: str) -> Loader | None:
    """Return the loader of a model; None for a name without a scheme. Raises ModelError if the loader is missing."""
    scheme = scheme_of(model)
    loader: Loader | None = find("encoders", scheme) if scheme else None
    if scheme and loader is None:
        raise ModelError(
            f"a model named {scheme}://... needs a part of likewise, or another package, that is not installed: "
            f"{to_install()}, or the package that loads such models"
        )
    return loader


def allow_model(model: object) -> None:
    """Let the loader of a model record that this user has named it. Models without a loader are ignored.

    Args:
        model: as the user gave it: a name or the spec of a recipe. The recipe of an index names nothing.

    Raises:
        ModelError: the name makes no sense, or its loader is missing.
        StorageError: the record cannot be written.
    """
    name = model.model if isinstance(model, RecipeSpec) else model
    if isinstance(name, str) and (loader := loader_of(name)) is not None:
        loader.allow(name)


def require_fingerprint(encoder: Encoder, recipe: Recipe) -> Encoder:
    """Return an encoder. Raises ModelError unless the vectors of a stored recipe were made with its files."""
    if encoder.recipe.fingerprint != recipe.fingerprint:
        raise ModelError(
            f"model {recipe.model!r} has other files ({encoder.recipe.fingerprint[:12]}...) than the "
            f"vectors were made with ({recipe.fingerprint[:12]}...): restore them, or embed again"
        )
    return encoder
