"""Cross-encoders whose hidden states native.py computes: their scores against those of sentence-transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cross_encoder_folders import PAIRS, change, scorer_folder
from sentence_transformers import CrossEncoder

from indexer.encoders import cross_encoder
from likewise.speed.native_cross_encoder import compute_natively

HEADS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {},
    "xlm-roberta": {},
    "mpnet": {},
    "distilbert": {},
    "modernbert": {"classifier_pooling": "mean"},
    "nomic_bert": {},
    "gte": {"type_vocab_size": 2},
}


def is_native(model: CrossEncoder) -> bool:
    """Return whether native.py has the weights, so that nothing but the head is left."""
    return sum(parameter.numel() for parameter in model.parameters()) < 4 * 32 * 32


def scores(folder: Path, dtype: torch.dtype | None) -> np.ndarray:
    """Return the scores of PAIRS, computed by transformers or, with a dtype, by native.py."""
    model = CrossEncoder(str(folder), device="cpu")
    if dtype is not None:
        compute_natively(model, dtype)
        assert is_native(model)
    return np.asarray(model.predict(PAIRS, show_progress_bar=False))


def assert_same_scores(folder: Path) -> np.ndarray:
    expected = scores(folder, None)
    assert np.ptp(expected) > 1e-3
    assert scores(folder, torch.float32) == pytest.approx(expected, abs=1e-5)
    return expected


@pytest.mark.parametrize("name", HEADS)
def test_scores_are_those_of_sentence_transformers(name: str, tmp_path: Path) -> None:
    folder = scorer_folder(name, tmp_path / "model", **HEADS[name])
    expected = assert_same_scores(folder)
    assert np.corrcoef(expected, scores(folder, torch.bfloat16))[0, 1] > 0.998


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bert", {"num_labels": 3, "id2label": {"0": "no", "1": "maybe", "2": "yes"}}),
        ("bert", {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}),
        ("bert", {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"}),
        ("bert", {"type_vocab_size": 4, "dtype": "bfloat16"}),
        ("modernbert", {"classifier_pooling": "cls", "classifier_activation": "silu", "classifier_bias": True}),
    ],
)
def test_settings_of_heads(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    assert_same_scores(scorer_folder(name, tmp_path / "model", **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"model_max_length": 20},
        pytest.param({"truncation_side": "left"}, marks=pytest.mark.slow),
        pytest.param({"model_input_names": ["input_ids", "attention_mask"]}, marks=pytest.mark.slow),
    ],
)
def test_settings_of_tokenizers(settings: dict[str, Any], tmp_path: Path) -> None:
    folder = scorer_folder("bert", tmp_path / "model")
    before = scores(folder, None)
    change(folder, "tokenizer_config.json", **settings)
    after = assert_same_scores(folder)
    assert np.abs(after - before).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("distilbert", ["input_ids", "token_type_ids", "attention_mask"]),
        ("modernbert", ["input_ids", "token_type_ids", "attention_mask"]),
        ("bert", ["input_ids"]),
    ],
)
def test_inputs_that_a_model_does_not_read_or_lacks(name: str, inputs: list[str], tmp_path: Path) -> None:
    folder = scorer_folder(name, tmp_path / "model")
    change(folder, "tokenizer_config.json", model_input_names=inputs)
    assert_same_scores(folder)


def test_a_loaded_cross_encoder_is_computed_natively(tmp_path: Path) -> None:
    folder = scorer_folder("bert", tmp_path / "model")
    question, texts = PAIRS[0][0], [text for _, text in PAIRS]
    expected = CrossEncoder(str(folder), device="cpu").predict([(question, text) for text in texts])
    exact, rounded = (cross_encoder(str(folder), precision)(question, texts) for precision in ("float32", "bfloat16"))
    assert exact == pytest.approx(expected, abs=1e-5)
    assert rounded == pytest.approx(expected, abs=0.01)
    assert rounded != pytest.approx(expected, abs=1e-5)
    assert cross_encoder(str(folder)) is cross_encoder(str(folder))


@pytest.mark.parametrize(
    ("name", "file", "members"),
    [
        ("albert", "config.json", {}),
        ("bert", "adapter_config.json", {}),
        ("bert", "tokenizer_config.json", {"padding_side": "left"}),
    ],
)
def test_what_is_left_to_transformers(name: str, file: str, members: dict[str, Any], tmp_path: Path) -> None:
    folder = scorer_folder(name, tmp_path / "model")
    if members:
        change(folder, file, **members)
    model = CrossEncoder(str(folder), device="cpu")
    (folder / file).touch()
    compute_natively(model, torch.float32)
    assert not is_native(model)
