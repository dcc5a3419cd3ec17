"""Turns a torch encoder into an OpenVINO graph on disk that encoder.py runs without torch.

Pooling, dense modules, post-processing and normalisation go into the graph. Its vectors are compared with
torch's before the folder appears: a graph that is not the same encoder never does.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.cache import cache_folder
from indexer.encoders.hardware import Precision
from indexer.encoders.locate import find_model, read_json, sha256
from indexer.encoders.openvino.encoder import GRAPH, MANIFEST, POST, RECIPE, TOKENIZER, CompiledEncoder, damage
from indexer.encoders.port import Encoder, steady
from indexer.encoders.postprocessing import PostProcessed
from indexer.encoders.probes import PROBES
from indexer.encoders.torch.automodel import one_line, quiet
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.int8 import exact
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

MIN_COSINE = 0.9995
"""Between both runtimes on the probes: no other text is then below 0.999."""


_UNUSED = "unused"
"""A file beside a graph in the cache that was only measured."""

_PASSING = "alloc", "memory", "thread", "resource temporarily", "no space"
"""In messages of errors of the system, which another try may not meet."""


class NotCompilable(ModelError):
    """The model is of a kind that cannot be compiled, or its graph gives other vectors: no other try will do better."""


def compile_encoder(encoder: Encoder, folder: Path, precision: Precision = "auto") -> None:
    """Write `encoder` as a compiled encoder into `folder`, which must not exist or is replaced.

    A graph of it in the user's cache is copied and compared anew, and not made a second time; one that was made
    to be measured, and is slower than torch, is then removed there.

    Args:
        precision: that it is to run in; `auto` is what the hardware likes.

    Raises:
        NotCompilable: the encoder is of a kind that cannot be compiled, or the graph's vectors are not torch's.
        ModelError: it did not succeed for another reason.
    """
    encoder = steady(exact(encoder))  # The graph is compared with torch itself.
    inner = encoder.inner if isinstance(encoder, PostProcessed) else encoder
    if not isinstance(inner, TorchEncoder):
        raise NotCompilable(f"model {encoder.recipe.model!r} is not a transformer with pooling: only torch can run it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        draft = Path(temporary) / "encoder"
        draft.mkdir()
        post = encoder if isinstance(encoder, PostProcessed) else None
        made = _place_in_cache(encoder, precision)
        if not _copied_graph(made, draft):
            _write_graph(inner, post, draft / GRAPH, whole=precision == "float32")
        (draft / TOKENIZER).write_text(inner.tokenizer.json, encoding="utf-8")
        (draft / RECIPE).write_text(encoder.recipe.to_json(), encoding="utf-8")
        if isinstance(encoder, PostProcessed):
            (draft / POST).write_bytes(encoder.post_parameters() or b"")
        sums = {file.name: sha256(file) for file in sorted(draft.iterdir())}
        worst = 0.0
        for hint in _hints(encoder, precision):
            manifest = json.dumps({"precision": hint, "sha256": sums}, indent=1)
            (draft / MANIFEST).write_text(manifest, encoding="utf-8")
            worst = _agreement(encoder, CompiledEncoder.open(draft, cache=None))
            if worst >= MIN_COSINE:
                break
        else:
            raise NotCompilable(
                f"the compiled {encoder.recipe} differs from torch's (cosine {worst:.4f}, below {MIN_COSINE}): "
                "it will run on torch"
            )
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        if folder != made and (made / _UNUSED).exists():
            shutil.rmtree(made, ignore_errors=True)


def _copied_graph(made: Path, draft: Path) -> bool:
    """Copy the graph of a compiled encoder into `draft` if it is whole; False where there is none to copy."""
    if not made.is_dir() or damage(made):
        return False
    sums = json.loads((made / MANIFEST).read_text(encoding="utf-8"))["sha256"]
    names = GRAPH, str(Path(GRAPH).with_suffix(".bin"))
    try:
        for name in names:
            shutil.copyfile(made / name, draft / name)
    except FileNotFoundError:  # Another process has just removed it.
        copied = False
    else:
        copied = all(sha256(draft / name) == sums[name] for name in names)
    if not copied:
        for name in names:
            (draft / name).unlink(missing_ok=True)
    return copied


def _hints(encoder: Encoder, precision: Precision) -> tuple[str, ...]:
    """Precisions of OpenVINO to try in this order; "" is its own choice.

    Whitening magnifies what bfloat16 rounds off, perhaps on another machine than the one that compares.
    """
    if precision == "auto":
        return ("f32",) if isinstance(encoder, PostProcessed) else ("", "f32")
    return ("bf16",) if precision == "bfloat16" else ("f32",)


def compile_in_cache(encoder: Encoder, precision: Precision = "auto") -> CompiledEncoder:
    """`encoder` compiled, from the user's cache folder if that was done before. Raises as `compile_encoder`."""
    folder = cached_graph(encoder, precision)
    (folder / _UNUSED).unlink(missing_ok=True)
    return CompiledEncoder.open(folder)


def cached_graph(encoder: Encoder, precision: Precision = "auto") -> Path:
    """The folder in the user's cache with `encoder` compiled, made if need be. Raises as `compile_encoder`."""
    folder = _place_in_cache(encoder, precision)
    if folder.is_dir() and not damage(folder):
        return folder
    with _one_at_a_time(folder.parent):
        if not folder.is_dir() or damage(folder):  # Another process may have been first.
            for draft in folder.parent.glob(".*-*"):  # of a process that was killed: no other one compiles here now
                shutil.rmtree(draft, ignore_errors=True)
            compile_encoder(encoder, folder, precision)
    return folder


def has_graph(encoder: Encoder, precision: str) -> bool:
    """Whether there is a graph in the user's cache already."""
    return _place_in_cache(encoder, precision).is_dir()


def not_used(encoder: Encoder, precision: str) -> None:
    """Note that the graph in the cache was measured and lost: an index that takes a copy of it may remove it."""
    with contextlib.suppress(OSError):
        (_place_in_cache(encoder, precision) / _UNUSED).touch()


def _place_in_cache(encoder: Encoder, precision: str) -> Path:
    return cache_folder() / "compiled" / f"{encoder.recipe.identity}-{precision}"


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process, and one of its threads, compile into `folder`; the others wait."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def _agreement(encoder: Encoder, compiled: CompiledEncoder) -> float:
    """The smallest cosine between both's vectors of the probes, alone and in a batch."""
    found = []
    for texts in ([PROBES[0]], [PROBES[-1]], list(PROBES)):
        wanted, got = (one.encode(texts, truncate=True) for one in (encoder, compiled))
        found.append(float((wanted * got).sum(axis=1).min()))
    return min(found)


def _write_graph(encoder: TorchEncoder, post: PostProcessed | None, path: Path, *, whole: bool) -> None:
    """Trace the model and everything behind it, and save it as OpenVINO's intermediate representation.

    Weights are kept in float16, or `whole` in float32 and twice the size.
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
            # The tracer warns that a graph may not generalise: the probes find out.
            warnings.simplefilter("ignore")
            module = _module(encoder, post)
            # Not openvino.convert_model: that one sends telemetry.
            decoder = TorchScriptPythonDecoder(module, example_input={"ids": ids, "mask": mask})
            frontend = FrontEndManager().load_by_framework("pytorch")
            graph = frontend.convert(frontend.load(decoder))
        graph.reshape({name: [-1, -1] for name in range(2)})
        openvino.save_model(graph, path, compress_to_fp16=not whole)
    except Exception as error:
        passing = isinstance(error, OSError | MemoryError) or any(word in str(error).lower() for word in _PASSING)
        kind = ModelError if passing else NotCompilable
        raise kind(f"{encoder.recipe} cannot be compiled ({one_line(error)}): it will run on torch") from error


def _module(encoder: TorchEncoder, post: PostProcessed | None) -> Any:
    """A torch module from ids and mask (batch, length) to unit rows (batch, dimensions), float32."""
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
            out = F.normalize(out[:, : encoder.dimensions], dim=-1)
            if post is not None:
                out = out - torch.from_numpy(post.mean)
                out = out if post.matrix is None else out @ torch.from_numpy(post.matrix)
                out = F.normalize(out[:, : post.dimensions], dim=-1)
            return out

    return Graph().eval()


def _pool(tokens: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Padded states (batch, length, hidden) to (batch, hidden); what torch/pooling.py does to packed ones."""
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
