"""Every pooling and layer choice against a direct computation from transformers' hidden states."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hardware import FLOAT32

from indexer.encoders import encode_many, load_encoder
from indexer.encoders.recipes.locate import find_model
from indexer.encoders.recipes.recipe import POOLINGS
from indexer.encoders.tokens.tokenizer import Tokenizer

ARCHITECTURES = ["bert", "roberta", "distilbert", "mpnet"]
LAYERS = [(-1,), (-2,), (3,), (0,), (-4, -3, -2, -1), (0, -1)]


@functools.cache
def reference(folder: Path) -> transformers.PreTrainedModel:
    return transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()


def hidden_states(folder: Path, text: str, pad_to: int = 0) -> tuple[list[np.ndarray], np.ndarray | None]:
    """transformers' hidden states (layers + 1) of one text, without its padding, and its pooler_output."""
    model = reference(folder)
    tokenizer = Tokenizer((folder / "tokenizer.json").read_text(), 512)
    ids = tokenizer.ids([text])[0].tolist()
    pad = model.config.pad_token_id
    padding = max(0, pad_to - len(ids))
    mask = torch.tensor([[1] * len(ids) + [0] * padding])
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([ids + [pad] * padding]), attention_mask=mask, output_hidden_states=True)
    pooled = getattr(out, "pooler_output", None)
    states = [state[0, : len(ids)].numpy() for state in out.hidden_states]
    return states, None if pooled is None else pooled[0].numpy()


def pooled_by_hand(tokens: np.ndarray, pooling: str) -> np.ndarray:
    """(tokens, hidden) to (hidden,), written as a textbook has it."""
    count = len(tokens)
    weights = np.arange(1, count + 1)[:, None]
    return {
        "cls": lambda: tokens[0],
        "mean": lambda: tokens.mean(0),
        "max": lambda: tokens.max(0),
        "mean_sqrt_len": lambda: tokens.sum(0) / np.sqrt(count),
        "weighted_mean": lambda: (tokens * weights).sum(0) / weights.sum(),
        "last": lambda: tokens[-1],
    }[pooling]()


def combined_by_hand(layers: list[np.ndarray], combine: str) -> np.ndarray:
    if combine == "concat":
        return np.concatenate(layers, axis=1)
    return np.sum(layers, axis=0) / (len(layers) if combine == "mean" else 1)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("pooling", [pooling for pooling in POOLINGS if pooling != "pooler"])
def test_pooling_and_layers_as_computed_by_hand(
    tiny: Callable[[str], Path], sentences: list[str], kind: str, pooling: str
) -> None:
    folder = tiny(kind)
    padded = [hidden_states(folder, text, pad_to)[0] for text in sentences[:3] for pad_to in (0, 60)]
    for layers in LAYERS:
        for combine in ("mean", "sum", "concat") if len(layers) > 1 else ("concat",):
            encoder = load_encoder(folder, pooling=pooling, layers=layers, combine=combine, precision="float32")
            batched = encoder.encode(sentences)
            for number, states in enumerate(padded):
                tokens = combined_by_hand([states[layer] for layer in layers], combine)
                wanted = unit(pooled_by_hand(tokens, pooling))
                assert np.abs(batched[number // 2] - wanted).max() < FLOAT32


@pytest.mark.parametrize("kind", ["bert", "mpnet", "roberta"])
def test_pooler_is_transformers_pooler_output(tiny: Callable[[str], Path], sentences: list[str], kind: str) -> None:
    encoder = load_encoder(tiny(kind), pooling="pooler", precision="float32")
    for text, vector in zip(sentences, encoder.encode(sentences), strict=True):
        pooled = hidden_states(tiny(kind), text)[1]
        assert pooled is not None
        assert np.abs(vector - unit(pooled)).max() < FLOAT32


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_vector_does_not_depend_on_its_neighbours_or_position(
    tiny: Callable[[str], Path], sentences: list[str], kind: str
) -> None:
    encoder = load_encoder(tiny(kind), pooling="mean", precision="float32")
    together = encoder.encode(sentences)
    assert np.abs(together - encoder.encode(sentences[::-1])[::-1]).max() < FLOAT32
    for text, vector in zip(sentences, together, strict=True):
        assert np.abs(encoder.encode([text])[0] - vector).max() < FLOAT32


@pytest.mark.needs("speed")
def test_the_default_model_has_a_state_before_and_after_each_layer(sentences: list[str]) -> None:
    """7 states for 6 layers, (tokens, hidden) each, equal to transformers'."""
    from indexer.encoders.torch.pooling import Packed
    from likewise.speed.native import Native

    folder = find_model("all-MiniLM-L6-v2")
    ids = Tokenizer((folder / "tokenizer.json").read_text(), 256).ids(sentences[:1])[0]
    packed = Packed(torch.from_numpy(ids).long(), [(1, len(ids))])
    with torch.inference_mode():
        ours = Native(folder, torch.float32).states(packed, range(7))
    theirs = hidden_states(folder, sentences[0])[0]
    assert len(theirs) == len(ours) == 7
    for layer, state in enumerate(theirs):
        assert ours[layer].shape == (len(ids), 384)
        assert np.abs(ours[layer].numpy() - state).max() < FLOAT32


def test_recipes_of_one_model_come_out_of_one_forward_pass(
    tiny: Callable[[str], Path], sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoders = [
        load_encoder(tiny("bert"), pooling=pooling, layers=layers, precision="float32")
        for pooling, layers in [("mean", -1), ("cls", -2), ("max", (0, 1))]
    ]
    separate = [encoder.encode(sentences) for encoder in encoders]
    passes = []
    transformer = type(encoders[0].transformer)
    whole = transformer.states

    def counted(self: object, batch: object, wanted: list[int]) -> object:
        passes.append(wanted)
        return whole(self, batch, wanted)

    monkeypatch.setattr(transformer, "states", counted)
    together = encode_many(encoders, sentences)
    assert passes == [[0, 1, 3, 4]]
    for one, other in zip(separate, together, strict=True):
        assert np.abs(one - other).max() < FLOAT32
