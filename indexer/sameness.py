"""What an index is: whether vectors may be mixed with its own, and whether a folder still holds the one opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from indexer.encoders import Encoder, Recipe
from indexer.errors import RecipeMismatch


def what_it_is(settings: Mapping[str, str]) -> dict[str, str]:
    """What tells an index from another that has come into its folder; where the model lies is no part of it."""
    recipe = Recipe.from_json(settings["recipe"]).identity if settings["recipe"] else ""
    return {"dimensions": settings["dimensions"], "recipe": recipe, "passages": settings["passages"]}


def as_fitted(encoder: Encoder, recipe: Recipe | None, post: bytes | None) -> Encoder:
    """The encoder with what the index's recipe was fitted to, where that is not in it yet."""
    if recipe is None or post is None or encoder.recipe.post:
        return encoder
    from indexer.encoders.post import with_post

    return with_post(encoder, recipe, post)


def mismatch(folder: Path, own: Recipe | None, other: Recipe) -> RecipeMismatch:
    """That vectors of another recipe are not for the index in `folder`, naming both."""

    def name(recipe: Recipe) -> str:
        return f"{recipe} (weights {recipe.fingerprint[:12]}, up to {recipe.max_tokens} tokens)"

    return RecipeMismatch(
        f"{folder}: was made with {name(own) if own else 'vectors of your own'} and not with {name(other)}: "
        "their vectors do not mix; use that model, or --rebuild the index with the new one"
    )


def replaced(folder: Path) -> RecipeMismatch:
    """That the folder holds another index than the one that was opened."""
    return RecipeMismatch(
        f"{folder}: an index of another recipe has come into this folder since it was opened: open it again"
    )
