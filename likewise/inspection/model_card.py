"""A model described by its files: parameters by name and shape, layers, limits, modules. Loads no weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from indexer.encoders.recipes.locate import has_two_routes, read_json, weight_files
from indexer.encoders.recipes.recipe import RecipeSpec
from indexer.encoders.torch.checkpoint import Checkpoint
from indexer.encoders.torch.pooling_head import Head, plain_transformer, read_head
from indexer.errors import ModelError
from likewise.inspection.tokens import token_limit

_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8"}
_BUFFERS = ("position_ids", "token_type_ids")
"""Names of tensors in old checkpoints that are not learned."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor of learned weights.

    Attributes:
        name: as in the file; parameters of a module begin with the module's folder.
        count: number of its weights.
        dtype: as stored.
    """

    name: str
    shape: tuple[int, ...]
    count: int
    dtype: str


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model by its files.

    Attributes:
        model, folder: its name as requested, and its folder.
        files: path and bytes of each file of weights.
        fingerprint: sha256 over weights, tokenizer and configuration.
        architecture: architecture of its transformer (`bert`, ...), or the kind of its first module.
        layers, hidden, heads: numbers of layers (without the embedding layer), of hidden units and of attention heads;
            None without a transformer.
        vocabulary: number of tokens that it knows, if its configuration says so.
        dimensions: of a text's vector from the model's own modules.
        max_tokens: how many tokens it reads of one text, special tokens counted.
        modules: kinds of its modules, in the order of modules.json.
        pooling: of its own modules; () if it does not pool the states of a transformer.
        query_prompt, document_prompt: text put before texts of that role.
        parameters: the parameters of each file, sorted by name, layer 2 before layer 10.
        question: the part of a Router that embeds questions, if this describes the part that embeds documents.
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
    question: ModelDescription | None = None

    @property
    def total(self) -> int:
        """Number of learned weights."""
        return sum(parameter.count for parameter in self.parameters)

    @property
    def dtype(self) -> str:
        """The dtype of its weights as stored; several, with commas between, if they differ."""
        return ", ".join(sorted({parameter.dtype for parameter in self.parameters}))


def describe(model: str) -> ModelDescription:
    """Describe the model of a name or folder.

    Raises:
        ModelError: the model is not found, has no weights, or its files cannot be read.
    """
    spec = RecipeSpec(model)
    if has_two_routes(Checkpoint(spec, False).folder):
        documents, questions = (_described(replace(spec, route=route)) for route in ("document", "query"))
        return replace(documents, question=questions)
    return _described(spec)


def _described(spec: RecipeSpec) -> ModelDescription:
    checkpoint = Checkpoint(spec, False)
    folder, place = checkpoint.folder, checkpoint.transformer
    modules = checkpoint.modules or []
    kinds = tuple(module["type"].rpartition(".")[2] for module in modules)
    config = read_json(place / "config.json", {}) if place else {}
    layers = _first(config, "num_hidden_layers", "n_layers")
    hidden = _first(config, "hidden_size", "dim", "d_model")
    head = read_head(folder, layers, spec.route) if place and layers and plain_transformer(place) else None
    places = [folder / module["path"] for module in modules] or [folder]
    files = [file for module in dict.fromkeys(places) for file in weight_files(module)]
    parameters = tuple(parameter for file in files for parameter in _read(file, folder))
    return ModelDescription(
        spec.model,
        str(folder),
        tuple((file.relative_to(folder).as_posix(), file.stat().st_size) for file in files),
        checkpoint.fingerprint,
        config.get("model_type", kinds[0] if kinds else "unknown"),
        layers,
        hidden,
        _first(config, "num_attention_heads", "n_heads", "num_heads"),
        config.get("vocab_size"),
        _dimensions(spec, head, hidden, kinds, parameters),
        token_limit(checkpoint),
        kinds,
        head.poolings if head else (),
        *checkpoint.prompts,
        parameters,
    )


def _dimensions(
    spec: RecipeSpec, head: Head | None, hidden: int | None, kinds: tuple[str, ...], parameters: tuple[Parameter, ...]
) -> int:
    if head and hidden:
        return head.dimensions(hidden)
    if kinds and kinds[0] == "StaticEmbedding" and not {"Dense", "LSTM", "CNN"} & set(kinds):
        return parameters[0].shape[-1]
    from indexer.encoders.load import load_encoder

    return load_encoder(spec, device="cpu").dimensions  # Only sentence-transformers understands these modules.


def _first(config: dict[str, Any], *names: str) -> int | None:
    """Return the value of a setting that has several names in the configurations of architectures."""
    return next((int(config[name]) for name in names if name in config), None)


def _read(file: Path, folder: Path) -> Iterator[Parameter]:
    """Yield the parameters of one file of weights. Of a safetensors file only the header is read."""
    module = file.parent.relative_to(folder).as_posix()
    prefix = "" if module == "." else f"{module}/"
    try:
        tensors = _header(file) if file.suffix == ".safetensors" else _pickled(file)
        for name, shape, dtype in sorted(tensors, key=lambda item: _by_number(item[0])):
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
        for name in weights.keys():  # noqa: SIM118 - this object is not a dict.
            part = weights.get_slice(name)
            yield name, tuple(part.get_shape()), _DTYPES.get(part.get_dtype(), part.get_dtype().lower())


def _pickled(file: Path) -> Iterator[tuple[str, tuple[int, ...], str]]:
    import torch

    for name, tensor in torch.load(file, map_location="meta", weights_only=True).items():
        yield name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
