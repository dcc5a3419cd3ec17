"""An encoder as an OpenVINO graph: from token ids to unit rows.

The graph of a transformer is traced from torch, up to the hidden states of its tokens; a static model is a table of
rows. Every later step (pooling, dense modules, unit length) is the same for both and needs no torch.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.encoders.recipes.recipe import Pooling
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import ModelError
from likewise.speed.compilation.onnx_encoder import OnnxEncoder

if TYPE_CHECKING:
    import torch

    from indexer.encoders.torch.pooling_head import Dense

Compilable = TorchEncoder | StaticEncoder | OnnxEncoder
"""An encoder whose modules likewise knows, so that it can be compiled."""

_PASSING = "alloc", "memory", "thread", "resource temporarily", "no space"
"""Words in messages of system errors. Such an error may not occur at the next try."""


class NotCompilable(ModelError):
    """A model of a kind that cannot be compiled, or whose graph gives other vectors: another try would not help."""


def write_graph(encoder: Compilable, path: Path, *, whole: bool) -> None:
    """Save the model and every later step as OpenVINO's intermediate representation.

    Args:
        whole: store the weights in float32. With float16 the file has half the size.

    Raises:
        NotCompilable: OpenVINO cannot run this model.
        ModelError: compiling failed for a reason that may not be the model, such as lack of memory.
    """
    import openvino

    try:
        if isinstance(encoder, StaticEncoder):
            graph = _static(encoder)
        elif isinstance(encoder, OnnxEncoder):
            graph = onnx_graph(encoder.file, encoder.pooling, encoder.dimensions)
        else:
            graph = _transformer(encoder)
        openvino.save_model(graph, path, compress_to_fp16=not whole)
    except ModelError:
        raise
    except Exception as error:
        passing = isinstance(error, OSError | MemoryError) or any(word in str(error).lower() for word in _PASSING)
        kind, why = (ModelError, "this machine lacks something now") if passing else (NotCompilable, "OpenVINO cannot")
        raise kind(
            f"{encoder.recipe} cannot be compiled ({why}, {type(error).__name__}): it will run on torch"
        ) from error


def _static(encoder: StaticEncoder) -> Any:
    """Return the graph of a static model. A text without a known token becomes a row of zeros."""
    import openvino
    from openvino import opset15 as ops

    ids, mask = (ops.parameter([-1, -1], np.int64, name=name) for name in ("ids", "mask"))
    tokens = ops.gather(ops.constant(encoder.table[:, : encoder.dimensions]), ids, np.int64(0))
    return openvino.Model([_unit(pooled(tokens, mask, "mean"), encoder.dimensions)], [ids, mask])


def onnx_graph(file: Path, pooling: Pooling, dimensions: int | None) -> Any:
    """Return the graph of an ONNX file with pooling and every later step.

    Args:
        dimensions: how many leading dimensions of the model's vectors to keep; None keeps all.

    Raises:
        ModelError: the file cannot be read, or takes other inputs than a text's tokens.
    """
    import openvino
    from openvino import opset15 as ops

    model = _read_onnx(file)
    ids, mask = (ops.parameter([-1, -1], np.int64, name=name) for name in ("ids", "mask"))
    given = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": ops.multiply(ids, np.int64(0)),  # A text alone is segment 0.
        "position_ids": ops.maximum(ops.subtract(ops.cum_sum(mask, np.int64(1)), np.int64(1)), np.int64(0)),
    }
    for parameter in model.get_parameters():
        name = parameter.output(0).get_any_name()
        if name not in given:
            raise ModelError(f"model {file} reads {name!r}, and not only a text's tokens: name an embedding model")
        node = ops.convert(given[name], parameter.get_element_type())
        for reader in parameter.output(0).get_target_inputs():
            reader.replace_source_output(node.output(0))
    source = _onnx_output(model)
    states = ops.convert(source, np.float32)
    rows = states if _is_pooled(source) else pooled(states, mask, pooling)
    return openvino.Model([_unit(rows, 2**31 if dimensions is None else dimensions)], [ids, mask])


def pools_itself(file: Path) -> bool:
    """Return whether an ONNX file gives one vector per text, and not hidden states. Raises ModelError as `onnx_graph`
    does."""
    return _is_pooled(_onnx_output(_read_onnx(file)))


def _read_onnx(file: Path) -> Any:
    import openvino

    try:
        return openvino.Core().read_model(file)
    except RuntimeError as error:
        raise ModelError(
            f"model {file} cannot be loaded: it is damaged, or not for OpenVINO; fetch it again"
        ) from error


def _onnx_output(model: Any) -> Any:
    """Return the output of a model that is nearest to a vector of the text."""
    outputs = {name: result for result in model.get_results() for name in result.output(0).get_names()}
    names = ("sentence_embedding", "last_hidden_state", "token_embeddings", *outputs)
    return outputs[next(name for name in names if name in outputs)].input_value(0)


def _is_pooled(output: Any) -> bool:
    return bool(output.get_partial_shape().rank.get_length() == 2)


def _transformer(encoder: TorchEncoder) -> Any:
    """Return the graph of a transformer: its traced states, and every later step."""
    import openvino
    from openvino import opset15 as ops

    head = encoder.head
    graph = _traced(encoder)
    ids, mask = graph.get_parameters()
    states = graph.get_results()[0].input_value(0)
    # The pooler is a part of the model, so it is traced with it.
    poolings = head.poolings if "pooler" not in head.poolings else ()
    rows = [pooled(states, mask, pooling) for pooling in poolings] or [states]
    out = ops.concat(rows, -1) if len(rows) > 1 else rows[0]
    for dense in head.dense:
        out = _dense(out, dense)
    return openvino.Model([_unit(out, encoder.dimensions)], [ids, mask])


def _traced(encoder: TorchEncoder) -> Any:
    """Return the graph from ids and mask (batch, length) to the head's combined states (batch, length, width), or to
    the pooler's rows (batch, width)."""
    import torch
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    from indexer.encoders.torch.automodel import load_transformer, quiet

    head = encoder.head
    model, _ = load_transformer(encoder.folder, torch.float32, trust_remote_code=encoder.trust_remote_code)
    layers = model.config.num_hidden_layers

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            inner = head.layers != (layers,)
            out = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=inner, return_dict=True)
            states = [out.hidden_states[n] if n < layers else out.last_hidden_state for n in head.layers]
            if "pooler" in head.poolings:
                return torch.as_tensor(self.model.pooler(states[0][:, :1]))
            if head.combine == "concat":
                return torch.cat(states, dim=-1)
            total = torch.stack(states).sum(0)
            return total / len(states) if head.combine == "mean" else total

    ids = torch.ones((2, 6), dtype=torch.int64)
    mask = torch.ones((2, 6), dtype=torch.int64)
    mask[1, 4:] = 0
    printing = quiet(own_code=encoder.trust_remote_code)
    with torch.inference_mode(), printing, _traceable_masks(), warnings.catch_warnings():
        # The tracer warns that a graph may not generalise; comparing vectors afterwards shows whether it does.
        warnings.simplefilter("ignore")
        # openvino.convert_model would send telemetry.
        decoder = TorchScriptPythonDecoder(Graph().eval(), example_input={"ids": ids, "mask": mask})
        frontend = FrontEndManager().load_by_framework("pytorch")
        graph = frontend.convert(frontend.load(decoder))
    graph.reshape({name: [-1, -1] for name in range(2)})
    return graph


_masks_lock = threading.Lock()
"""Held while transformers' functions for masks are replaced. Two threads would put each other's back."""


@contextmanager
def _traceable_masks() -> Iterator[None]:
    """Let transformers make attention masks that can be traced and run by OpenVINO.

    torch.vmap, which masks of EmbeddingGemma use, cannot be traced. A padding token whose window holds only padding may
    attend to nothing, which OpenVINO computes as NaN: it attends to everything, and nobody reads it.
    """
    import torch
    from transformers import masking_utils

    functions = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
    names = "sdpa", "eager"

    def traceable(function: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, **options: Any) -> Any:
            mask = function(*args, **{**options, "use_vmap": False})
            if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
                mask = mask | ~mask.any(-1, keepdim=True)
            return mask

        return make

    with _masks_lock:
        for name in names:
            functions[name] = traceable(functions[name])
        try:
            yield
        finally:
            for name in names:
                del functions[name]


def pooled(tokens: Any, mask: Any, pooling: str) -> Any:
    """Pool padded states (batch, length, hidden) into (batch, hidden), as torch/pooling.py pools packed ones."""
    from openvino import opset15 as ops

    numbers = ops.convert(mask, np.float32)
    weights = ops.unsqueeze(numbers, np.array([2]))
    if pooling == "cls":
        return ops.gather(tokens, np.int64(0), np.int64(1))
    if pooling == "max":
        hidden = ops.multiply(ops.subtract(weights, np.float32(1)), np.float32(1e9))
        return ops.reduce_max(ops.add(tokens, hidden), np.array([1]))
    position = ops.cum_sum(mask, np.int64(1))  # in whole numbers: bfloat16 counts to 256
    if pooling == "last":
        last = ops.equal(position, ops.reduce_sum(mask, np.array([1]), keep_dims=True))
        weights = ops.multiply(weights, ops.unsqueeze(ops.convert(last, np.float32), np.array([2])))
        return ops.reduce_sum(ops.multiply(tokens, weights), np.array([1]))
    if pooling == "weighted_mean":
        weights = ops.multiply(weights, ops.unsqueeze(ops.convert(position, np.float32), np.array([2])))
    total = ops.reduce_sum(ops.multiply(tokens, weights), np.array([1]))
    size = ops.maximum(ops.reduce_sum(weights, np.array([1])), np.float32(1))
    return ops.divide(total, ops.sqrt(size) if pooling == "mean_sqrt_len" else size)


def _dense(rows: Any, dense: Dense) -> Any:
    from openvino import opset15 as ops

    out = ops.matmul(rows, ops.constant(dense.weight.numpy()), transpose_a=False, transpose_b=True)
    out = out if dense.bias is None else ops.add(out, ops.constant(dense.bias.numpy()))
    return {"tanh": ops.tanh, "relu": ops.relu}[dense.activation](out) if dense.activation else out


def _unit(rows: Any, dimensions: int) -> Any:
    """Return the leading dimensions of rows, scaled to unit length; a row of zeros stays one."""
    from openvino import opset15 as ops

    cut = ops.slice(rows, np.array([0]), np.array([dimensions]), np.array([1]), np.array([1]))
    length = ops.sqrt(ops.reduce_sum(ops.multiply(cut, cut), np.array([1]), keep_dims=True))
    return ops.divide(cut, ops.maximum(length, np.float32(1e-12)))
