"""Compiled encoders in the user's cache folder: the next index of a recipe takes them, and compiles none."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from indexer.encoders.machine.user_folders import cache_folder
from indexer.encoders.openvino.files import damage
from indexer.encoders.openvino.kept import kept_folder
from indexer.encoders.recipes.recipe import Recipe


def remove_kept() -> None:
    """Remove all compiled encoders and converted models of this user, except what another process is making, with
    its locks."""
    for folder in (*cache_folder().glob("compiled/[!.]*-*"), *cache_folder().glob("models/[!.]*-*")):
        shutil.rmtree(folder, ignore_errors=True)


def take_kept(recipe: Recipe, folder: Path) -> bool:
    """Copy the compiled encoder of a recipe to `folder`. Return False if none is kept, or it is damaged."""
    kept = kept_folder(recipe)
    return kept.is_dir() and damage(kept) is None and _copy(kept, folder)


def keep(recipe: Recipe, folder: Path) -> None:
    """Keep the compiled encoder in `folder`, unless an undamaged compiled encoder of the recipe is kept already."""
    kept = kept_folder(recipe)
    if kept.is_dir():
        if damage(kept) is None:
            return
        shutil.rmtree(kept, ignore_errors=True)
    _copy(folder, kept)


def _copy(source: Path, destination: Path) -> bool:
    """Copy a folder so that the whole of it appears at once. Return False if that fails."""
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}-") as temporary:
            draft = Path(temporary) / "encoder"
            shutil.copytree(source, draft)
            if damage(draft) is not None:
                return False
            draft.rename(destination)
    except OSError:  # The disk is full, or another process was first: the encoder is compiled when it is needed.
        return False
    return True
