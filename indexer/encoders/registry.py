"""Encoders that a process shares: one per recipe, however many indexes use it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Protocol

from indexer.encoders.kinds import Loader, loader_of
from indexer.encoders.machine.hardware import named_threads
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.port import Encoder, steady
from indexer.encoders.recipes.recipe import Recipe, RecipeSpec
from indexer.errors import BadInput, ModelError

_loaded: dict[str, Encoder] = {}
"""Loaded encoders, by the recipe's identity and everything in the runtime that is not the default."""
_compiled: dict[str, Encoder] = {}
"""Encoders that were opened from an index's folder, by the recipe's identity."""
_lock = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock in the child of a fork: another thread of the parent may have held it."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


Model = str | PathLike[str] | Recipe | RecipeSpec | Encoder
"""A model as a caller names it: a name, a folder, a recipe, its text, an endpoint's address or an encoder."""


class KnownModels(Protocol):
    """Models that were loaded before."""

    def deferred(self, load: Callable[[], Encoder], model: Model, runtime: Runtime) -> Encoder:
        """Return the encoder that `load` returns for a model. If its recipe and tokenizer are known, `load` is called
        when the first text is embedded."""


def get_encoder(model: Model, runtime: Runtime | None = None, models: KnownModels | None = None) -> Encoder:
    """Return the encoder of a model, however the model is named, for embedding many texts.

    Args:
        model: a name, a folder, a recipe's text, an encoder, or the recipe that an index stores. The encoder of a
            stored recipe is shared by the process, unless the caller names a precision.
        models: known models, which are loaded only when the first text is embedded. None loads every model now.

    Raises:
        BadInput: `model` is not one of these.
        ModelError: the model is not found, or has other weights than the stored recipe was made with.
    """
    runtime = runtime or Runtime()
    if isinstance(model, Recipe) and model.question is not None:
        return _get_two(model, runtime, models)
    if models is not None:
        return models.deferred(lambda: get_encoder(model, runtime), model, runtime)
    if isinstance(model, Recipe):
        return _get_stored(model, runtime)
    if isinstance(model, RecipeSpec | str | PathLike):
        return _load_spec(RecipeSpec.of(model), runtime)
    if not hasattr(model, "encode"):
        raise BadInput(f"model {model!r:.80} is not a name, folder, recipe or encoder")
    return model


def get_query_encoder(
    recipe: Recipe, compiled: Path, trust_remote_code: bool = False, threads: int | None = None
) -> tuple[Encoder, tuple[str, ...]]:
    """Return an encoder of a stored recipe for questions: a loaded encoder, the compiled encoder, or torch's encoder.

    It never changes its runtime, even if the process also embeds documents with it.

    Args:
        compiled: the folder of the compiled encoder; it need not exist.
        threads: number of threads of the compiled encoder, if this call opens it and OMP_NUM_THREADS names none. None
            is one per core.

    Returns:
        The encoder, and notes: a note if `compiled` exists but cannot be used, so that torch answers instead.

    Raises:
        ModelError: the model is not found, or has other weights than the recipe was made with.
    """
    if recipe.question is not None:
        return _get_two_for_questions(recipe, compiled, trust_remote_code, threads)
    if (loader := loader_of(recipe.model)) is not None:
        return steady(_get_opened(loader, recipe, Runtime(trust_remote_code=trust_remote_code))), ()
    notes: tuple[str, ...] = ()
    with _lock:
        loaded = (encoder for key, encoder in _loaded.items() if key.split()[0] == recipe.identity)
        encoder = next(loaded, None) or _compiled.get(recipe.identity)
        if encoder is None and compiled.is_dir():
            from indexer.encoders.openvino.encoder import CompiledEncoder

            try:
                encoder = CompiledEncoder.open(compiled, threads=named_threads() or threads)
                if not encoder.recipe.same(recipe):
                    raise ModelError(f"{compiled} is of another recipe: compile it again")
                _compiled[recipe.identity] = encoder
            except ModelError as error:
                encoder = None
                notes = (f"{error}; torch is used for now",)
        if encoder is None:
            encoder = _get_stored(recipe, Runtime(trust_remote_code=trust_remote_code))
        return steady(encoder), notes


def _get_two(recipe: Recipe, runtime: Runtime, models: KnownModels | None) -> Encoder:
    """Return the encoder of a stored recipe of two models."""
    from indexer.encoders.chain.two_models import TwoModels

    documents = get_encoder(recipe.for_documents, runtime, models)
    # The caller's precision and runtime are for many documents.
    for_questions = Runtime(device=runtime.device, trust_remote_code=runtime.trust_remote_code)
    questions = get_encoder(recipe.for_questions, for_questions, models)
    return TwoModels(recipe, questions, lambda: documents)


def _get_two_for_questions(
    recipe: Recipe, compiled: Path, trust_remote_code: bool, threads: int | None
) -> tuple[Encoder, tuple[str, ...]]:
    """Return the encoder of two models that a stored recipe names, of which only that of questions is loaded now."""
    from indexer.encoders.chain.two_models import TwoModels

    questions, notes = get_query_encoder(recipe.for_questions, compiled, trust_remote_code, threads)
    runtime = Runtime(trust_remote_code=trust_remote_code)
    return TwoModels(recipe, questions, lambda: _get_stored(recipe.for_documents, runtime)), notes


def _get_stored(recipe: Recipe, runtime: Runtime) -> Encoder:
    """Return the process's encoder of a stored recipe; the first call loads it."""
    if (loader := loader_of(recipe.model)) is not None:
        return _get_opened(loader, recipe, runtime)
    shared = runtime.precision == "auto"
    key = _key(recipe, runtime)
    with _lock:
        encoder = _loaded.get(key) if shared else None
        if encoder is None:
            from indexer.encoders.load import load_recipe

            encoder = load_recipe(recipe, runtime)
            if shared:
                _loaded[key] = encoder
        return encoder


def _get_opened(loader: Loader, recipe: Recipe, runtime: Runtime) -> Encoder:
    """Return the process's encoder of a model that has a loader; the first call opens it."""
    chosen = _key(recipe, runtime) if loader.uses_runtime else recipe.identity
    key = f"{chosen} {recipe.model}"  # One model may be at several addresses, and each must be allowed.
    with _lock:
        encoder = _loaded.get(key)
    if encoder is None:
        opened = loader.open(recipe, runtime)  # Without the lock: a slow endpoint must not hold up other models.
        with _lock:
            encoder = _loaded.setdefault(key, opened)
    return encoder


def _key(recipe: Recipe, runtime: Runtime) -> str:
    options = (runtime.device, str(runtime.trust_remote_code), runtime.name)
    return recipe.identity if options == ("auto", "False", "auto") else " ".join((recipe.identity, *options))


def _load_spec(spec: RecipeSpec, runtime: Runtime) -> Encoder:
    from indexer.encoders.load import load_spec

    return load_spec(spec, runtime)
