"""The weights of a model's folder as tensors: one file or shards, safetensors or pytorch_model.bin."""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.encoders.recipes.locate import read_json, weight_files
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch


def weight_shards(folder: Path) -> list[Path]:
    """Return the files that hold all weights of a model; none if the folder has other files of weights, too."""
    files = weight_files(folder)
    names = {file.name for file in files}
    for whole in ("model.safetensors", "pytorch_model.bin"):
        index = read_json(folder / f"{whole}.index.json", {}).get("weight_map") or {}
        if names in ({whole}, set(index.values())):
            return files
    return []


def bytes_in_16_bits(weights: Path) -> int:
    """Return how many bytes a file of weights takes with two bytes per number."""
    if weights.suffix != ".safetensors":
        return weights.stat().st_size // 2  # They are in 32 bits nearly always.
    from safetensors import safe_open

    with safe_open(weights, "np") as tensors:
        return sum(2 * prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights by name. Files of pickle are read without running code that they may hold.

    Raises:
        ModelError: a file is damaged or holds something other than weights.
    """
    from safetensors.torch import load_file

    weights: dict[str, torch.Tensor] = {}
    for file in weight_shards(folder):
        try:
            weights |= load_file(file) if file.suffix == ".safetensors" else unpickled(file, "cpu")
        except Exception as error:
            raise ModelError(f"weights {file} cannot be loaded: they are damaged; fetch the model again") from error
    return weights


def unpickled(file: Path, device: str) -> dict[str, torch.Tensor]:
    """Return the weights of a file of pickle on a device, without running code that it may hold."""
    import torch

    mapped = zipfile.is_zipfile(file)  # Files that torch wrote before 2020 cannot be mapped.
    loaded: dict[str, torch.Tensor] = torch.load(file, map_location=device, weights_only=True, mmap=mapped)
    return loaded
