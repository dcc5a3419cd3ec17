"""Models whose folder holds only ONNX files, as Xenova and onnx-community publish them; OpenVINO runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.recipes.recipe import Pooling, Recipe
from indexer.encoders.tokens.tokenizer import Tokenizer


class OnnxEncoder(CompiledEncoder):
    """An `Encoder` on the graph of an ONNX file, to which pooling is added.

    Attributes:
        file: the ONNX file.
        pooling: how hidden states are pooled, unless the file's own output is pooled.
    """

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, model: Any, file: Path, pooling: Pooling) -> None:
        super().__init__(recipe, tokenizer, model)
        self.file = file
        self.pooling = pooling
