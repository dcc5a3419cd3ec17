"""Loading encoders: by a model's name, by a recipe's text, or by a recipe that an index has stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from indexer.doors import find, require
from indexer.encoders.chain.two_models import TwoModels
from indexer.encoders.kinds import loader_of, require_fingerprint
from indexer.encoders.machine.hardware import Precision, choose_device, choose_dtype
from indexer.encoders.machine.runtime import RUNTIME_NAMES, RUNTIME_VARIABLE, Runtime, RuntimeName, named_runtime
from indexer.encoders.recipes.locate import find_model, has_two_routes, onnx_file, read_json
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.recipes.recipe import (
    COMBINES,
    POOLINGS,
    Combine,
    Pooling,
    Recipe,
    RecipeSpec,
    parse_layers,
    spec_of,
)
from indexer.encoders.recipes.unsuitable import refuse_unsuitable
from indexer.encoders.static.encoder import StaticEncoder, read_table
from indexer.encoders.tokens.tokenizer import Tokenizer
from indexer.encoders.torch.automodel import AutoModel
from indexer.encoders.torch.checkpoint import Checkpoint
from indexer.encoders.torch.encoder import TorchEncoder, Transformer
from indexer.encoders.torch.fallback import open_sentence_transformer
from indexer.encoders.torch.pooling_head import Head, plain_transformer, read_head
from indexer.encoders.torch.quicker import Speed
from indexer.errors import LikewiseError, ModelError

if TYPE_CHECKING:
    import torch


def load_encoder(
    model: str | Path | RecipeSpec | Recipe,
    *,
    pooling: Pooling | None = None,
    layers: int | str | Sequence[int] | None = None,
    combine: Combine = "mean",
    runtime: RuntimeName = "auto",
    precision: Precision = "auto",
    device: str = "auto",
    max_tokens: int | None = None,
    dimensions: int | None = None,
    trust_remote_code: bool = False,
) -> Encoder:
    """Load a model as an encoder.

    Args:
        model: a name, a folder, a recipe's text (`bert-base-uncased:mean@-2`), a `RecipeSpec`, or the address of an
            endpoint (`http://localhost:11434/v1#NAME`) whose host this user has named: docs/models.md.
        pooling: how raw hidden states are pooled; None uses the model's own modules (SBERT).
        layers: hidden layers to pool (0 is the embedding layer, -1 the last), or text such as "-4..-1"; None is
            the last layer.
        combine: how several layers become one.
        runtime: the library that computes. `auto` is torch, but on a CPU without AMX for bfloat16 documents go to
            OpenVINO from the 2,000th text on, or the 100th if the model is already compiled (runtime_rule.py).
            LIKEWISE_RUNTIME names another runtime for documents. `torch` is always torch; `openvino` compiles once
            into the user's cache folder.
        precision: of the weights; `auto` is bfloat16 where the hardware has it, float32 otherwise. `int8` is the
            quickest on a CPU without bfloat16: vectors have cosines of about .99 with those in float32.
        device: `cpu`, `cuda`, ...; `auto` is CUDA where there is one.
        max_tokens: how many tokens of a text to read, special tokens and prompt counted; None is the model's own
            limit, which an endpoint does not tell: it needs a number.
        dimensions: how many leading dimensions to keep (Matryoshka); None keeps all.
        trust_remote_code: whether Python code that comes with the model may run.

    Returns:
        An encoder of unit vectors. If another runtime fails later, it logs that as a warning of the logger
        `likewise` and continues with torch.

    Raises:
        ModelError: the model cannot be found, trusted or loaded, or cannot do what the recipe asks.
        BadInput: OpenVINO is named, and the part of likewise that uses it is not installed.
    """
    spec = _spec(model)
    for name, value in (("max_tokens", max_tokens), ("dimensions", dimensions)):
        if value is not None and (not isinstance(value, Integral) or isinstance(value, bool)):
            raise ModelError(f"{name} is {value!r}: give a whole number")
    request = dataclasses.replace(
        spec,
        pooling=pooling or spec.pooling,
        layers=spec.layers if layers is None else _layers(layers),
        combine=combine if combine != "mean" else spec.combine,
        max_tokens=spec.max_tokens if max_tokens is None else int(max_tokens),
        dimensions=spec.dimensions if dimensions is None else int(dimensions),
    )
    return load_spec(request, Runtime(precision, device, trust_remote_code, runtime))


def load_spec(spec: RecipeSpec, runtime: Runtime) -> Encoder:
    """Load what a folder or a loader has: one model, or a model for each of the two routes of a Router.

    Raises:
        ModelError, BadInput: as `load_encoder` does.
    """
    if runtime.precision not in get_args(Precision):
        raise ModelError(f"precision {runtime.precision!r} is not one of {', '.join(get_args(Precision))}")
    if (loader := loader_of(spec.model)) is not None:
        return loader.load(spec, runtime)
    if spec.combine not in COMBINES:
        raise ModelError(f"combine {spec.combine!r} is not one of {', '.join(COMBINES)}")
    raw = spec.pooling is not None or spec.layers is not None
    if spec.combine != "mean" and not raw:
        raise ModelError(f"combine {spec.combine!r} is for hidden layers: name them, or leave it out")
    if runtime.name not in RUNTIME_NAMES:
        raise ModelError(f"runtime {runtime.name!r} is not one of {', '.join(RUNTIME_NAMES)}")
    if not raw:
        folder = find_model(spec.model, fingerprint=spec.fingerprint)
        refuse_unsuitable(folder, spec.model)
        if not spec.route and has_two_routes(folder):
            for_questions = dataclasses.replace(runtime, precision="auto")
            documents = _computed(dataclasses.replace(spec, route="document"), runtime)
            questions = _computed(dataclasses.replace(spec, route="query"), for_questions)
            if (width := questions.recipe.dimensions) != documents.recipe.dimensions:
                raise ModelError(
                    f"model {spec.model!r} gives questions {width} dimensions and documents "
                    f"{documents.recipe.dimensions}, so that no question can be compared: choose another model"
                )
            recipe = dataclasses.replace(documents.recipe, question=questions.recipe)
            return TwoModels(recipe, questions, lambda: documents)
    return _computed(spec, runtime)


def _computed(spec: RecipeSpec, runtime: Runtime) -> Encoder:
    speed: Speed | None = require("parts", "speed", "runtime openvino") if runtime.name == "openvino" else None
    encoder = _load(spec, runtime)
    return encoder if speed is None else speed.compiled(encoder, runtime.precision)


def _spec(model: str | Path | RecipeSpec | Recipe) -> RecipeSpec:
    match model:
        case RecipeSpec():
            return model
        case Recipe():
            return spec_of(model)
        case str() | Path():
            return RecipeSpec.parse(str(model))
    raise ModelError(f"model {model!r:.80} is not a name, folder or recipe")


def _layers(layers: int | str | Sequence[int]) -> tuple[int, ...]:
    parsed = parse_layers(layers) if isinstance(layers, str) else layers
    numbers = tuple(parsed) if isinstance(parsed, Iterable) else (parsed,)
    if not all(isinstance(number, Integral) and not isinstance(number, bool) for number in numbers):
        raise ModelError(f"layers {layers!r} are not layers: give whole numbers, such as -1 or [-4, -3, -2, -1]")
    return tuple(map(int, numbers))


def load_recipe(recipe: Recipe, runtime: Runtime | None = None) -> Encoder:
    """Load the encoder of a stored recipe.

    Raises:
        ModelError: the model is not found, or its files are not those the recipe was made with.
    """
    runtime = runtime or Runtime()
    if (loader := loader_of(recipe.model)) is not None:
        return loader.open(recipe, runtime)
    return require_fingerprint(_load(spec_of(recipe), runtime), recipe)


def _load(spec: RecipeSpec, runtime: Runtime) -> Encoder:
    try:
        return _load_files(spec, runtime)
    except LikewiseError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(
            f"model {spec.model!r} cannot be loaded, because its settings do not fit together "
            f"({type(error).__name__}: {' '.join(str(error).split())[:200]}): fetch it again"
        ) from error


def _load_files(spec: RecipeSpec, runtime: Runtime) -> Encoder:
    if named_runtime() == "openvino":  # Raises for an unknown runtime now, and not in the middle of a run.
        require("parts", "speed", f"{RUNTIME_VARIABLE}=openvino")
    checkpoint = Checkpoint(spec, runtime.trust_remote_code)
    place = checkpoint.transformer
    raw = spec.pooling is not None or spec.layers is not None
    if place is None and raw:
        raise ModelError(f"model {spec.model!r} has no transformer layers: leave pooling and layers out")
    if (static := _load_static(checkpoint, runtime)) is not None:
        return static
    if place is not None and (file := onnx_file(checkpoint.folder)) is not None:
        onnx: Speed = require("parts", "speed", f"model {spec.model!r}, which has only ONNX files,")
        return onnx.load_onnx(checkpoint, place, file, runtime.precision)
    device = choose_device(runtime.device)
    if place is None or not (raw or plain_transformer(place)):
        return _load_fallback(checkpoint, runtime.precision, device)
    dtype = choose_dtype(runtime.precision, device, read_json(place / "config.json", {}).get("model_type", ""))
    transformer = _transformer(place, checkpoint.fingerprint, dtype, device, runtime.trust_remote_code)
    head = _raw_head(spec, transformer) if raw else read_head(checkpoint.folder, transformer.layers, spec.route)
    if head is None:
        return _load_fallback(checkpoint, runtime.precision, device)
    limit = checkpoint.limit(place, transformer.positions)
    width = head.dimensions(transformer.hidden)
    # The model's fingerprint stands for its own modules; pooling that the caller chose is spelled out.
    own_modules = not raw and (checkpoint.folder / "modules.json").exists()
    recipe = checkpoint.recipe(width, limit, *(() if own_modules else (head.layers, head.combine, head.poolings[0])))
    tokenizer = Tokenizer(checkpoint.tokenizer_json(place), limit, *checkpoint.prompts)
    switching = runtime.name == "auto" and device == "cpu"
    speed: Speed | None = find("parts", "speed") if switching else None
    alternative = None if speed is None else speed.alternative(runtime.precision)
    return TorchEncoder(recipe, tokenizer, transformer, head, place, device, runtime.trust_remote_code, alternative)


def _load_static(checkpoint: Checkpoint, runtime: Runtime) -> StaticEncoder | None:
    """Load a static model without torch; None for any other model."""
    place = checkpoint.static
    if place is None:
        return None
    table = read_table(place)
    checkpoint.require_float32(runtime.precision)
    limit = checkpoint.limit_up_to(None)
    recipe = checkpoint.recipe(table.shape[1], limit)
    tokenizer = Tokenizer(checkpoint.tokenizer_json(place), limit, *checkpoint.prompts, special_tokens=False)
    return StaticEncoder(recipe, tokenizer, table)


def _load_fallback(checkpoint: Checkpoint, precision: Precision, device: str) -> Encoder:
    """Load a model whose modules likewise does not know through sentence-transformers."""
    checkpoint.require_float32(precision)
    return open_sentence_transformer(checkpoint, device)


@lru_cache(maxsize=4)  # Recipes of one model share the transformer. Models are large, so only a few are kept.
def _transformer(
    place: Path, fingerprint: str, dtype: torch.dtype, device: str, trust_remote_code: bool
) -> Transformer:
    speed: Speed | None = find("parts", "speed") if device == "cpu" else None
    quick = None if speed is None else speed.transformer(place, dtype)
    if quick is None and dtype.itemsize == 1:
        raise ModelError(f"likewise does not compute model {place} on {device} in int8: leave precision out")
    return AutoModel(place, dtype, device, trust_remote_code) if quick is None else quick


def _raw_head(spec: RecipeSpec, transformer: Transformer) -> Head:
    """Return the head of raw pooling, with its layers numbered from 0.

    Raises:
        ModelError: the model lacks a layer or the pooler that the request names.
    """
    pooling, combine = spec.pooling or "mean", spec.combine
    if pooling not in POOLINGS:
        raise ModelError(f"pooling {pooling!r} is not one of {', '.join(POOLINGS)}")
    last = transformer.layers
    requested = spec.layers if spec.layers is not None else (-1,)
    layers = tuple(layer if layer >= 0 else layer + last + 1 for layer in requested)
    for number, layer in zip(requested, layers, strict=True):
        if not 0 <= layer <= last:
            raise ModelError(
                f"model {spec.model!r} has no layer {number}: layers go from 0 (embeddings) to {last}, "
                f"or from -1 (the last) to {-last - 1}"
            )
    if not layers or len(set(layers)) < len(layers):
        raise ModelError(f"layers {requested} of model {spec.model!r}: name at least one, and each once")
    if pooling == "pooler" and layers != (last,):
        raise ModelError("pooler pooling reads only the last layer: leave layers out")
    if pooling == "pooler":
        import torch

        # The pooler moves its input to its own device.
        if transformer.pooler(torch.zeros(1, transformer.hidden)) is None:
            raise ModelError(f"model {spec.model!r} has no trained pooler: use cls or mean pooling")
    # Recipes that mean the same get the same identity: the order of layers matters only to concatenation, and
    # `combine` only if there are several layers.
    if combine != "concat":
        layers = tuple(sorted(layers))
    return Head(layers, combine if len(layers) > 1 else "mean", (pooling,))
