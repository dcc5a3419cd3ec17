"""One vector per token, or per word: hidden states of a model's layers, neither pooled nor normalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.encoders.chain.parts import on_torch
from indexer.encoders.inspection.tokens import Token, Word
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.tokens.batching import batches
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.pooling import Packed, combine_layers
from indexer.errors import ModelError
from indexer.records import Vector

if TYPE_CHECKING:
    import torch


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
    rows = [np.array([token.id for token in tokens], np.int32) for tokens in texts]
    outputs: list[list[Any]] = [[None] * len(rows) for _ in encoders]
    paired = [any(token.segment for token in tokens) for tokens in texts]
    groups = [[index] for index, pair in enumerate(paired) if pair]
    single = [index for index, pair in enumerate(paired) if not pair]
    for batch in batches([rows[index] for index in single], first.batch_tokens):
        groups.append([single[position] for position in batch])
    for group in groups:
        with torch.inference_mode():
            if paired[group[0]]:
                states = _pair_states(first, texts[group[0]], wanted)
            else:
                ids = torch.from_numpy(np.concatenate([rows[index] for index in group])).long()
                states = first.transformer.states(Packed(ids, [(1, len(rows[index])) for index in group]), wanted)
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
    if (torch_encoder := on_torch(encoder)) is None:
        raise ModelError(f"{encoder.recipe} shows no hidden layers: choose a model that is a transformer")
    return torch_encoder


def _pair_states(encoder: TorchEncoder, tokens: Sequence[Token], wanted: Sequence[int]) -> dict[int, torch.Tensor]:
    """Return hidden states (tokens, hidden) of a pair by layer, from transformers: native.py reads only segment 0."""
    import torch

    from indexer.encoders.torch.automodel import load_transformer

    dtype = encoder.transformer.dtype
    model, _ = load_transformer(encoder.folder, dtype, trust_remote_code=encoder.trust_remote_code)
    ids, segments = ([[getattr(token, name) for token in tokens]] for name in ("id", "segment"))
    states = model(
        input_ids=torch.tensor(ids), token_type_ids=torch.tensor(segments), output_hidden_states=True
    ).hidden_states
    return {layer: states[layer][0] for layer in wanted}
