"""One encoder a recipe in a process, however many indexes use it."""

from __future__ import annotations

import threading

from indexer.encoders.encoder import Encoder
from indexer.encoders.recipe import Recipe

_loaded: dict[str, Encoder] = {}
_lock = threading.Lock()


def encoder_for(recipe: Recipe) -> Encoder:
    """The encoder of a stored recipe; loaded at the first call.

    Raises:
        ModelError: the model is not to be found, or has other weights than the recipe was made with.
    """
    with _lock:
        if recipe.identity not in _loaded:
            from indexer.encoders.load import load_recipe

            _loaded[recipe.identity] = load_recipe(recipe)
        return _loaded[recipe.identity]
