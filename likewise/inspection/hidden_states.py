"""One vector per token, or per word: hidden states of a model's layers, neither pooled nor normalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indexer.encoders.recipes.port import Encoder
from indexer.encoders.tokens.batching import batches
from indexer.encoders.torch.encoder import TorchEncoder, packed
from indexer.encoders.torch.pooling import combine_layers
from indexer.errors import ModelError
from indexer.records import Vector
from likewise.inspection.tokens import Token, Word


def word_vectors(vectors: Vector, words: Sequence[Word]) -> Vector:
    """Return the mean vector of each word's tokens (words, width), from the vectors of all tokens (tokens, width)."""
    means = [vectors[list(word.positions)].mean(0) for word in words]
    return np.array(means, np.float32).reshape(-1, vectors.shape[1])


def token_vectors(encoders: Sequence[TorchEncoder], texts: Sequence[Sequence[Token]]) -> list[list[Vector]]:
    """Compute the hidden states of each encoder's layers, combined as its recipe says.

    Args:
        encoders: encoders that share one transformer, which runs once for all of them.
        texts: the tokens of each text or pair of texts.

    Returns:
        For each encoder, one array (tokens, width) per text. The width is the hidden size, times the number of layers
        if they are concatenated.

    Raises:
        ModelError: the model gives numbers that are not finite.
    """
    import torch

    first = encoders[0]
    wanted = sorted({layer for encoder in encoders for layer in encoder.head.layers})
    rows, segments = (
        [np.array([getattr(token, name) for token in tokens], np.int32) for tokens in texts]
        for name in ("id", "segment")
    )
    outputs: list[list[Any]] = [[None] * len(rows) for _ in encoders]
    for group in batches(rows, first.batch_tokens):
        with torch.inference_mode():
            batch = packed(*([part[index] for index in group] for part in (rows, segments)))
            states = first.transformer.states(batch, wanted)
            for encoder, out in zip(encoders, outputs, strict=True):
                combined = combine_layers([states[layer] for layer in encoder.head.layers], encoder.head.combine)
                if not torch.isfinite(combined).all():
                    raise ModelError(f"model {first.recipe.model!r} gave numbers that are not finite: fetch it again")
                parts = torch.split(combined.float().cpu(), [len(rows[index]) for index in group])
                for index, part in zip(group, parts, strict=True):
                    out[index] = part.numpy()
    return outputs


def require_layers(encoder: Encoder) -> TorchEncoder:
    """Return the encoder if its hidden layers can be read. Raises ModelError for any other."""
    if not isinstance(encoder, TorchEncoder):
        raise ModelError(f"{encoder.recipe} shows no hidden layers: choose a model that is a transformer")
    return encoder
