"""The files of a compiled encoder: their names, their checksums and their damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from indexer.encoders.recipes.recipe import Recipe
from indexer.errors import ModelError

GRAPH, TOKENIZER, RECIPE = "encoder.xml", "tokenizer.json", "recipe.json"
MANIFEST = "manifest.json"
"""Holds the `sha256` of every other file by name, the `precision` to compute in ("" for the CPU's default), and, if the
model reads none, that there are no `special_tokens`."""

GRAPH_FILES = GRAPH, str(Path(GRAPH).with_suffix(".bin"))
"""The graph and its weights."""


def read_manifest(folder: Path) -> tuple[dict[str, str], str, bool]:
    """Return the checksums of the other files by name, the precision, and whether there are special tokens."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sums, precision = manifest["sha256"], manifest["precision"]
        special_tokens = manifest.get("special_tokens", True) is not False
        if not isinstance(sums, dict) or not {*GRAPH_FILES, TOKENIZER, RECIPE} <= sums.keys():
            raise ValueError(f"{MANIFEST} lacks a file")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unusable_error(folder, error) from error
    return sums, precision, special_tokens


def verify(folder: Path, names: Sequence[str], sums: dict[str, str]) -> None:
    """Raise ModelError unless every file is there and has its checksum."""
    for name in names:
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name} is missing: compile the encoder again")
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sums[name]:
                raise checksum_error(folder / name)


def mapped_text(folder: Path, name: str, sums: dict[str, str]) -> Callable[[], str]:
    """Return a function that reads the text of a file, even if the file has been removed by then.

    Both raise ModelError: this one if the file cannot be read, the returned one if it does not have its checksum.
    """
    try:
        content = np.memmap(folder / name, mode="r")
    except (OSError, ValueError) as error:
        raise unusable_error(folder, error) from error

    def read() -> str:
        data = content.tobytes()
        if hashlib.sha256(data).hexdigest() != sums[name]:
            raise checksum_error(folder / name)
        return data.decode()

    return read


def damage(folder: Path) -> str | None:
    """Return what is wrong with a compiled encoder; None if nothing is wrong, or if there is no folder."""
    if not folder.exists():
        return None
    try:
        sums, *_ = read_manifest(folder)
        verify(folder, list(sums), sums)
        Recipe.from_json((folder / RECIPE).read_text(encoding="utf-8"))
    except ModelError as error:
        return str(error)
    return None


def unusable_error(folder: Path, error: Exception) -> ModelError:
    """Return the error for a folder that is not a compiled encoder."""
    return ModelError(f"{folder} holds no compiled encoder ({error}): compile it again")


def checksum_error(path: Path) -> ModelError:
    """Return the error for a file whose checksum is wrong."""
    return ModelError(f"{path} is not the file that was written (checksum): compile the encoder again")
