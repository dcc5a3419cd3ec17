"""Turns a torch encoder into an OpenVINO graph on disk that encoder.py runs without torch.

Pooling, dense modules, post-processing and normalisation go into the graph. Its vectors are compared with
torch's before the folder appears: a graph that is not the same encoder never does.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from indexer.encoders.cache import cache_folder
from indexer.encoders.hardware import Precision
from indexer.encoders.locate import sha256
from indexer.encoders.openvino.encoder import GRAPH, MANIFEST, POST, RECIPE, TOKENIZER, CompiledEncoder, damage
from indexer.encoders.openvino.graph import NotCompilable, write_graph
from indexer.encoders.port import Encoder, steady
from indexer.encoders.postprocessing import PostProcessed
from indexer.encoders.probes import PROBES
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.int8 import exact

MIN_COSINE = 0.9995
"""Between both runtimes on the probes: no other text is then below 0.999."""


_UNUSED = "unused"
"""A file beside a graph in the cache that was only measured."""


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
            write_graph(inner, post, draft / GRAPH, whole=precision == "float32")
        (draft / TOKENIZER).write_text(inner.tokenizer.json, encoding="utf-8")
        (draft / RECIPE).write_text(encoder.recipe.to_json(), encoding="utf-8")
        if isinstance(encoder, PostProcessed):
            (draft / POST).write_bytes(encoder.fitted_parameters)
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


def compile_in_cache(encoder: Encoder, precision: Precision = "auto", *, keep: bool = False) -> Path:
    """Compile `encoder` in the user's cache folder, unless that was done before.

    Args:
        keep: whether the graph is wanted for good, and not only to be measured.

    Returns:
        The folder of the compiled encoder, for `CompiledEncoder.open`.

    Raises:
        ModelError: as `compile_encoder`.
    """
    folder = _place_in_cache(encoder, precision)
    if not folder.is_dir() or damage(folder):
        with _one_at_a_time(folder.parent):
            if not folder.is_dir() or damage(folder):  # Another process may have been first.
                # No other process compiles here now, so every draft is of a process that was killed.
                for draft in folder.parent.glob(".*-*"):
                    shutil.rmtree(draft, ignore_errors=True)
                compile_encoder(encoder, folder, precision)
    if keep:
        (folder / _UNUSED).unlink(missing_ok=True)
    return folder


def has_graph(encoder: Encoder, precision: str) -> bool:
    """Whether there is a graph in the user's cache already."""
    return _place_in_cache(encoder, precision).is_dir()


def mark_unused(encoder: Encoder, precision: str) -> None:
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
