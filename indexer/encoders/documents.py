"""The encoder that a batch of documents is embedded with: whether its runtime may be measured for them."""

from __future__ import annotations

import warnings
from dataclasses import replace

from indexer.encoders.choices import VARIABLE, override
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.port import Encoder
from indexer.encoders.postprocessing import PostProcessed
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.encoders.torch.int8 import Int8Encoder

MIN_TOKENS = 50_000
"""Of a batch from which on measuring can pay: nearly half of a full one, so that there is likely to be more.

Measuring takes a few seconds and gains a fifth at best: a small folder is embedded before they are over.
"""


def for_documents(encoder: Encoder, tokens: int) -> Encoder:
    """`encoder` for a batch of so many tokens: if they are too few, it uses what was measured before, if anything.

    Warns:
        UserWarning: LIKEWISE_RUNTIME asks for openvino, which does not run this encoder; once a recipe.
    """
    recipe = encoder.recipe
    if override() == "openvino" and _stays(encoder) and recipe.identity not in _warned:
        _warned.add(recipe.identity)
        warnings.warn(f"{VARIABLE} asks for openvino, which does not run {recipe} as it is: torch does", stacklevel=2)
    if isinstance(encoder, TorchEncoder) and tokens < MIN_TOKENS:
        return replace(encoder, measures=False)
    return encoder


_warned: set[str] = set()


def _stays(encoder: Encoder) -> bool:
    """Whether an encoder of ours is on torch, of whatever kind, and nobody asked for that by `runtime`."""
    if isinstance(encoder, PostProcessed):
        return not isinstance(encoder.inner, CompiledEncoder)
    on_device = isinstance(encoder, TorchEncoder) and encoder.device != "cpu"
    return on_device or isinstance(encoder, Int8Encoder | SentenceTransformerEncoder)
