"""An encoder that counts tokens without its model, which is loaded when a text is to be embedded.

If all vectors come from the cache, an indexing run loads no model and imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from os import PathLike

from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.locate import find_model, fingerprint, lasting_name
from indexer.encoders.recipes.port import Encoder, Role, Tokenizing, steady
from indexer.encoders.recipes.recipe import Recipe, RecipeSpec, scheme_of
from indexer.encoders.recipes.unsuitable import refuse_unsuitable
from indexer.encoders.tokens.tokenizer import Tokenizer
from indexer.errors import Message, ModelError
from indexer.records import Vector
from likewise.cache.vector_cache import VectorCache

_CHOICES = 2
"""Version of the choices that likewise makes for a model: prompts, dimensions and the limit. The user's cache holds
recipes by request, and one that an earlier version chose is not taken for a new index."""


class DeferredEncoder(Tokenizing):
    """An `Encoder` of a known recipe and tokenizer. Threads may share it."""

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, load: Callable[[], Encoder]) -> None:
        """Defer `load`, which returns the encoder of this recipe."""
        self.recipe = recipe
        self.tokenizer, self._load = tokenizer, load
        self._lock = threading.Lock()
        self._loaded: Encoder | None = None

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return steady(self.undeferred()).encode(texts, role, truncate)

    def undeferred(self) -> Encoder:
        """Return the encoder itself. It is loaded now if it was not loaded before.

        Raises:
            ModelError: the model is not found, or no longer has the recipe.
        """
        with self._lock:
            if self._loaded is None:
                encoder = self._load()
                if not encoder.recipe.same(self.recipe):
                    raise ModelError(
                        Message(
                            f"model {self.recipe.model!r} now makes other vectors than when it was last loaded",
                            ": run likewise cache --clear, and the command again",
                        )
                    )
                self._loaded = encoder
            return self._loaded


def defer(
    load: Callable[[], Encoder],
    model: str | PathLike[str] | Recipe | RecipeSpec | Encoder,
    runtime: Runtime,
    cache: VectorCache,
) -> Encoder:
    """Return the encoder that `load` returns for this model. If its recipe and tokenizer are known, `load` is called
    later."""
    key = _key(model, runtime)
    if key is None:
        return load()
    if (known := _known(cache, key)) is not None:
        recipe, tokenizer = known
        if isinstance(model, Recipe):
            recipe = model
        counter = Tokenizer(tokenizer, recipe.max_tokens, recipe.query_prompt, recipe.document_prompt)
        return DeferredEncoder(recipe, counter, load)
    encoder = load()
    from indexer.encoders.torch.encoder import TorchEncoder

    if isinstance(encoder, TorchEncoder):
        known_now = encoder.recipe.to_json(), encoder.tokenizer.json
        cache.keep_model(key, *known_now)
        cache.keep_model(_key_of_recipe(encoder.recipe), *known_now)
    return encoder


def _known(cache: VectorCache, key: bytes) -> tuple[Recipe, str] | None:
    """Return recipe and tokenizer of a model; None if they are unknown, or if another version of likewise has written
    them."""
    if (kept := cache.model(key)) is None:
        return None
    with suppress(ModelError):
        return Recipe.from_json(kept[0]), kept[1]
    return None


def _key(model: object, runtime: Runtime) -> bytes | None:
    """Return the hash of the request and the model's files, which decide a recipe; None if loading cannot be
    deferred."""
    if runtime.trust_remote_code:
        return None
    if isinstance(model, Recipe):
        return None if scheme_of(model.model) else _key_of_recipe(model)
    spec = RecipeSpec.parse(str(model)) if isinstance(model, str | PathLike) else model
    if not isinstance(spec, RecipeSpec) or scheme_of(spec.model):
        return None
    folder = find_model(spec.model, fingerprint=spec.fingerprint)
    if spec.pooling is None and spec.layers is None:
        refuse_unsuitable(folder, spec.model)
    name = lasting_name(spec.model, spec.fingerprint)
    request = {**asdict(spec), "choices": _CHOICES, "model": name, "files": fingerprint(folder)}
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


def _key_of_recipe(recipe: Recipe) -> bytes:
    return hashlib.sha256(f"recipe {recipe.identity}".encode()).digest()
