"""The options of `likewise index` about vectors: the settings of a new index, or a check against an existing one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from indexer.errors import BadInput, RecipeMismatch
from indexer.indexing.new_index import AUTO_MODEL, NewIndex

if TYPE_CHECKING:
    from indexer.encoders import Encoder, Recipe, RecipeSpec
    from indexer.encoders.kinds import Loader
    from indexer.indexing.context import Cache
    from indexer.indexing.core import IndexCore
    from indexer.settings import Settings


@dataclass(frozen=True, slots=True)
class VectorOptions(NewIndex):
    """The options about vectors and passages; None means the index's own setting, or the default of a new index."""

    dimensions: int | None = None
    tokenizer: str | None = None
    model: str | None = None
    pooling: str | None = None
    layers: str | None = None
    combine: str | None = None
    input_type: bool = False
    query_prompt: str | None = None
    document_prompt: str | None = None
    chooses_again: bool = False
    """Whether the texts of a rebuilt index choose its model, although it has one."""

    @property
    def names_model(self) -> bool:
        return any((self.model, self.pooling, self.layers, self.combine))

    @property
    def own_vectors(self) -> bool:
        """Whether a new index gets vectors that come with the records: --dimensions without a model."""
        return self.dimensions is not None and not self.names_model

    @property
    def _changes_recipe(self) -> bool:
        given = (self.tokenizer, self.query_prompt, self.document_prompt)
        return self.names_model or self.input_type or any(value is not None for value in given)

    def settings(
        self,
        like: IndexCore | None = None,
        cache: Cache | None = None,
        texts: Callable[[], Sequence[str]] = tuple,
    ) -> tuple[Settings, Encoder | None]:
        """Return the settings and the encoder of a new index; options that are None are as in the index `like`.

        Args:
            texts: returns the texts that choose the model, if no option says anything about it.
        """
        from indexer.indexing.embedding import settings_of_new

        self._name_host()
        if self.own_vectors:
            return settings_of_new(None, self)
        language = self.language or (None if like is None or like.settings.language_open else like.settings.language)
        settings = like.settings.passages if like is not None else None
        tokens, overlap = self.max_tokens, self.overlap
        if overlap is None and settings and tokens is None:
            overlap = settings.overlap
        stored = like.recipe if like is not None else None
        is_open = like is None or self.chooses_again or like.settings.model_open is not None
        if is_open and not self._changes_recipe and self.dimensions is None:
            return settings_of_new(AUTO_MODEL, replace(self, language=language), cache, texts())
        model: Recipe | RecipeSpec = self._spec(stored)
        if stored is not None and not self._changes_recipe:
            model = stored
        if settings is not None and tokens is None and self.model is None:  # the model and so its limit stay the same
            tokens = settings.max_tokens
        # The spec of the model has the dimensions.
        chosen = replace(self, dimensions=None, max_tokens=tokens, overlap=overlap, language=language)
        return settings_of_new(model, chosen, cache)

    def chosen(self, index: IndexCore) -> IndexCore:
        """Return an existing index with the choices of these options.

        If the options name a model, the model is loaded from there, because the folder of the index's model may have
            moved.

        Raises:
            RecipeMismatch: the options differ from the settings of the index.
        """
        from indexer.encoders.recipes.recipe import scheme_of

        self._name_host()
        recipe = index.recipe
        if self.tokenizer is not None:
            self._require_same_tokenizer(index.address, recipe)
        if self.input_type and not (recipe is not None and recipe.remote is not None and recipe.remote.input_type):
            raise RecipeMismatch(f"{index.address}: sends no endpoint --input-type: leave it out, or add --rebuild")
        if recipe is not None and scheme_of(recipe.model) and (loader := self._loader()) is not None:
            name = loader.stored_name(self.model or "")  # The same model may be at another address now.
            if name != recipe.model:
                index = index.with_model(name, found_at=name)
        elif self.names_model and index.settings.model_open is not None:
            index = index.with_model(self._spec(recipe))
            recipe = index.recipe
        elif self.names_model and not (recipe and self._names_same(recipe)):
            from indexer.encoders.recipes.locate import lasting_name

            spec = self._spec(recipe)
            place = lasting_name(spec.model, recipe.fingerprint) if recipe and self.model else None
            index = index.with_model(spec, found_at=place)
        dimensions = index.settings.dimensions
        if not dimensions and self.dimensions is not None and self.dimensions > 0:  # the index has no width yet
            dimensions = self.dimensions
        if (language := self.language_code) is not None and index.settings.language_open:  # no text has decided it yet
            index.first.settle_language(language)
        for name, option, stored in (
            *self.compared(index.settings, dimensions),
            ("query_prompt", self.query_prompt, recipe and recipe.query_prompt),
            ("document_prompt", self.document_prompt, recipe and recipe.document_prompt),
        ):
            if option is not None and option != stored:
                named = f"--{name.replace('_', '-')}"
                raise RecipeMismatch(
                    f"{index.address}: was made with {named} {_shown(stored)} and not {_shown(option)}: "
                    f"leave {named} out, or add --rebuild"
                )
        return index

    def _name_host(self) -> None:
        """Record the host of an endpoint that --model names. The model that an index names is never recorded."""
        import click
        from click.core import ParameterSource

        from indexer.encoders.kinds import allow_model

        # A configuration file may have come with a folder from somebody else: only what is typed names a host.
        context = click.get_current_context(silent=True)
        if context is None or context.get_parameter_source("model") == ParameterSource.COMMANDLINE:
            allow_model(self.model)

    def _loader(self) -> Loader | None:
        """Return the loader of --model; None for a folder or a model on the hub, or if layers are named with it."""
        from indexer.encoders.kinds import loader_of

        return loader_of("" if self.pooling or self.layers or self.combine else self.model or "")

    def _require_same_tokenizer(self, address: str, recipe: Recipe | None) -> None:
        from indexer.doors import require

        if recipe is None or recipe.remote is None:
            raise BadInput(f"{address}: --tokenizer is for endpoints, and its model has its own: leave it out")
        endpoints = require("encoders", "http", "a tokenizer for a model behind an endpoint")
        if endpoints.tokenizer_sha256(self.tokenizer or "") != recipe.remote.tokenizer_sha256:
            stored = recipe.remote.tokenizer or "a count of characters"
            raise RecipeMismatch(
                f"{address}: its passages were cut with {stored}, not with {self.tokenizer}: leave --tokenizer out, "
                "or add --rebuild"
            )

    def _spec(self, stored: Recipe | None) -> RecipeSpec:
        """Return the recipe of these options, with the model and the roles of `stored` if they name no model."""
        from indexer.encoders import RecipeSpec
        from indexer.encoders.recipes.locate import DEFAULT_MODEL

        name = self.model or (stored.model if stored else DEFAULT_MODEL)
        spec = RecipeSpec.chosen(name, self.pooling, self.layers, self.combine)
        roles = self.model is None and stored is not None and stored.remote is not None and stored.remote.input_type
        if stored is not None and not self.names_model:
            spec = replace(spec, pooling=stored.pooling, layers=stored.layers or None, combine=stored.combine)
            spec = replace(spec, dimensions=stored.dimensions)
            spec = spec.with_prompts(stored.query_prompt, stored.document_prompt)
        if self.dimensions is not None:
            spec = replace(spec, dimensions=self.dimensions)
        spec = spec.with_prompts(self.query_prompt, self.document_prompt)
        return replace(spec, tokenizer=self.tokenizer, input_type=self.input_type or roles)

    def _names_same(self, recipe: Recipe) -> bool:
        """Return whether the named model is the index's own model. Its weights are compared when it is loaded."""
        from indexer.encoders.recipes.locate import lasting_name

        same = self.model is None or lasting_name(self.model, recipe.fingerprint) == recipe.model
        return same and not (self.pooling or self.layers or self.combine)


def _shown(value: object) -> object:
    """Return a setting for a message; a text, which may be empty or end with a space, in quotes."""
    return repr(value) if isinstance(value, str) and (not value or value != value.strip()) else value
