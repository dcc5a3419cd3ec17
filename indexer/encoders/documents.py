"""The encoder that a batch of documents is embedded with: whether its runtime may be measured for them."""

from __future__ import annotations

from dataclasses import replace

from indexer.encoders.encoder import Encoder
from indexer.encoders.torch_encoder import TorchEncoder

MIN_TOKENS = 50_000
"""Of a batch from which on measuring can pay: nearly half of a full one, so that there is likely to be more.

Measuring takes two seconds or three, and gains a fifth at best: a small folder is embedded before they are over.
"""


def for_documents(encoder: Encoder, tokens: int) -> Encoder:
    """`encoder` for a batch of so many tokens: if they are too few, it uses what was measured before, if anything."""
    if isinstance(encoder, TorchEncoder) and tokens < MIN_TOKENS:
        return replace(encoder, measures=False)
    return encoder
