"""The kinds of encoders. Other files ask here and not for classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from indexer.encoders.openvino.onnx import OnnxEncoder
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.tokens.words import WordTokenizer
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.encoders.torch.int8 import Int8Encoder, Loss

Compilable = TorchEncoder | StaticEncoder | OnnxEncoder
"""An encoder that can be compiled."""


def on_torch(encoder: Encoder) -> TorchEncoder | None:
    """Return an encoder whose transformer runs on torch in likewise's own code; None for every other."""
    return encoder if isinstance(encoder, TorchEncoder) else None


def is_compilable(encoder: Encoder) -> TypeGuard[Compilable]:
    """Return whether likewise knows what the modules of an encoder do, and a graph of them is of use."""
    return isinstance(encoder, TorchEncoder | StaticEncoder | OnnxEncoder) and not needs_no_graph(encoder)


def needs_no_graph(encoder: Encoder) -> bool:
    """Return whether an encoder reads the rows of its words from the model's own file, so that a graph, which holds
    the whole table, is of no use."""
    return isinstance(encoder, StaticEncoder) and isinstance(encoder.tokenizer, WordTokenizer)


def stays_on_torch(encoder: Encoder) -> bool:
    """Return whether an encoder runs only on torch, although its caller did not name torch."""
    on_device = isinstance(encoder, TorchEncoder) and encoder.device != "cpu"
    return on_device or isinstance(encoder, Int8Encoder | SentenceTransformerEncoder)


def calibrate_int8(encoder: Encoder, texts: Sequence[str]) -> None:
    """Calibrate an encoder that computes in int8; other encoders are left alone.

    Args:
        texts: a sample of the documents. A single text is not enough, and changes nothing.
    """
    if (quantised := _in_int8(encoder)) is not None and len(texts) > 1:
        quantised.calibrate(texts)


def int8_loss(encoder: Encoder) -> Loss | None:
    """Return the loss of an encoder that computes in int8; None for others."""
    quantised = _in_int8(encoder)
    return None if quantised is None else quantised.loss


def without_int8(encoder: Encoder) -> Encoder:
    """Return the encoder before quantisation; others are returned as they are."""
    quantised = _in_int8(encoder)
    return encoder if quantised is None else quantised.exact


def _in_int8(encoder: Encoder) -> Int8Encoder | None:
    return encoder if isinstance(encoder, Int8Encoder) else None
