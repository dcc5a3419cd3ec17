"""The options for working on an index that are not stored in its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.registry import KnownModels
from indexer.listener import SILENT, Listener

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from indexer.encoders import Encoder, Recipe
    from indexer.encoders.machine.hardware import Precision
    from indexer.indexing.embedder import Embedder, Workers
    from indexer.indexing.embedding import Ready


class Cache(KnownModels, Protocol):
    """Vectors of documents that were embedded before, the models that made them, and compiled encoders."""

    def before(self, encoder: Encoder, precision: Precision, ready: Ready) -> Encoder:
        """Return an encoder that embeds only texts whose vectors the cache lacks. It makes `encoder` ready for them."""

    def before_workers(self, workers: Workers, encoder: Encoder, embedder: Embedder) -> Workers:
        """Return workers that pass on only documents with a passage whose vector the cache lacks.

        Args:
            encoder: the encoder by whose tokens documents are cut.
            embedder: what the workers embed with.
        """

    def take_compiled(self, recipe: Recipe, folder: Path) -> bool:
        """Copy the compiled encoder of a recipe to a folder. Return False if the cache has none."""

    def keep_compiled(self, recipe: Recipe, folder: Path) -> None:
        """Keep the compiled encoder in a folder."""


@dataclass(frozen=True, slots=True)
class Context:
    """The options of a run, which are the same for every index that the run opens.

    Attributes:
        runtime: how encoders compute.
        cache: cache that is searched first for vectors of documents; None for no cache.
        listener: receives what long calls report.
        workers: makes the workers that embed documents, when the first is embedded; None for this process.
        beside: a thread that embeds a batch while the caller reads the next; None embeds at once.
        wait: wait for another writer; otherwise raise `IndexLocked` at once.
    """

    runtime: Runtime = field(default_factory=Runtime)
    cache: Cache | None = None
    listener: Listener = SILENT
    wait: bool = True
    workers: Callable[[Embedder], Workers] | None = None
    beside: Executor | None = None

    def cached(self, encoder: Encoder, ready: Ready = lambda encoder: encoder) -> Encoder:
        """Return `encoder` behind the cache. Without a cache, make the encoder ready now."""
        return ready(encoder) if self.cache is None else self.cache.before(encoder, self.runtime.precision, ready)
