"""Recipes loaded to be compared. Common parts are loaded and computed once. tasks.py measures them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from indexer import encoders as library
from indexer.encoders import Encoder, RecipeSpec, Role
from indexer.encoders.machine.runtime import Runtime
from indexer.errors import count_of
from indexer.records import Vector
from likewise.evaluation.pairs import too_long

BATCH_TEXTS = 4096
"""Number of texts that are embedded in one pass. It bounds the memory for their vectors."""

_SPEED_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Contenders:
    """The encoders of the recipes to compare, in the order given. Equal recipes have one encoder."""

    encoders: tuple[Encoder, ...]

    @classmethod
    def load(cls, specs: Sequence[RecipeSpec], device: str, trust_remote_code: bool) -> Contenders:
        """Load the models of the recipes. Errors are those of `load_encoder`."""
        runtime = Runtime(device=device, trust_remote_code=trust_remote_code, name="torch")
        loaded = {}
        for spec in sorted(set(specs), key=lambda spec: spec.model):  # the loader caches only a few models
            loaded[spec] = library.get_encoder(spec, runtime)
        distinct = {encoder.recipe.identity: encoder for encoder in loaded.values()}
        return cls(tuple(distinct[loaded[spec].recipe.identity] for spec in specs))

    def encode(
        self, texts: Sequence[str], role: Role = "document", progress: Callable[[str], None] = lambda text: None
    ) -> list[Vector]:
        """Return unit rows of every encoder, with one forward pass per model; long texts are cut."""
        parts = []
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = texts[start : start + BATCH_TEXTS]
            parts.append(library.encode_many(self.encoders, batch, role, truncate=True))
            progress(f"{start + len(batch):,} of {count_of(len(texts), 'document')}")
        return [np.concatenate(rows) for rows in zip(*parts, strict=True)]

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """Return, for every recipe, how many texts have more tokens than its model reads."""
        keys = [(encoder.recipe.fingerprint, encoder.max_tokens) for encoder in self.encoders]
        distinct = dict(zip(keys, self.encoders, strict=True))
        counts = {key: len(too_long(encoder, texts)) for key, encoder in distinct.items()}
        return [counts[key] for key in keys]

    def tokens(self, texts: Sequence[str]) -> float:
        """Return the average number of tokens that the first recipe's model reads of a text."""
        first = self.encoders[0]
        overhead = first.overhead()
        return statistics.mean(min(len(spans) + overhead, first.max_tokens) for spans in first.offsets(texts))


def even_sample(items: list[str], count: int) -> list[str]:
    """Return at most `count` of the items, evenly spread."""
    return items[:: -(-len(items) // count) or 1]


def measure_speeds(encoders: Sequence[Encoder], texts: Sequence[str]) -> list[float]:
    """Return the texts per second of each encoder alone: the median of warm runs, taken in turns."""
    seconds: list[list[float]] = [[] for _ in encoders]
    for _ in range(_SPEED_REPEATS + 1):
        for encoder, runs in zip(encoders, seconds, strict=True):
            start = time.perf_counter()
            encoder.encode(texts, truncate=True)
            runs.append(time.perf_counter() - start)
    return [len(texts) / statistics.median(runs[1:]) for runs in seconds]
