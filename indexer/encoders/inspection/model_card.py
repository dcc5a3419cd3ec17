"""What a model's files hold: parameters by name and shape, layers, limits, modules. Loads no weights.

Tokens and hidden states are in tokens.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.encoders.checkpoint import Checkpoint
from indexer.encoders.inspection.tokens import token_limit
from indexer.encoders.locate import read_json, weight_files
from indexer.encoders.recipe import RecipeSpec
from indexer.encoders.torch.pooling_head import Head, plain_transformer, read_head
from indexer.errors import ModelError

_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8"}
_BUFFERS = ("position_ids", "token_type_ids")  # counters that old checkpoints carry: not learned


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor of learned weights; a module's parameters carry its folder's name."""

    name: str
    shape: tuple[int, ...]
    count: int
    dtype: str


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model by its files.

    Attributes:
        model, folder: its name as asked, and where it is.
        files: (path, bytes) of each file of weights.
        fingerprint: sha256 over weights, tokenizer and configuration.
        architecture: of its transformer (`bert`, ...), or the kind of its first module.
        layers, hidden, heads: of its transformer; None where it has none. Layer 0, the embeddings, is not counted.
        vocabulary: entries of its embedding table, if its configuration says.
        dimensions: of a text's vector by the model's own modules.
        max_tokens: read of one text, special tokens counted.
        modules: kinds in order, as modules.json has them.
        pooling: of its own modules; () where it does not pool a transformer's states.
        query_prompt, document_prompt: put before texts of that role.
        parameters: of each file in the order of their names, layer 2 before layer 10.
    """

    model: str
    folder: str
    files: tuple[tuple[str, int], ...]
    fingerprint: str
    architecture: str
    layers: int | None
    hidden: int | None
    heads: int | None
    vocabulary: int | None
    dimensions: int
    max_tokens: int
    modules: tuple[str, ...]
    pooling: tuple[str, ...]
    query_prompt: str
    document_prompt: str
    parameters: tuple[Parameter, ...]

    @property
    def total(self) -> int:
        return sum(parameter.count for parameter in self.parameters)

    @property
    def dtype(self) -> str:
        """Of its weights, as stored; several where they differ."""
        return ", ".join(sorted({parameter.dtype for parameter in self.parameters}))


def describe(model: str) -> ModelDescription:
    """A model by name or folder.

    Raises:
        ModelError: a model that is not found, lacks its weights or whose files cannot be read.
    """
    checkpoint = Checkpoint(RecipeSpec(model), False)
    folder, place = checkpoint.folder, checkpoint.transformer
    modules = read_json(folder / "modules.json", [])
    kinds = tuple(module["type"].rpartition(".")[2] for module in modules)
    config = read_json(place / "config.json", {}) if place else {}
    layers = _first(config, "num_hidden_layers", "n_layers")
    hidden = _first(config, "hidden_size", "dim", "d_model")
    head = read_head(folder, layers) if place and layers and plain_transformer(place) else None
    places = [folder / module["path"] for module in modules] or [folder]
    files = [file for each in dict.fromkeys(places) for file in weight_files(each)]
    parameters = tuple(parameter for file in files for parameter in _read(file, folder))
    return ModelDescription(
        model,
        str(folder),
        tuple((file.relative_to(folder).as_posix(), file.stat().st_size) for file in files),
        checkpoint.fingerprint,
        config.get("model_type", kinds[0] if kinds else "unknown"),
        layers,
        hidden,
        _first(config, "num_attention_heads", "n_heads", "num_heads"),
        config.get("vocab_size"),
        _dimensions(model, head, hidden, kinds, parameters),
        token_limit(checkpoint),
        kinds,
        head.poolings if head else (),
        *checkpoint.prompts,
        parameters,
    )


def _dimensions(
    model: str, head: Head | None, hidden: int | None, kinds: tuple[str, ...], parameters: tuple[Parameter, ...]
) -> int:
    if head and hidden:
        return head.dimensions(hidden)
    if kinds and kinds[0] == "StaticEmbedding" and not {"Dense", "LSTM", "CNN"} & set(kinds):
        return parameters[0].shape[-1]
    from indexer.encoders.load import load_encoder

    return load_encoder(model, device="cpu").dimensions  # modules that only their own library understands


def _first(config: dict[str, Any], *names: str) -> int | None:
    """A setting that architectures name differently."""
    return next((int(config[name]) for name in names if name in config), None)


def _read(file: Path, folder: Path) -> Iterator[Parameter]:
    """Parameters of one file of weights: of safetensors the header alone is read."""
    module = file.parent.relative_to(folder).as_posix()
    prefix = "" if module == "." else f"{module}/"
    try:
        found = _header(file) if file.suffix == ".safetensors" else _pickled(file)
        for name, shape, dtype in sorted(found, key=lambda item: _by_number(item[0])):
            if not name.endswith(_BUFFERS):
                yield Parameter(prefix + name, shape, math.prod(shape), dtype)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"weights {file} cannot be read ({error}): fetch the model again") from error


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split(".")]


def _header(file: Path) -> Iterator[tuple[str, tuple[int, ...], str]]:
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as weights:
        for name in weights.keys():  # noqa: SIM118 - it is no dict
            part = weights.get_slice(name)
            yield name, tuple(part.get_shape()), _DTYPES.get(part.get_dtype(), part.get_dtype().lower())


def _pickled(file: Path) -> Iterator[tuple[str, tuple[int, ...], str]]:
    import torch

    for name, tensor in torch.load(file, map_location="meta", weights_only=True).items():
        yield name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
