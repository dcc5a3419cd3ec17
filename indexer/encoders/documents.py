"""The encoder for one batch of documents: it may measure its runtime first only if the batch is large enough."""

from __future__ import annotations

from dataclasses import replace

from indexer.encoders.choices import RUNTIME_VARIABLE, override
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.port import Encoder
from indexer.encoders.postprocessing import PostProcessed
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.encoders.torch.int8 import Int8Encoder
from indexer.notes import Note

MIN_TOKENS = 50_000
"""Tokens of a batch from which measuring can pay off: nearly half of a full batch, so that more is likely to follow.

Measuring takes a few seconds and saves a fifth of the time at best: a small folder is embedded before they are over.
"""


def for_documents(encoder: Encoder, tokens: int, *, note: Note) -> Encoder:
    """Return `encoder` for a batch of this many tokens: one of few tokens never starts a measurement.

    Args:
        tokens: of the whole batch.
        note: is told, when documents are encoded, that OpenVINO failed.
    """
    if isinstance(encoder, TorchEncoder):
        return replace(encoder, measures=encoder.measures and tokens >= MIN_TOKENS, note=note)
    return encoder


def ignored_override(encoder: Encoder) -> str | None:
    """Return a sentence for people if LIKEWISE_RUNTIME asks for openvino and this encoder cannot follow; else None."""
    if override() == "openvino" and _stays_on_torch(encoder):
        return f"{RUNTIME_VARIABLE} asks for openvino, which does not run {encoder.recipe} as it is: torch does"
    return None


def _stays_on_torch(encoder: Encoder) -> bool:
    """Whether one of likewise's own encoders can only run on torch, without the caller having chosen torch."""
    if isinstance(encoder, PostProcessed):
        return not isinstance(encoder.inner, CompiledEncoder)
    on_device = isinstance(encoder, TorchEncoder) and encoder.device != "cpu"
    return on_device or isinstance(encoder, Int8Encoder | SentenceTransformerEncoder)
