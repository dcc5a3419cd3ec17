"""The encoder on torch: sorts and batches texts, runs the transformer once, and makes each recipe's vectors.

The transformer itself is bert.py or automodel.py; what follows it is head.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.encoder import Role
from indexer.encoders.head import Head
from indexer.encoders.pooling import Packed
from indexer.encoders.recipe import Recipe
from indexer.encoders.tokenizer import Ids, Tokenizer
from indexer.errors import ModelError
from indexer.records import Vector

if TYPE_CHECKING:
    import torch

CPU_BATCH = 2048
GPU_BATCH = 65536
"""Tokens of one forward pass."""


class Transformer(Protocol):
    """A loaded model: hidden states of packed batches."""

    layers: int
    hidden: int
    positions: int
    dtype: torch.dtype

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]: ...

    def pooler(self, first: torch.Tensor) -> torch.Tensor | None: ...


@dataclass(frozen=True, slots=True)
class TorchEncoder:
    """An `Encoder` on a transformer that others may share."""

    recipe: Recipe
    tokenizer: Tokenizer
    transformer: Transformer
    head: Head
    batch_tokens: int = CPU_BATCH

    @property
    def dimensions(self) -> int:
        return self.recipe.dimensions

    @property
    def max_tokens(self) -> int:
        return self.recipe.max_tokens

    def overhead(self, role: Role = "document") -> int:
        return self.tokenizer.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.tokenizer.offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return encode_shared([self], texts, role, truncate)[0]

    def post_parameters(self) -> bytes | None:
        return None


def encode_shared(encoders: Sequence[TorchEncoder], texts: Sequence[str], role: Role, truncate: bool) -> list[Vector]:
    """Vectors of several encoders with one tokenizer and transformer, from one forward pass a batch.

    Everything is tokenised first, on all cores: lengths are needed for sorting, and TextTooLong is raised
    before any work. On a CPU nothing would be won by overlapping it, as the products leave no core idle.
    """
    import torch

    rows = encoders[0].tokenizer.ids(texts, role, truncate)
    found = [np.empty((len(rows), encoder.dimensions), np.float32) for encoder in encoders]
    wanted = sorted({layer for encoder in encoders for layer in encoder.head.layers})
    transformer = encoders[0].transformer
    with torch.inference_mode():
        for order, batch in _batches(rows, encoders[0].batch_tokens):
            states = transformer.states(batch, wanted)
            for encoder, out in zip(encoders, found, strict=True):
                vectors = encoder.head.vectors(states, batch.runs)
                if "pooler" in encoder.head.poolings:
                    vectors = _pooled(transformer, vectors, encoder.recipe)
                out[order] = unit(vectors[:, : encoder.dimensions].cpu().numpy(), order, encoder.recipe.model)
    return found


def unit(vectors: Vector, order: Sequence[int], model: str) -> Vector:
    """Rows scaled to unit length. Raises ModelError for a row that is not finite or zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = ~np.isfinite(norms[:, 0]) | (norms[:, 0] == 0)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        what = "a vector of zeros" if norms[first, 0] == 0 else "numbers that are not finite"
        raise ModelError(
            f"model {model!r} gave {what} for text {order[first]}: its weights are broken, or the text "
            "holds nothing it knows"
        )
    return np.asarray(vectors / norms, np.float32)


def _pooled(transformer: Transformer, first: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    pooled = transformer.pooler(first)
    if pooled is None:
        raise ModelError(f"model {recipe.model!r} has no trained pooler: use cls or mean pooling")
    return pooled.float()


def _batches(rows: list[Ids], tokens: int) -> Iterator[tuple[list[int], Packed]]:
    """Texts of like length together, longest first, at most `tokens` a batch with padding, or one text."""
    import torch

    order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
    start = 0
    while start < len(order):
        end = start + max(1, tokens // len(rows[order[start]]))
        chosen = order[start:end]
        lengths, counts = np.unique([len(rows[index]) for index in chosen], return_counts=True)
        runs = [(int(count), int(length)) for length, count in zip(lengths[::-1], counts[::-1], strict=True)]
        ids = torch.from_numpy(np.concatenate([rows[index] for index in chosen])).long()
        yield chosen, Packed(ids, runs)
        start = end
