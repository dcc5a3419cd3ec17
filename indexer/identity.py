"""What an index is: whether vectors may be mixed with its own, and whether another index has taken its place."""

from __future__ import annotations

from dataclasses import replace

from indexer.encoders import Encoder, Recipe
from indexer.errors import RecipeMismatch


def require_recipe(address: str, own: Recipe | None, other: Recipe) -> None:
    """Raise RecipeMismatch, naming both, unless vectors of `other` may be mixed with those of the index's recipe.

    Args:
        address: of the index, for the message.
        own: its recipe; None for vectors of the user's own.
    """
    if other.post and not other.fitted and own:
        other = replace(other, post_sha256=own.post_sha256)  # fitted once; it is not fitted again
    if own is None or not own.same(other):
        raise RecipeMismatch(
            f"{address}: was made with {_named(own) if own else 'vectors of your own'} and not with {_named(other)}: "
            "their vectors do not mix; use that model, or --rebuild the index with the new one"
        )


def _named(recipe: Recipe) -> str:
    return f"{recipe} (weights {recipe.fingerprint[:12]}, up to {recipe.max_tokens} tokens)"


def as_fitted(encoder: Encoder, recipe: Recipe | None, fitted_parameters: bytes | None) -> Encoder:
    """The encoder with what the index's recipe was fitted to, where that is not in it yet."""
    if recipe is None or fitted_parameters is None or encoder.recipe.post:
        return encoder
    from indexer.encoders.postprocessing import with_post

    return with_post(encoder, recipe, fitted_parameters)


def index_was_replaced(address: str) -> RecipeMismatch:
    """The error for an index of another recipe that has taken the place of the one that was opened."""
    return RecipeMismatch(
        f"{address}: an index of another recipe has come into this folder since it was opened: open it again"
    )
