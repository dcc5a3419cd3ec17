"""Quicker encoders: what the part `speed` gives to encoders. The rest of the part is imported when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.torch.quicker import Speed

if TYPE_CHECKING:
    import torch

    from indexer.encoders.machine.hardware import Precision
    from indexer.encoders.recipes.port import Encoder
    from indexer.encoders.torch.checkpoint import Checkpoint
    from indexer.encoders.torch.encoder import Alternative, Transformer
    from indexer.listener import Listener
    from likewise.speed.runtime_rule import Choice


class QuickEncoders(Speed):
    """Native blocks on torch, and OpenVINO."""

    def transformer(self, folder: Path, dtype: torch.dtype) -> Transformer | None:
        from likewise.speed.native import Native, settings

        return Native(folder, dtype) if settings(folder) is not None else None

    def quicken(self, cross_encoder: Any, dtype: torch.dtype) -> None:
        from likewise.speed.native_cross_encoder import compute_natively

        compute_natively(cross_encoder, dtype)

    def alternative(self, precision: Precision) -> Alternative:
        from likewise.speed.documents import OpenvinoForDocuments

        return OpenvinoForDocuments(precision)

    def for_documents(self, encoder: Encoder, *, listener: Listener) -> Encoder:
        from likewise.speed.documents import for_documents

        return for_documents(encoder, listener=listener)

    def ignored_override(self, encoder: Encoder) -> str | None:
        from likewise.speed.documents import ignored_override

        return ignored_override(encoder)

    def compiled(self, encoder: Encoder, precision: Precision) -> Encoder:
        from indexer.encoders.openvino.encoder import CompiledEncoder
        from likewise.speed.compilation.export import compile_in_cache

        return CompiledEncoder.open(compile_in_cache(encoder, precision))

    def load_onnx(self, checkpoint: Checkpoint, place: Path, file: Path, precision: Precision) -> Encoder:
        from likewise.speed.compilation.onnx_models import load_onnx

        return load_onnx(checkpoint, place, file, precision)

    def choose_runtime(self, precision: Precision, device: str) -> Choice:
        """Return the runtime that embeds many documents, as `choose_runtime` of runtime_rule.py does."""
        from likewise.speed.runtime_rule import choose_runtime

        return choose_runtime(precision, device)
