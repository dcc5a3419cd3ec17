"""Combining layers and pooling: from hidden states to one vector per text. No model is loaded here.

States are packed: the tokens of all texts of a batch one after the other, (tokens, hidden), without padding. Texts are
sorted by length, so that texts of one length are a block that is viewed as (texts, length, hidden). No mask is needed,
and a vector cannot depend on padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indexer.encoders.recipes.recipe import Combine, Pooling

if TYPE_CHECKING:
    import torch

Runs = Sequence[tuple[int, int]]
"""(texts, length) of each block of texts of one length, in order."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch of texts as a model reads it.

    Attributes:
        ids: token ids (tokens,), int64.
        runs: blocks of texts of one length, in the order of `ids`.
        segments: segment of each token (tokens,), int64, for pairs of texts; None if all tokens are in segment 0.
    """

    ids: torch.Tensor
    runs: Runs
    segments: torch.Tensor | None = None


def combine_layers(states: Sequence[torch.Tensor], combine: Combine) -> torch.Tensor:
    """Combine layers (tokens, hidden) into one (tokens, hidden), or (tokens, layers x hidden) for concat; float32."""
    import torch

    if combine == "concat":
        return torch.cat([state.float() for state in states], dim=-1)
    total = torch.stack([state.float() for state in states]).sum(0) if len(states) > 1 else states[0]
    return total / len(states) if combine == "mean" and len(states) > 1 else total


def pool(states: torch.Tensor, runs: Runs, pooling: Pooling) -> torch.Tensor:
    """Pool packed states (tokens, hidden) into (texts, hidden), float32. `pooler` gives the pooler's input, as `cls`.

    The modes are those of sentence-transformers' Pooling module; weighted_mean weighs a token by its
    position (Muennighoff, SGPT, 2022).
    """
    import torch

    hidden = states.shape[-1]
    rows = []
    start = 0
    for count, length in runs:
        block = states[start : start + count * length].view(count, length, hidden)
        rows.append(_pool_block(block, pooling))
        start += count * length
    return torch.cat(rows)


def _pool_block(block: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Pool texts of one length (texts, length, hidden) into (texts, hidden)."""
    import torch

    length = block.shape[1]
    if pooling in ("cls", "pooler"):
        return block[:, 0].float()
    if pooling == "last":
        return block[:, -1].float()
    if pooling == "max":
        return block.amax(1).float()
    if pooling == "weighted_mean":
        weights = torch.arange(1, length + 1, device=block.device, dtype=torch.float32)
        return torch.einsum("ntd,t->nd", block.float(), weights / weights.sum())
    total = block.sum(1, dtype=torch.float32)
    return total / (length if pooling == "mean" else length**0.5)
