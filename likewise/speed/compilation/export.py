"""Compiling a torch encoder into a folder that openvino/encoder.py runs without torch, and the cache of such folders.

The graph itself is traced in graph.py. Its vectors are compared with torch's before the folder appears, so that a graph
that gives other vectors is never used.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from indexer.encoders.machine.hardware import FLOAT32_ARCHITECTURES, Precision
from indexer.encoders.machine.user_folders import one_at_a_time
from indexer.encoders.openvino import files
from indexer.encoders.openvino.encoder import CompiledEncoder, remove_prepared
from indexer.encoders.openvino.kept import kept_folder
from indexer.encoders.recipes.locate import read_json, sha256
from indexer.encoders.recipes.port import Encoder, steady
from indexer.encoders.tokens.piece_table import write_table
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import ModelError, NothingKnown
from likewise.speed.compilation.graph import Compilable, NotCompilable, write_graph

PROBES = (
    "a",
    "How do vaccines work?",
    "Größe und Maß: 12,5 % — naïve façade, 東京都, здравствуйте",
    "The bank robber was seen fishing on the river bank. " * 4,
    "def f(x): return x ** 2  # squares of numbers, not of towns\n" * 8,
)
"""Texts for comparing two ways to compute a model: short and long, in several languages, and code."""

MIN_TORCH_COSINE = 0.9995
"""Minimum cosine between both runtimes on PROBES. All other texts then have at least 0.999."""


def compile_encoder(encoder: Encoder, folder: Path, precision: Precision = "auto") -> None:
    """Write `encoder` as a compiled encoder into `folder`, which is replaced if it exists.

    If the user's cache holds the graph, the cached graph is copied and compared again, and no new graph is made. The
    graph is compared as it is prepared for this machine, and stays prepared in the user's cache for the first question.

    Args:
        precision: the precision of the compiled encoder; `auto` leaves the choice to the hardware.

    Raises:
        NotCompilable: this kind of encoder cannot be compiled, or the graph gives other vectors than torch.
        ModelError: compiling failed for another reason.
    """
    encoder = steady(encoder)  # The graph must be compared with torch.
    if not isinstance(encoder, Compilable):
        raise NotCompilable(
            f"model {encoder.recipe.model!r} is neither a transformer with pooling nor static: only torch can run it"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        draft = Path(temporary) / "encoder"
        draft.mkdir()
        if not _copy_graph(kept_folder(encoder.recipe, precision), draft):
            write_graph(encoder, draft / files.GRAPH, whole=precision == "float32")
        (draft / files.TOKENIZER).write_text(encoder.tokenizer.json, encoding="utf-8")
        write_table(encoder.tokenizer.json, encoder.tokenizer.around, draft)
        (draft / files.RECIPE).write_text(encoder.recipe.to_json(), encoding="utf-8")
        sums = {file.name: sha256(file) for file in sorted(draft.iterdir())}
        special: dict[str, object] = {} if encoder.tokenizer.special_tokens else {"special_tokens": False}
        cosine = 0.0
        for hint in _hints(encoder, precision):
            manifest = json.dumps({"precision": hint, "sha256": sums} | special, indent=1)
            (draft / files.MANIFEST).write_text(manifest, encoding="utf-8")
            try:
                cosine = _lowest_cosine(encoder, CompiledEncoder.open(draft))
            except (ModelError, RuntimeError) as error:
                remove_prepared(sums)
                if isinstance(error, NotCompilable):
                    raise
                # The encoder has given vectors, and the graph gives none.
                raise NotCompilable(f"the compiled {encoder.recipe} does not compute: it will run on torch") from error
            if cosine >= MIN_TORCH_COSINE:
                break
            remove_prepared(sums)
        else:
            raise NotCompilable(
                f"the compiled {encoder.recipe} differs from torch's (cosine {cosine:.4f}, below {MIN_TORCH_COSINE}): "
                "it will run on torch"
            )
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)


def _copy_graph(cached: Path, draft: Path) -> bool:
    """Copy the graph of a compiled encoder into `draft`. Return False if it is missing or damaged."""
    try:
        sums, *_ = files.read_manifest(cached)
        for name in files.GRAPH_FILES:
            shutil.copyfile(cached / name, draft / name)
        files.verify(draft, files.GRAPH_FILES, sums)
    except (ModelError, OSError):  # Another process may have just removed it.
        return False
    return True


def _hints(encoder: Encoder, precision: Precision) -> tuple[str, ...]:
    """Return OpenVINO's names of the precisions to try, in this order; "" leaves the choice to OpenVINO.

    Only float32 is tried for architectures that need it: a graph that passes on this machine might fail on a machine
    that computes in bfloat16.
    """
    if precision == "auto":
        folder = encoder.folder if isinstance(encoder, TorchEncoder) else None
        architecture = read_json(folder / "config.json", {}).get("model_type") if folder else None
        return ("f32",) if architecture in FLOAT32_ARCHITECTURES else ("", "f32")
    if precision == "int8":
        raise ModelError("OpenVINO does not compute in int8: name the runtime torch, or leave precision out")
    return ("bf16",) if precision == "bfloat16" else ("f32",)


def compile_in_cache(encoder: Encoder, precision: Precision = "auto") -> Path:
    """Compile `encoder` in the user's cache folder, unless that was done before.

    Returns:
        The folder of the compiled encoder, for `CompiledEncoder.open`.

    Raises:
        ModelError: as `compile_encoder`.
    """
    folder = kept_folder(encoder.recipe, precision)
    if not folder.is_dir() or files.damage(folder):
        with one_at_a_time(folder.parent):
            if not folder.is_dir() or files.damage(folder):  # Another process may have been first.
                # No other process compiles here now, so every draft is of a process that was killed.
                for draft in folder.parent.glob(".*-*"):
                    shutil.rmtree(draft, ignore_errors=True)
                compile_encoder(encoder, folder, precision)
    return folder


def _lowest_cosine(encoder: Encoder, compiled: CompiledEncoder) -> float:
    """Return the lowest cosine between the two encoders' vectors of PROBES, encoded one by one and in a batch.

    Raises:
        NotCompilable: the model cannot read any of PROBES, so nothing can be compared.
    """
    probes = list(PROBES)
    try:
        expected = encoder.encode(probes, truncate=True)
    except NothingKnown as error:
        probes = [text for number, text in enumerate(probes) if number not in error.texts]
        if not probes:
            raise NotCompilable(
                f"{encoder.recipe} knows no word of the texts that would prove its compiled encoder"
            ) from error
        expected = encoder.encode(probes, truncate=True)
    cosines = [(expected * compiled.encode(probes, truncate=True)).sum(axis=1).min()]
    for text in (probes[0], probes[-1]):
        alone, compiled_alone = (each.encode([text], truncate=True) for each in (encoder, compiled))
        cosines.append((alone * compiled_alone).sum())
    return float(min(cosines))
