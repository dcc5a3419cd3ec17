"""The steps after the transformer: choosing layers, pooling, dense modules. From a recipe or from modules.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.encoders.recipes.locate import modules_of, read_json
from indexer.encoders.recipes.recipe import Combine, Pooling
from indexer.encoders.torch.pooling import Runs, combine_layers, pool
from indexer.encoders.torch.weights import load_weights, weight_shards
from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

# sentence-transformers' names of the modes.
_MODES: dict[str, Pooling] = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
# Older models have one setting per mode; if several are on, the vectors are concatenated in this order.
_SWITCHES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Settings that sentence-transformers 5.5 and later write for a model without special treatment.
_DEFAULTS = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
_ACTIVATIONS = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.linear.Identity": "",
}


@dataclass(frozen=True, slots=True)
class Dense:
    """A Dense module: weight (out, in), bias (out,) or None, activation `tanh`, `relu` or nothing."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    activation: str


@dataclass(frozen=True, slots=True)
class Head:
    """The steps from hidden states to a vector, before it is shortened and scaled to unit length.

    Attributes:
        layers: hidden layers; 0 is the embedding layer.
        combine: how several layers become one.
        poolings: one, or several whose vectors are concatenated.
        dense: modules that are applied in order.
    """

    layers: tuple[int, ...]
    combine: Combine
    poolings: tuple[Pooling, ...]
    dense: tuple[Dense, ...] = ()

    def dimensions(self, hidden: int) -> int:
        """Return the dimensions of the vectors, for hidden states of width `hidden`."""
        if self.dense:
            return len(self.dense[-1].weight)
        return hidden * len(self.poolings) * (len(self.layers) if self.combine == "concat" else 1)

    def vectors(self, states: Mapping[int, torch.Tensor], runs: Runs) -> torch.Tensor:
        """Return vectors (texts, dimensions), float32; the caller applies the pooler, if there is one.

        Args:
            states: packed hidden states (tokens, hidden) by layer.
            runs: the blocks of texts of one length.
        """
        import torch
        import torch.nn.functional as F

        tokens = combine_layers([states[layer] for layer in self.layers], self.combine)
        out = torch.cat([pool(tokens, runs, pooling) for pooling in self.poolings], dim=-1)
        for dense in self.dense:
            out = F.linear(out, dense.weight.to(out.device), None if dense.bias is None else dense.bias.to(out.device))
            out = getattr(torch, dense.activation)(out) if dense.activation else out
        return out


def read_head(folder: Path, layers: int, route: str = "") -> Head | None:
    """Return the head that modules.json describes.

    A folder without modules.json gets the mean of the last layer, as in sentence-transformers.

    Args:
        layers: number of the transformer's layers.
        route: as in `modules_of`.

    Returns:
        None if the modules are not Transformer, Pooling, Dense..., Normalize, or have unknown settings.
    """
    modules = modules_of(folder, route)
    if modules is None:
        return Head((layers,), "mean", ("mean",))
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    supported = ["Transformer", "Pooling", *["Dense"] * kinds.count("Dense")]
    if kinds not in (supported, [*supported, "Normalize"]) or not plain_transformer(folder / modules[0]["path"]):
        return None
    poolings = _poolings(read_json(folder / modules[1]["path"] / "config.json", {}))
    dense = [_dense(folder / module["path"]) for module in modules[2:] if module["type"].endswith("Dense")]
    if not poolings or None in dense:
        return None
    return Head((layers,), "mean", poolings, tuple(step for step in dense if step is not None))


def plain_transformer(folder: Path) -> bool:
    """Return whether a Transformer module only runs the model: it has no settings that likewise does not know."""
    settings = transformer_settings(folder)
    others = {name: value for name, value in settings.items() if name not in ("max_seq_length", "do_lower_case")}
    return not settings.get("do_lower_case") and all(_DEFAULTS.get(name) == others[name] for name in others)


def transformer_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a Transformer module. The name of their file depends on the model's age."""
    files = sorted(folder.glob("sentence_*_config.json"))
    settings: dict[str, Any] = read_json(files[0], {}) if files else {}
    return settings


def _poolings(config: dict[str, Any]) -> tuple[Pooling, ...]:
    """Return the poolings of a Pooling module; () for settings that likewise does not know."""
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for switch, mode in _SWITCHES.items() if config.get(switch)]
    modes = [modes] if isinstance(modes, str) else modes
    if not config.get("include_prompt", True) or not set(modes) <= set(_MODES):
        return ()
    return tuple(_MODES[mode] for mode in modes)


def _dense(folder: Path) -> Dense | None:
    """Return a Dense module, or None for settings that likewise does not know. Raises ModelError if it is damaged."""
    config = read_json(folder / "config.json", {})
    activation = _ACTIVATIONS.get(config.get("activation_function", ""))
    names = {
        config.get(key, "sentence_embedding") or "sentence_embedding"
        for key in ("module_input_name", "module_output_name")
    }
    if activation is None or config.get("use_residual") or names != {"sentence_embedding"}:
        return None
    if not weight_shards(folder):
        return None
    weights = load_weights(folder)
    if "linear.weight" not in weights:
        raise ModelError(f"dense module {folder} lacks its weights: fetch the model again")
    bias = weights.get("linear.bias")
    return Dense(weights["linear.weight"].float(), None if bias is None else bias.float(), activation)
