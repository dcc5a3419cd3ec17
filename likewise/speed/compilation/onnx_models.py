"""Loading a model whose folder has only ONNX files, to which pooling is added."""

from __future__ import annotations

from pathlib import Path

from indexer.encoders.machine.hardware import Precision
from indexer.encoders.recipes.locate import read_json
from indexer.encoders.recipes.prompts import known_pooling
from indexer.encoders.tokens.tokenizer import Tokenizer
from indexer.encoders.torch.automodel import MAX_POSITIONS, from_padding
from indexer.encoders.torch.checkpoint import Checkpoint
from indexer.encoders.torch.pooling_head import read_head
from indexer.errors import ModelError
from likewise.speed.compilation.graph import onnx_graph, pools_itself
from likewise.speed.compilation.onnx_encoder import OnnxEncoder


def load_onnx(checkpoint: Checkpoint, place: Path, file: Path, precision: Precision) -> OnnxEncoder:
    """Load a model whose folder has only ONNX files; arguments and errors are those of `Speed.load_onnx`."""
    checkpoint.require_float32(precision)
    spec = checkpoint.spec
    config = read_json(place / "config.json", {})
    last = int(config.get("num_hidden_layers") or config.get("n_layers") or 0)
    if spec.layers not in (None, (-1,), (last,)) or spec.pooling == "pooler":
        raise ModelError(f"model {spec.model!r} has only ONNX files, which show the last layer alone: leave layers out")
    # The recipe of such a model names a pooling that nobody has asked for.
    if spec.pooling is not None and not spec.stored and pools_itself(file):
        raise ModelError(
            f"model {spec.model!r} has only ONNX files, which pool by themselves: leave the pooling out, or fetch its "
            "weights"
        )
    own = read_head(checkpoint.folder, last, spec.route) if (checkpoint.folder / "modules.json").exists() else None
    if own is not None and (own.dense or len(own.poolings) > 1):
        raise ModelError(f"model {spec.model!r} has only ONNX files and more modules than pooling: fetch its weights")
    pooling = spec.pooling or (own.poolings[0] if own else known_pooling(spec.model, checkpoint.folder))
    width = int(onnx_graph(file, pooling, None).output(0).get_partial_shape()[1].get_length())
    own_modules = own is not None and spec.pooling is None
    positions = min(int(config.get("max_position_embeddings") or MAX_POSITIONS), MAX_POSITIONS)
    limit = checkpoint.limit(place, positions - from_padding(config))
    recipe = checkpoint.recipe(width, limit, *(() if own_modules else ((last,), "mean", pooling)))
    tokenizer = Tokenizer(checkpoint.tokenizer_json(place), limit, *checkpoint.prompts)
    import openvino

    graph = onnx_graph(file, pooling, recipe.dimensions)
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    return OnnxEncoder(recipe, tokenizer, openvino.Core().compile_model(graph, "CPU", settings), file, pooling)
