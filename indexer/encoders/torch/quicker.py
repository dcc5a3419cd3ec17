"""The interface of the part `speed`: quicker ways to compute what torch computes. Without it torch computes everything.

doors.py finds the part.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from indexer.encoders.machine.hardware import Precision
    from indexer.encoders.recipes.port import Encoder
    from indexer.encoders.torch.checkpoint import Checkpoint
    from indexer.encoders.torch.encoder import Alternative, Transformer
    from indexer.listener import Listener


class Speed(Protocol):
    """Quicker ways for encoders. Their vectors have cosines of at least .9995 with those of torch. Only
    int8, which a caller must name, has lower ones."""

    def transformer(self, folder: Path, dtype: torch.dtype) -> Transformer | None:
        """Load the transformer of a folder for a CPU; None if its architecture is not known."""

    def quicken(self, cross_encoder: Any, dtype: torch.dtype) -> None:
        """Compute the hidden states of a CrossEncoder of sentence-transformers on a CPU in this precision, if its
        architecture is known. Its head stays as it is, in float32."""

    def alternative(self, precision: Precision) -> Alternative:
        """Return the other runtime for many documents on a CPU.

        Args:
            precision: the requested precision, or `auto`.
        """

    def for_documents(self, encoder: Encoder, *, listener: Listener) -> Encoder:
        """Return an encoder for documents, whose listener receives a note if the other runtime fails."""

    def ignored_override(self, encoder: Encoder) -> str | None:
        """Return a sentence for people if LIKEWISE_RUNTIME names a runtime that cannot run this encoder."""

    def compiled(self, encoder: Encoder, precision: Precision) -> Encoder:
        """Return an encoder compiled for OpenVINO. Raises ModelError if it cannot be compiled."""

    def load_onnx(self, checkpoint: Checkpoint, place: Path, file: Path, precision: Precision) -> Encoder:
        """Load a model whose folder has only ONNX files.

        Args:
            place: the folder of the transformer.
            file: the ONNX file.

        Raises:
            ModelError: it cannot be loaded, or cannot do what the request of the checkpoint asks.
        """
