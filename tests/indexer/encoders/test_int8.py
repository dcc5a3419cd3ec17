"""Eight-bit feed-forward layers: against the same sums in floats, their measured loss, and what cannot run so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hardware import FLOAT32, needs_vnni
from opened import snapshot_of

from benchmarks.architectures import make_folder
from indexer import Index
from indexer.encoders import load_encoder
from indexer.encoders.chain.parts import without_int8
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.int8 import Int8Encoder
from indexer.encoders.torch.int8_layers import observing, quantise
from indexer.encoders.torch.native import Native
from indexer.errors import ModelError

vnni = needs_vnni()


@pytest.fixture
def encoder(tiny: Callable[[str], Path]) -> Int8Encoder:
    plain = load_encoder(f"{tiny('bert')}:mean", precision="float32")
    assert isinstance(plain, TorchEncoder)
    return Int8Encoder(plain)


@vnni
def test_a_layer_is_the_sums_of_rounded_numbers(encoder: Int8Encoder, sentences: list[str]) -> None:
    """Weights and inputs are rounded here as the method says, and multiplied in float64."""
    seen = observing(encoder.exact)
    seen.encode(sentences)
    assert isinstance(seen.transformer, Native)
    observed = seen.transformer.blocks[1].feed_forward
    layer = quantise(seen.transformer).blocks[1].feed_forward
    plain = encoder.exact.transformer.blocks[1].feed_forward  # type: ignore[attr-defined]
    x = torch.randn(16, 48, generator=torch.Generator().manual_seed(3))
    x = x.clamp(-observed.largest, observed.largest)  # type: ignore[attr-defined]

    def rows(weight: torch.Tensor) -> torch.Tensor:
        step = weight.abs().amax(1, keepdim=True) / 127
        return (weight / step).round() * step

    up, down = plain.up.weight, plain.down.weight
    smooth = (observed.largest / up.abs().amax(0)).sqrt()  # type: ignore[attr-defined]
    step = (observed.largest / smooth).max() / 127  # type: ignore[attr-defined]
    inner = (x / smooth / step).round().clamp(-128, 127).double() * step @ rows(up * smooth).double().T
    inner = torch.nn.functional.gelu(inner + plain.up.bias)
    grain = (observed.high - observed.low) / 255  # type: ignore[attr-defined]
    inner = ((inner / grain).round() * grain).clamp(observed.low - grain, observed.high + grain)  # type: ignore[attr-defined]
    expected = inner @ rows(down).double().T + plain.down.bias + x
    found = layer(x, x)
    # A number on the edge between two steps may fall to either side.
    assert (found - expected).abs().max() < 3 * grain * down.abs().max()
    assert (found - plain(x, x)).abs().mean() < 0.03 * plain(x, x).abs().mean()


@vnni
def test_a_vector_does_not_depend_on_its_neighbours(encoder: Int8Encoder, sentences: list[str]) -> None:
    together = encoder.encode(sentences)
    alone = np.concatenate([encoder.encode([sentence]) for sentence in sentences])
    off = np.abs(together - alone).max(axis=1)
    # A number on the edge between two steps may fall to either side, and takes its text a step along.
    assert (off < FLOAT32).sum() >= len(sentences) - 1
    assert off.max() < 0.01


@vnni
def test_a_recipe_of_lower_layers_leaves_those_above_as_they_are(
    tiny: Callable[[str], Path], sentences: list[str]
) -> None:
    eight = load_encoder(tiny("bert"), pooling="mean", layers=-2, precision="int8")
    whole = load_encoder(tiny("bert"), pooling="mean", layers=-2, precision="float32")
    assert 0.98 < (eight.encode(sentences) * whole.encode(sentences)).sum(axis=1).min() < 0.999999


@vnni
def test_the_loss_is_that_of_texts_it_was_not_calibrated_on(encoder: Int8Encoder, sentences: list[str]) -> None:
    loss = encoder.calibrate(sentences)
    others = sentences[1::2]
    cosines = (encoder.encode(others) * encoder.exact.encode(others)).sum(axis=1)
    assert (loss.texts, loss.mean, loss.worst) == (3, pytest.approx(cosines.mean()), pytest.approx(cosines.min()))
    assert 0.9 < loss.worst < 0.99999
    assert without_int8(encoder) is encoder.exact


@vnni
def test_the_default_model_stays_close_to_itself(sentences: list[str]) -> None:
    found = load_encoder("all-MiniLM-L6-v2", precision="int8").encode(sentences)
    whole = load_encoder("all-MiniLM-L6-v2", precision="float32").encode(sentences)
    assert 0.99 < (found * whole).sum(axis=1).min() < 0.9999


@vnni
@pytest.mark.parametrize("kind", ["mpnet", "distilbert"])
def test_other_architectures_with_bert_s_feed_forward_layer(
    tiny: Callable[[str], Path], sentences: list[str], kind: str
) -> None:
    eight = load_encoder(f"{tiny(kind)}:mean", precision="int8").encode(sentences)
    assert 0.98 < (eight * load_encoder(f"{tiny(kind)}:mean").encode(sentences)).sum(axis=1).min() < 0.99999


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("nomic_bert", {}, "cannot run in int8: only BERT, RoBERTa, XLM-RoBERTa, MPNet and DistilBERT on a CPU can"),
        ("bert", {"runtime": "openvino"}, "int8 runs only on torch"),
        ("bert", {"precision": "int4"}, "precision 'int4' is not one of auto, float32, bfloat16, int8"),
    ],
)
def test_what_cannot_run_in_int8(
    tiny: Callable[[str], Path], tmp_path: Path, kind: str, settings: Any, said: str
) -> None:
    folder = tiny(kind) if kind == "bert" else make_folder(kind, tmp_path / kind)
    with pytest.raises(ModelError, match=re.escape(said)):
        load_encoder(f"{folder}:mean", **{"precision": "int8", **settings})


def test_a_cpu_without_products_of_8_bits_says_so(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for probe in ("_is_vnni_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, probe, lambda: False)
    with pytest.raises(ModelError, match=re.escape("no products of 8-bit integers (VNNI or AMX): choose float32")):
        load_encoder(f"{tiny('bert')}:mean", precision="int8")


@vnni
def test_an_index_is_calibrated_on_its_own_passages_and_says_what_it_lost(
    tiny: Callable[[str], Path], sentences: list[str], tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, sentence in enumerate(sentences):
        (folder / f"{number}.txt").write_text(sentence)
    model = f"{tiny('bert')}:mean"
    said = likewise("index", tmp_path / "x.index", folder, "--model", model, "--precision", "int8")
    assert (said.code, said.err.count("int8: cosines to the model's own vectors of 3 passages are 0.9")) == (0, 1)
    with Index.open(tmp_path / "x.index") as index:
        stored = snapshot_of(index).sample(10).vectors
        plain = load_encoder(model).encode([f"{number} {sentence}" for number, sentence in enumerate(sentences)])
        assert 0.9 < (stored @ plain.T).max(axis=1).min() < 0.99999
    (folder / "new.txt").write_text("Dogs watch the river.")
    again = likewise("index", tmp_path / "x.index", folder, "--json")  # precision is no part of what vectors mean
    assert (again.code, again.json["unchanged"], again.json["indexed"]) == (0, 6, 1)
