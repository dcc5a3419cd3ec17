"""The folder of compiled encoders in the user's cache folder."""

from __future__ import annotations

from pathlib import Path

from indexer.encoders.machine.hardware import Precision
from indexer.encoders.machine.user_folders import cache_folder
from indexer.encoders.recipes.recipe import Recipe


def kept_folder(recipe: Recipe, precision: Precision = "auto") -> Path:
    """Return the folder of the compiled encoder of a recipe and a precision. The folder may not exist."""
    return cache_folder() / "compiled" / f"{recipe.identity}-{precision}"
