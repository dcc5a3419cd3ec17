"""The identity of an index: which vectors may be added to it, and the error if another index has replaced it."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from indexer.encoders import Recipe, RecipeSpec
from indexer.encoders.kinds import loader_of
from indexer.encoders.recipes.locate import find_model, fingerprint
from indexer.encoders.recipes.recipe import scheme_of, spec_of
from indexer.errors import Message, RecipeMismatch
from indexer.settings import Settings


def require_recipe(address: str, stored: Recipe | None, other: Recipe) -> None:
    """Check that vectors of a recipe may be added to an index.

    Args:
        address: of the index, for the message.
        stored: the index's recipe; None for an index of the user's own vectors.
        other: the recipe to check.

    Raises:
        RecipeMismatch: the vectors may not be mixed; the message names both recipes.
    """
    if stored is None or not stored.same(other):
        made_with = _describe(stored) if stored else "vectors of your own"
        raise RecipeMismatch(
            Message(
                f"{address}: was made with {made_with} and not with {_describe(other)}: "
                "their vectors do not mix; use that model, or rebuild the index with the new one",
                " (--rebuild)",
            )
        )


def as_stored(model: str | PathLike[str] | RecipeSpec, stored: Recipe) -> RecipeSpec | Recipe:
    """Return a requested model, with the choices of the stored recipe where the request leaves them to the model.

    A later version of likewise may choose other prompts or dimensions for a model, but the vectors of an index keep
    their meaning. If the request names another model than the index has, its own choices are left alone. A name for the
    loader of the stored recipe is another place of the same model, such as another endpoint.
    """
    if isinstance(model, str) and (loader := loader_of(model)) is not None and loader is loader_of(stored.model):
        return replace(stored, model=loader.stored_name(model))
    spec = RecipeSpec.of(model)
    own = stored.fingerprint if Path(spec.model).name == Path(stored.model).name else ""
    if scheme_of(spec.model) or fingerprint(find_model(spec.model, fingerprint=own)) != stored.fingerprint:
        return spec
    made = spec_of(stored)
    return replace(
        spec,
        query_prompt=made.query_prompt if spec.query_prompt is None else spec.query_prompt,
        document_prompt=made.document_prompt if spec.document_prompt is None else spec.document_prompt,
        max_tokens=made.max_tokens if spec.max_tokens is None else spec.max_tokens,
        dimensions=made.dimensions if spec.dimensions is None else spec.dimensions,
        stored=True,
        fingerprint=stored.fingerprint,
    )


def moved_to(place: str, settings: Settings) -> Settings:
    """Return the settings of an index whose model is found in another folder, or under another name, from now on."""
    recipe = settings.recipe
    assert recipe is not None
    question = recipe.question and replace(recipe.question, model=place)
    return replace(settings, recipe=replace(recipe, model=place, question=question))


def _describe(recipe: Recipe) -> str:
    return f"{recipe} (weights {recipe.fingerprint[:12]}, up to {recipe.max_tokens} tokens)"


def index_was_replaced(address: str) -> RecipeMismatch:
    """Return the error for an opened index that was replaced by an index of another model."""
    return RecipeMismatch(f"{address}: the folder now contains an index made with another model: open it again")
