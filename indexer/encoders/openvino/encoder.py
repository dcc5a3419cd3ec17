"""The compiled encoder: an OpenVINO graph in a folder that compilation/export.py wrote.

It needs only numpy, tokenizers and openvino, so that a single query in a new process is quick. No telemetry is sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexer.encoders.machine.hardware import cores
from indexer.encoders.machine.user_folders import cache_folder
from indexer.encoders.openvino.files import (
    GRAPH,
    GRAPH_FILES,
    RECIPE,
    TOKENIZER,
    mapped_text,
    read_manifest,
    verify,
)
from indexer.encoders.recipes.port import Role, Tokenizing
from indexer.encoders.recipes.recipe import Recipe
from indexer.encoders.tokens import piece_table
from indexer.encoders.tokens.batching import unit
from indexer.encoders.tokens.tokenizer import Ids, Tokenizer
from indexer.errors import ModelError
from indexer.records import Vector

_BATCH_TOKENS = 1024
"""Tokens of one batch. The sentences of ten hits take 60 ms, and 100 ms in batches of 4,096."""

_WIDTH = 16
"""Texts are padded to multiples of this many tokens, because OpenVINO prepares its kernels for each new shape."""


class CompiledEncoder(Tokenizing):
    """An `Encoder` on a compiled graph. Threads share it; each has its own inference request."""

    tokenizer: Tokenizer

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, model: Any) -> None:
        self.recipe = recipe
        self.tokenizer = tokenizer
        self._model = model
        self._thread = threading.local()

    @classmethod
    def open(cls, folder: Path, cache: Path | None = None, threads: int | None = None) -> CompiledEncoder:
        """Open a folder written by `compile_encoder`.

        Args:
            cache: folder for the graph that is prepared for this machine; None is in the user's cache folder.
            threads: number of threads that compute; None is OpenVINO's default, one per core.

        Raises:
            ModelError: a file is missing or damaged, or the graph does not run on this machine's CPU.
        """
        sums, precision, special_tokens = read_manifest(folder)
        recipe = Recipe.from_json(mapped_text(folder, RECIPE, sums)())
        prompts = recipe.query_prompt, recipe.document_prompt
        pieces = None
        if sums.keys() >= {*piece_table.FILES}:
            verify(folder, piece_table.FILES, sums)
            pieces = piece_table.PieceTable(folder)
        tokenizer = Tokenizer(mapped_text(folder, TOKENIZER, sums), recipe.max_tokens, *prompts, special_tokens, pieces)
        model = _prepare(folder, sums, precision, cache or _user_cache(), threads)
        return cls(recipe, tokenizer, model)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        rows = self.tokenizer.ids(texts, role, truncate)
        vectors = np.empty((len(rows), self.dimensions), np.float32)
        for order, width in self._batches(rows):
            ids = np.zeros((len(order), width), np.int64)
            mask = np.zeros_like(ids)
            for row, index in enumerate(order):
                ids[row, : len(rows[index])] = rows[index]
                mask[row, : len(rows[index])] = 1
            vectors[order] = unit(self._request().infer([ids, mask])[0], order, self.recipe.model)
        return vectors

    def _batches(self, rows: Sequence[Ids]) -> Iterator[tuple[list[int], int]]:
        """Yield batches of texts, as positions in `rows`, with the width that each is padded to.

        Each text is padded as if it were alone: 32 questions take a fifth less CPU than padded to the longest question.
        """
        by_width: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            width = max(1, len(row), min(len(row) + -len(row) % _WIDTH, self.max_tokens))
            by_width.setdefault(width, []).append(index)
        for width, indexes in sorted(by_width.items(), reverse=True):
            most = max(1, _BATCH_TOKENS // width)
            for start in range(0, len(indexes), most):
                yield indexes[start : start + most], width

    def _request(self) -> Any:
        """Return this thread's inference request. Threads must not share a request."""
        if not hasattr(self._thread, "request"):
            self._thread.request = self._model.create_infer_request()
        return self._thread.request


def _prepare(folder: Path, sums: dict[str, str], precision: str, cache: Path, threads: int | None) -> Any:
    """Return the graph prepared for this machine, from the cache if it is there.

    OpenVINO identifies a cached graph by its path alone, so it is given a copy whose path is the hash of its content.
    All indexes with one model then share the cached graph, and a rebuilt index never gets the graph of the old index.
    """
    import openvino

    settings = {"PERFORMANCE_HINT": "LATENCY"}
    if threads is not None:
        settings["INFERENCE_NUM_THREADS"] = str(threads)
        if threads < cores():  # otherwise every process would bind its threads to the same first cores
            settings["ENABLE_CPU_PINNING"] = "NO"
    if precision:
        settings["INFERENCE_PRECISION_HINT"] = precision
    copy = _copy(folder, cache, sums)
    if copy is None:
        verify(folder, GRAPH_FILES, sums)
    else:
        settings["CACHE_DIR"] = str(copy)
    try:
        return openvino.Core().compile_model((copy or folder) / GRAPH, "CPU", settings)
    except RuntimeError as error:
        raise ModelError(
            f"{folder} does not run on this machine's CPU: {' '.join(str(error).split())[:200]}"
        ) from error


def _copy(folder: Path, cache: Path, sums: dict[str, str]) -> Path | None:
    """Return the folder of the verified copy in the cache, or None if the cache cannot be written."""
    copy = _place(cache, sums)
    if all((copy / name).is_file() for name in GRAPH_FILES):
        return copy
    import shutil
    import tempfile

    verify(folder, GRAPH_FILES, sums)
    try:
        if copy.is_dir():  # Something has removed old files.
            shutil.rmtree(copy)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as temporary:
            draft = Path(temporary) / copy.name
            draft.mkdir()
            for name in GRAPH_FILES:
                shutil.copyfile(folder / name, draft / name)
            verify(draft, GRAPH_FILES, sums)
            with contextlib.suppress(FileExistsError):  # Another process has just made it.
                draft.rename(copy)
    except OSError:
        return None
    return copy


def _place(cache: Path, sums: dict[str, str]) -> Path:
    return cache / hashlib.sha256("".join(sums[name] for name in GRAPH_FILES).encode()).hexdigest()[:32]


def remove_prepared(sums: dict[str, str]) -> None:
    """Remove what the user's cache holds of a graph that is not used, by the checksums of its files."""
    import shutil

    shutil.rmtree(_place(_user_cache(), sums), ignore_errors=True)


def _user_cache() -> Path:
    return cache_folder() / "encoders"
