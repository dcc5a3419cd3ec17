"""The user's cache as indexing uses it. The engine knows it by its protocol `Cache` and finds it by its door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.cache.vector_cache import VectorCache, open_vector_cache

if TYPE_CHECKING:
    from indexer.encoders import Encoder, Recipe
    from indexer.encoders.machine.hardware import Precision
    from indexer.encoders.machine.runtime import Runtime
    from indexer.encoders.registry import Model
    from indexer.indexing.embedder import Embedder, Workers


class UserCache:
    """A `Cache` of the engine over a file of vectors, recipes and tokenizers."""

    def __init__(self, file: VectorCache) -> None:
        self._file = file

    def deferred(self, load: Callable[[], Encoder], model: Model, runtime: Runtime) -> Encoder:
        from likewise.cache.deferred import defer

        return defer(load, model, runtime, self._file)

    def before(self, encoder: Encoder, precision: Precision, ready: Callable[[Encoder], Encoder]) -> Encoder:
        from likewise.cache.cached_encoder import CachedEncoder

        return CachedEncoder(encoder, self._file, precision, ready)

    def before_workers(self, workers: Workers, encoder: Encoder, embedder: Embedder) -> Workers:
        from likewise.cache.cached_encoder import CachedEncoder
        from likewise.cache.cached_workers import CachedWorkers

        cached = CachedEncoder(encoder, self._file, embedder.runtime.precision)
        return CachedWorkers(workers, cached, embedder.passages, embedder.recipe.identity)

    def take_compiled(self, recipe: Recipe, folder: Path) -> bool:
        from likewise.cache.compiled import take_kept

        return take_kept(recipe, folder)

    def keep_compiled(self, recipe: Recipe, folder: Path) -> None:
        from likewise.cache.compiled import keep

        keep(recipe, folder)


@contextmanager
def opened(notes: list[str]) -> Iterator[UserCache | None]:
    """Open the cache of this user; yield None if the environment turns it off. At the end, its problems are added to
    the notes."""
    if (file := open_vector_cache()) is None:
        yield None
        return
    try:
        yield UserCache(file)
    finally:
        notes.extend(file.problems)
        file.close()
