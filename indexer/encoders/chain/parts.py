"""The kinds of encoders. Other files ask here and not for classes."""

from __future__ import annotations

from typing import TypeGuard

from indexer.encoders.openvino.onnx import OnnxEncoder
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder

Compilable = TorchEncoder | StaticEncoder | OnnxEncoder
"""An encoder that can be compiled."""


def on_torch(encoder: Encoder) -> TorchEncoder | None:
    """Return an encoder whose transformer runs on torch in likewise's own code; None for every other."""
    return encoder if isinstance(encoder, TorchEncoder) else None


def is_compilable(encoder: Encoder) -> TypeGuard[Compilable]:
    """Return whether likewise knows what the modules of an encoder do."""
    return isinstance(encoder, TorchEncoder | StaticEncoder | OnnxEncoder)


def stays_on_torch(encoder: Encoder) -> bool:
    """Return whether an encoder runs only on torch, although its caller did not name torch."""
    on_device = isinstance(encoder, TorchEncoder) and encoder.device != "cpu"
    return on_device or isinstance(encoder, SentenceTransformerEncoder)
