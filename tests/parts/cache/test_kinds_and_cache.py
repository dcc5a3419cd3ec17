"""A kind of model that a package of others gives, and the cache."""

from __future__ import annotations

from indexer.encoders import get_encoder
from likewise.cache.user_cache import UserCache
from likewise.cache.vector_cache import VectorCache


def test_nothing_of_a_loader_is_taken_from_the_cache_of_models() -> None:
    class NoModels(VectorCache):
        def model(self, key: bytes) -> tuple[str, str] | None:
            raise AssertionError("asked")

        def keep_model(self, key: bytes, recipe: str, tokenizer: str) -> None:
            raise AssertionError("kept")

    cache = UserCache(NoModels())
    encoder = get_encoder("counts://words", models=cache)
    assert get_encoder(encoder.recipe, models=cache).recipe == encoder.recipe
