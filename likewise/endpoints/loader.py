"""The door of the part `endpoints`: the loader of models whose names are http:// and https:// addresses."""

from __future__ import annotations

from indexer.encoders.kinds import Loader
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.recipes.recipe import Recipe, RecipeSpec
from likewise.endpoints.endpoint_address import EndpointAddress
from likewise.endpoints.named_hosts import name_host
from likewise.endpoints.remote import connect, open_remote, tokenizer_sha256


class EndpointLoader(Loader):
    """Loads models behind an endpoint, which chooses its own runtime."""

    uses_runtime = False

    def load(self, spec: RecipeSpec, runtime: Runtime) -> Encoder:
        return connect(spec, runtime)

    def open(self, recipe: Recipe, runtime: Runtime) -> Encoder:
        return open_remote(recipe)

    def stored_name(self, model: str) -> str:
        return str(EndpointAddress.parse(model))

    def allow(self, model: str) -> None:
        name_host(model)

    def tokenizer_sha256(self, name: str) -> str:
        """Return the sha256 of the tokenizer.json that a name or path means. Raises ModelError if there is none."""
        return tokenizer_sha256(name)


ENDPOINTS = EndpointLoader()
