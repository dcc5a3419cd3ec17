"""A torch encoder traced into an OpenVINO graph: transformer, pooling, dense modules, post-processing, unit length.

A static model, which has a vector for each token and no transformer, becomes a graph that gathers and averages rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.chain.parts import Traceable
from indexer.encoders.recipes.locate import find_model, read_json
from indexer.encoders.recipes.postprocessing import PostProcessed
from indexer.encoders.torch.automodel import one_line, quiet
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

_PASSING = "alloc", "memory", "thread", "resource temporarily", "no space"
"""Words in messages of system errors. Such an error may not occur at the next try."""


class NotCompilable(ModelError):
    """A model of a kind that cannot be compiled, or whose graph gives other vectors: another try would not help."""


def write_graph(encoder: Traceable, post: PostProcessed | None, path: Path, *, whole: bool) -> None:
    """Trace the model and every later step, and save them as OpenVINO's intermediate representation.

    Args:
        post: the post-processing, or None.
        whole: store the weights in float32. With float16 the file has half the size.

    Raises:
        NotCompilable: OpenVINO cannot run this model.
        ModelError: compiling failed for a reason that may not be the model, such as lack of memory.
    """
    import openvino
    import torch
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    ids = torch.ones((2, 6), dtype=torch.int64)
    mask = torch.ones((2, 6), dtype=torch.int64)
    mask[1, 4:] = 0
    try:
        with torch.inference_mode(), quiet(), warnings.catch_warnings():
            # The tracer warns that a graph may not generalise; comparing vectors afterwards shows whether it does.
            warnings.simplefilter("ignore")
            module = _transformer(encoder, post) if isinstance(encoder, TorchEncoder) else _static(encoder, post)
            # openvino.convert_model would send telemetry.
            decoder = TorchScriptPythonDecoder(module, example_input={"ids": ids, "mask": mask})
            frontend = FrontEndManager().load_by_framework("pytorch")
            graph = frontend.convert(frontend.load(decoder))
        graph.reshape({name: [-1, -1] for name in range(2)})
        openvino.save_model(graph, path, compress_to_fp16=not whole)
    except Exception as error:
        passing = isinstance(error, OSError | MemoryError) or any(word in str(error).lower() for word in _PASSING)
        kind = ModelError if passing else NotCompilable
        raise kind(f"{encoder.recipe} cannot be compiled ({one_line(error)}): it will run on torch") from error


def _static(encoder: SentenceTransformerEncoder, post: PostProcessed | None) -> Any:
    """Return a module like that of `_transformer`. A text without a known token becomes a row of zeros."""
    import torch

    weights = encoder.model[0].embedding.weight.detach().float()

    class Graph(torch.nn.Module):
        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            sizes = mask.sum(1, keepdim=True).clamp(min=1)
            mean = (torch.nn.functional.embedding(ids, weights) * mask[:, :, None]).sum(1) / sizes
            known = (mean != 0).any(1, keepdim=True).float()  # post-processing would give zeros a direction
            return _finished(mean, encoder.dimensions, post) * known

    return Graph().eval()


def _finished(out: torch.Tensor, dimensions: int, post: PostProcessed | None) -> torch.Tensor:
    """Return pooled rows cut to their dimensions, post-processed, and of unit length."""
    import torch
    import torch.nn.functional as F

    out = F.normalize(out[:, :dimensions], dim=-1)
    if post is not None:
        out = out - torch.from_numpy(post.mean)
        out = out if post.matrix is None else out @ torch.from_numpy(post.matrix)
        out = F.normalize(out[:, : post.dimensions], dim=-1)
    return out


def _transformer(encoder: TorchEncoder, post: PostProcessed | None) -> Any:
    """Return a torch module from ids and mask (batch, length) to unit rows (batch, dimensions), float32."""
    import torch
    import torch.nn.functional as F
    from transformers import AutoModel

    folder = _folder(encoder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    head = encoder.head

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            states = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
            tokens = torch.cat([states[n] for n in head.layers], dim=-1)
            if head.combine != "concat":
                tokens = torch.stack([states[n] for n in head.layers]).sum(0)
                tokens = tokens / len(head.layers) if head.combine == "mean" else tokens
            out = torch.cat([_pool(tokens, mask, pooling) for pooling in head.poolings], dim=-1)
            if "pooler" in head.poolings:
                out = self.model.pooler(out[:, None])
            for dense in head.dense:
                out = F.linear(out, dense.weight, dense.bias)
                out = getattr(torch, dense.activation)(out) if dense.activation else out
            return _finished(out, encoder.dimensions, post)

    return Graph().eval()


def _pool(tokens: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Pool padded states (batch, length, hidden) into (batch, hidden), as torch/pooling.py pools packed ones."""
    import torch

    weights = mask[:, :, None].to(tokens.dtype)
    if pooling in ("cls", "pooler"):
        return tokens[:, 0]
    if pooling == "max":
        return (tokens + (weights - 1) * 1e9).amax(1)
    if pooling == "last":
        position = torch.cumsum(mask, 1) == mask.sum(1, keepdim=True)
        return (tokens * (position[:, :, None] * weights)).sum(1)
    if pooling == "weighted_mean":
        weights = weights * torch.cumsum(mask, 1)[:, :, None].to(tokens.dtype)
    total, size = (tokens * weights).sum(1), weights.sum(1)
    return total / (size.sqrt() if pooling == "mean_sqrt_len" else size)


def _folder(encoder: TorchEncoder) -> Path:
    folder = find_model(encoder.recipe.model)
    modules = read_json(folder / "modules.json", [{"path": ""}])
    return folder / str(modules[0]["path"])
