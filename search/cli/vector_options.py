"""What the command line asks of an index's vectors: a new index made of it, an old one held to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indexer.core import IndexCore
    from indexer.encoders import Encoder, Recipe, RecipeSpec
    from indexer.encoders.hardware import Precision
    from indexer.encoders.runtime import Runtime
    from indexer.settings import Settings


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """The options that decide on vectors; None is the index's own, or the default of a new one."""

    model: str | None
    pooling: str | None
    layers: str | None
    combine: str | None
    max_tokens: int | None
    overlap: int | None
    precision: Precision
    device: str
    language: str | None
    trust_remote_code: bool
    dimensions: int | None = None

    @property
    def names_model(self) -> bool:
        return any((self.model, self.pooling, self.layers, self.combine))

    @property
    def _runtime(self) -> Runtime:
        from indexer.encoders.runtime import Runtime

        return Runtime(self.precision, self.device, self.trust_remote_code)

    def settings(self, like: IndexCore | None = None) -> tuple[Settings, Encoder | None]:
        """What a new index is to be, and its encoder; what is not asked for is as in `like`."""
        from indexer.embedding import settings_of_new

        if self.dimensions is not None:
            return settings_of_new(None, dimensions=self.dimensions, language=self.language or "en")
        settings = like.settings.passages if like is not None else None
        tokens, overlap = self.max_tokens, self.overlap
        if overlap is None and settings and tokens is None:
            overlap = settings.overlap
        model: Recipe | RecipeSpec = self._spec(like.recipe.model if like is not None and like.recipe else None)
        if like is not None and like.recipe is not None and not self.names_model:
            model = like.recipe
        if settings is not None and tokens is None and self.model is None:  # the same model reads as much as before
            tokens = settings.max_tokens
        return settings_of_new(
            model,
            max_tokens=tokens,
            overlap=overlap,
            runtime=self._runtime,
            language=self.language or (like.settings.language if like is not None else "en"),
        )

    def require_same(self, index: IndexCore) -> None:
        """Raise RecipeMismatch when other vectors or passages are asked for than the index has.

        A model that is named is the one to embed with: the folder it was in may have moved.
        """
        from indexer.errors import RecipeMismatch
        from indexer.stores.analysis import code

        recipe, settings = index.recipe, index.settings.passages
        if self.names_model and not (recipe and self._same_words(recipe)):
            from indexer.encoders import load_with_recipe
            from indexer.encoders.locate import lasting_name

            spec = self._spec(recipe.model if recipe else None)
            index.use(*load_with_recipe(spec, self._runtime))
            if self.model and recipe and (now := lasting_name(spec.model)) != recipe.model:
                index.record_model_place(now)
        for name, asked, has in (
            ("--dimensions", self.dimensions, index.settings.dimensions),
            ("--max-tokens", self.max_tokens, settings and settings.max_tokens),
            ("--overlap", self.overlap, settings and settings.overlap),
            ("--language", self.language and code(self.language), index.settings.language),
        ):
            if asked is not None and asked != has:
                raise RecipeMismatch(
                    f"{index.address}: was made with {name} {has} and not {asked}: leave {name} out, or --rebuild"
                )

    def _spec(self, model: str | None) -> RecipeSpec:
        """The recipe that is asked for, of `model` where none is named."""
        from indexer.encoders import RecipeSpec
        from indexer.encoders.locate import DEFAULT_MODEL

        return RecipeSpec.chosen(self.model or model or DEFAULT_MODEL, self.pooling, self.layers, self.combine)

    def _same_words(self, recipe: Recipe) -> bool:
        """The same model by the same name and no more asked: its weights are compared when it is loaded."""
        from indexer.encoders.locate import lasting_name

        return lasting_name(self.model or "") == recipe.model and not (self.pooling or self.layers or self.combine)
