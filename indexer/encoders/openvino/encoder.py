"""The encoder without torch: an OpenVINO graph in a folder, as export.py wrote it.

Needs numpy, tokenizers and openvino alone, so that one query in a fresh process is quick. Nothing is sent anywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.batching import batches, unit
from indexer.encoders.cache import cache_folder
from indexer.encoders.port import Role
from indexer.encoders.recipe import Recipe
from indexer.encoders.tokenizer import Tokenizer
from indexer.errors import ModelError
from indexer.records import Vector

GRAPH, TOKENIZER, RECIPE, POST = "encoder.xml", "tokenizer.json", "recipe.json", "post.safetensors"
MANIFEST = "manifest.json"
"""`sha256` of every other file by name, and the `precision` that was found to be needed: "" for the CPU's own."""

_FILES = GRAPH, str(Path(GRAPH).with_suffix(".bin"))
_BATCH_TOKENS = 1024
"""A hit's sentences, ten hits' worth: half the time of 4,096 (benchmarks.sentences: 60 ms, not 100)."""

_WIDTH = 16
"""Lengths are padded to multiples of it: OpenVINO makes its kernels ready anew for every shape that it meets."""


class CompiledEncoder:
    """An `Encoder` on a compiled graph; threads share it, each with its own inference request."""

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, model: Any) -> None:
        self.recipe = recipe
        self.tokenizer = tokenizer
        self._model = model
        self._thread = threading.local()

    @classmethod
    def open(
        cls, folder: Path, cache: Path | Literal["user"] | None = "user", threads: int | None = None
    ) -> CompiledEncoder:
        """Open a folder written by `compile_encoder`.

        `cache` is where the graph made ready for this machine is kept; "user" is the user's cache folder.
        `threads` that compute; None: OpenVINO's own number, one per core.

        Raises:
            ModelError: files are missing or not those that were written.
        """
        sums, precision = _manifest(folder)
        try:
            texts = {name: (folder / name).read_bytes() for name in (TOKENIZER, RECIPE, POST) if name in sums}
        except OSError as error:
            raise _none(folder, error) from error
        for name, content in texts.items():
            if hashlib.sha256(content).hexdigest() != sums[name]:
                raise _changed(folder / name)
        recipe = Recipe.from_json(texts[RECIPE].decode())
        prompts = recipe.query_prompt, recipe.document_prompt
        tokenizer = Tokenizer(texts[TOKENIZER].decode(), recipe.max_tokens, *prompts)
        model = _ready(folder, sums, precision, user_cache() if cache == "user" else cache, threads)
        return cls(recipe, tokenizer, model)

    @property
    def dimensions(self) -> int:
        return self.recipe.dimensions

    @property
    def max_tokens(self) -> int:
        return self.recipe.max_tokens

    def overhead(self, role: Role = "document") -> int:
        return self.tokenizer.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.tokenizer.offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        rows = self.tokenizer.ids(texts, role, truncate)
        found = np.empty((len(rows), self.dimensions), np.float32)
        for order in batches(rows, _BATCH_TOKENS):
            longest = len(rows[order[0]])
            width = max(longest, min(longest + -longest % _WIDTH, self.max_tokens))
            ids = np.zeros((len(order), width), np.int64)
            mask = np.zeros_like(ids)
            for place, index in enumerate(order):
                ids[place, : len(rows[index])] = rows[index]
                mask[place, : len(rows[index])] = 1
            found[order] = unit(self._request().infer([ids, mask])[0], order, self.recipe.model)
        return found

    def _request(self) -> Any:
        """This thread's inference request: one is not to be shared."""
        if not hasattr(self._thread, "request"):
            self._thread.request = self._model.create_infer_request()
        return self._thread.request


def _manifest(folder: Path) -> tuple[dict[str, str], str]:
    """The checksums of the other files, and the precision."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sums, precision = manifest["sha256"], manifest["precision"]
        if not isinstance(sums, dict) or not {*_FILES, TOKENIZER, RECIPE} <= sums.keys():
            raise ValueError(f"{MANIFEST} lacks a file")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _none(folder, error) from error
    return sums, precision


def _none(folder: Path, error: Exception) -> ModelError:
    return ModelError(f"{folder} holds no compiled encoder ({error}): compile it again")


def _ready(folder: Path, sums: dict[str, str], precision: str, cache: Path | None, threads: int | None) -> Any:
    """The graph compiled for this machine, from the cache if it is there.

    OpenVINO knows a cached graph by its path alone, so it is given a copy whose path is its content: indexes
    of one model share it wherever they lie, and a rebuilt index never meets the graph of the one before.
    """
    import openvino

    settings = {"PERFORMANCE_HINT": "LATENCY"}
    if threads is not None:
        settings["INFERENCE_NUM_THREADS"] = str(threads)
    if precision:
        settings["INFERENCE_PRECISION_HINT"] = precision
    copy = None if cache is None else _copied(folder, cache, _FILES, sums)
    if copy is None:
        _verify(folder, _FILES, sums)
    else:
        settings["CACHE_DIR"] = str(copy)
    try:
        return openvino.Core().compile_model((copy or folder) / GRAPH, "CPU", settings)
    except RuntimeError as error:
        raise ModelError(
            f"{folder} does not run on this machine's CPU: {' '.join(str(error).split())[:200]}"
        ) from error


def _copied(folder: Path, cache: Path, names: Sequence[str], sums: dict[str, str]) -> Path | None:
    """The cache's verified copy of the graph, or None where the cache cannot be written."""
    copy = cache / hashlib.sha256("".join(sums[name] for name in names).encode()).hexdigest()[:32]
    if copy.is_dir():
        return copy
    import shutil
    import tempfile

    _verify(folder, names, sums)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as temporary:
            draft = Path(temporary) / copy.name
            draft.mkdir()
            for name in names:
                shutil.copyfile(folder / name, draft / name)
            _verify(draft, names, sums)
            with contextlib.suppress(FileExistsError):  # another process was first
                draft.rename(copy)
    except OSError:
        return None
    return copy


def _verify(folder: Path, names: Sequence[str], sums: dict[str, str]) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name} is missing: compile the encoder again")
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sums[name]:
                raise _changed(folder / name)


def damage(folder: Path) -> str | None:
    """What is wrong with a compiled encoder; None where nothing is, or there is none."""
    if not folder.exists():
        return None
    try:
        sums, _ = _manifest(folder)
        _verify(folder, list(sums), sums)
    except ModelError as error:
        return str(error)
    return None


def user_cache() -> Path:
    """Where graphs are kept that were made ready for this machine."""
    return cache_folder() / "encoders"


def _changed(path: Path) -> ModelError:
    return ModelError(f"{path} is not the file that was written (checksum): compile the encoder again")
