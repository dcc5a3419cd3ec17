"""One encoder a recipe in a process, however many indexes use it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from indexer.encoders.hardware import Precision
from indexer.encoders.port import Encoder, steady
from indexer.encoders.recipe import Recipe
from indexer.errors import ModelError
from indexer.notes import Note

_loaded: dict[str, Encoder] = {}
"""By the recipe's identity, and what was asked for besides."""
_compiled: dict[str, Encoder] = {}
_lock = threading.RLock()


def _renew_lock() -> None:
    """In the child of a fork: another thread of the parent may have held it."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def encoder_for(
    recipe: Recipe,
    post_parameters: bytes | None = None,
    precision: Precision = "auto",
    device: str = "auto",
    trust_remote_code: bool = False,
) -> Encoder:
    """The encoder of a stored recipe, for embedding many texts; loaded at the first call.

    Shared where the precision is left to the hardware: another one is for whoever asked for it.

    Raises:
        ModelError: the model is not to be found, or has other weights than the recipe was made with.
    """
    key = _key(recipe, device, trust_remote_code)
    with _lock:
        encoder = _loaded.get(key) if precision == "auto" else None
        if encoder is None:
            from indexer.encoders.load import load_recipe

            encoder = load_recipe(
                recipe, post_parameters, precision=precision, device=device, trust_remote_code=trust_remote_code
            )
            if precision == "auto":
                _loaded[key] = encoder
        return encoder


def _key(recipe: Recipe, device: str, trust_remote_code: bool) -> str:
    asked = () if (device, trust_remote_code) == ("auto", False) else (device, str(trust_remote_code))
    return " ".join((recipe.identity, *asked))


def query_encoder(
    recipe: Recipe,
    compiled: Path,
    post_parameters: Callable[[], bytes | None],
    trust_remote_code: bool = False,
    *,
    note: Note,
) -> Encoder:
    """The encoder of a stored recipe, for questions: one that this process has, or the compiled one, or torch's.

    It never measures nor switches its runtime, even where it is shared with who embeds documents.

    Args:
        note: is told that `compiled` is there and cannot be used; torch answers instead.
    """
    with _lock:
        any_loaded = (encoder for key, encoder in _loaded.items() if key.split()[0] == recipe.identity)
        known = next(any_loaded, None) or _compiled.get(recipe.identity)
        if known is None and compiled.is_dir():
            from indexer.encoders.openvino.encoder import CompiledEncoder

            try:
                known = CompiledEncoder.open(compiled)
                if not known.recipe.same(recipe):
                    raise ModelError(f"{compiled} is of another recipe: compile it again")
                _compiled[recipe.identity] = known
            except ModelError as error:
                known = None
                note(f"{error}; torch is used meanwhile")
        return steady(known or encoder_for(recipe, post_parameters(), trust_remote_code=trust_remote_code))
