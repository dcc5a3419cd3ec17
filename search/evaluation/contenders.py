"""Recipes loaded to be compared: what they share is loaded and computed once. What they are worth, tasks.py says."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from indexer import encoders as room
from indexer.embedding import FIT_SAMPLE_PASSAGES
from indexer.encoders import Encoder, Recipe, RecipeSpec, Role
from indexer.encoders.postprocessing import PostProcessed
from indexer.encoders.runtime import Runtime
from indexer.errors import ModelError
from indexer.records import Vector
from search.pairs import too_long

TOGETHER = 4096
"""Texts of a pass: bounds the vectors in memory."""

_REPEATS = 5

T = TypeVar("T", list[str], Vector)


@dataclass(frozen=True, slots=True)
class Contenders:
    """The recipes asked for, and the distinct encoders below their post-processing.

    Attributes:
        recipes: as asked for; of those with post-processing, as they are before it is fitted.
        base: of each recipe, which of `encoders` it stands on.
    """

    recipes: tuple[Recipe, ...]
    base: tuple[int, ...]
    encoders: tuple[Encoder, ...]

    @classmethod
    def load(cls, specs: Sequence[RecipeSpec], device: str, trust_remote_code: bool) -> Contenders:
        runtime = Runtime(device=device, trust_remote_code=trust_remote_code, name="torch")
        loaded = {}
        for spec in sorted(set(specs), key=lambda spec: spec.model):  # the loader keeps a few models for neighbours
            loaded[spec] = room.load_with_recipe(spec, runtime)
        distinct = {encoder.recipe.identity: encoder for encoder, _ in loaded.values()}
        places = {identity: place for place, identity in enumerate(distinct)}
        return cls(
            tuple(loaded[spec][1] for spec in specs),
            tuple(places[loaded[spec][0].recipe.identity] for spec in specs),
            tuple(distinct.values()),
        )

    def encode(self, texts: Sequence[str], role: Role = "document") -> list[Vector]:
        """Unit rows of every encoder below, from one forward pass a model; texts over its limit are cut."""
        parts = [
            room.encode_many(self.encoders, texts[start : start + TOGETHER], role, truncate=True)
            for start in range(0, len(texts), TOGETHER)
        ]
        return [np.concatenate(rows) for rows in zip(*parts, strict=True)]

    def fit(self, below: Sequence[Vector]) -> list[Encoder]:
        """Every recipe's encoder, post-processing fitted to rows of the encoders below, evenly spread.

        Raises:
            ModelError: there are too few of them, or they vary in too few directions; names the recipe.
        """
        return [
            _fitted(self.encoders[base], recipe, below[base]) if recipe.post else self.encoders[base]
            for recipe, base in zip(self.recipes, self.base, strict=True)
        ]

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """Of every recipe, how many texts have more tokens than its model reads."""
        keys = [(encoder.recipe.fingerprint, encoder.max_tokens) for encoder in self.encoders]
        counts = {key: too_long(encoder, texts) for key, encoder in dict(zip(keys, self.encoders, strict=True)).items()}
        return [counts[keys[base]] for base in self.base]

    def tokens(self, texts: Sequence[str]) -> float:
        """Tokens of a text on average, as the first recipe's model reads it."""
        first = self.encoders[self.base[0]]
        overhead = first.overhead()
        return statistics.mean(min(len(spans) + overhead, first.max_tokens) for spans in first.offsets(texts))


def _fitted(encoder: Encoder, recipe: Recipe, vectors: Vector) -> Encoder:
    assert recipe.post is not None
    try:
        return room.fit_post(encoder, evenly(vectors, FIT_SAMPLE_PASSAGES), recipe.post, recipe.dimensions)
    except ModelError as error:
        raise ModelError(f"{recipe}: {error}") from error


def processed(encoder: Encoder, vectors: Vector) -> Vector:
    """Rows of the encoder below, as this recipe has them."""
    return encoder.apply(vectors) if isinstance(encoder, PostProcessed) else vectors


def evenly(items: T, most: int) -> T:
    """At most so many of the items, evenly spread."""
    return items[:: -(-len(items) // most) or 1]


def speeds(encoders: Sequence[Encoder], texts: Sequence[str]) -> list[float]:
    """Texts a second of each encoder alone: taken in turns, warm, medians."""
    taken: list[list[float]] = [[] for _ in encoders]
    for _ in range(_REPEATS + 1):
        for encoder, own in zip(encoders, taken, strict=True):
            start = time.perf_counter()
            encoder.encode(texts, truncate=True)
            own.append(time.perf_counter() - start)
    return [len(texts) / statistics.median(own[1:]) for own in taken]
