"""likewise model against the transformers library: parameters, layers, limits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from indexer.encoders import load_encoder


def parameters(said: Any) -> dict[str, tuple[int, ...]]:
    return {each["name"]: tuple(each["shape"]) for each in said.json["parameters"]}


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "mpnet"])
def test_parameters_and_sizes_are_those_of_the_loaded_model(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], kind: str
) -> None:
    said = likewise("model", tiny(kind), "--json")
    model = transformers.AutoModel.from_pretrained(tiny(kind))
    wanted = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert parameters(said) == wanted
    assert said.json["total"] == sum(parameter.numel() for parameter in model.parameters())
    encoder = load_encoder(tiny(kind))
    assert said.json["layers"] == model.config.num_hidden_layers == 4
    assert said.json["hidden"] == said.json["dimensions"] == encoder.dimensions == 48
    assert said.json["max_tokens"] == encoder.max_tokens
    assert said.json["fingerprint"] == encoder.recipe.fingerprint
    assert (said.json["architecture"], said.json["dtype"], said.json["pooling"]) == (kind, "float32", ["mean"])


def test_the_default_model(likewise: Callable[..., Any]) -> None:
    """22.7 million parameters: 30,522 x 384 + 512 x 384 + 2 x 384 + ... as the model's authors say."""
    said = likewise("model", "all-MiniLM-L6-v2").succeeded()
    for line in ("22,713,216 in 103 tensors, float32", "6, and the embeddings as layer 0", "Transformer, Pooling, Nor"):
        assert line in said.out
    rows = [line.split("  ") for line in said.out.splitlines()]
    assert ["embeddings.word_embeddings.weight", "30,522 x 384", "11,720,448"] in [
        [cell.strip() for cell in row if cell] for row in rows
    ]
    found = likewise("model", "all-MiniLM-L6-v2", "--json").json
    assert (found["max_tokens"], found["heads"], found["vocabulary"]) == (256, 12, 30522)
    assert found["files"] == [{"file": "model.safetensors", "bytes": 90868376}]
    names = [name for name in parameters(likewise("model", "all-MiniLM-L6-v2", "--json")) if "query.weight" in name]
    assert names == [f"encoder.layer.{layer}.attention.self.query.weight" for layer in range(6)]


def test_weights_of_torch_are_read_too(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(tiny("bert") / file, tmp_path)
    state = transformers.AutoModel.from_pretrained(tiny("bert")).state_dict()
    torch.save({**state, "embeddings.position_ids": torch.arange(64)}, tmp_path / "pytorch_model.bin")
    wanted = parameters(likewise("model", tiny("bert"), "--json"))
    assert parameters(likewise("model", tmp_path, "--json")) == wanted


def test_prompts_and_dense_modules(likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path) -> None:
    import sentence_transformers
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(str(tiny("bert")))
    parts = [transformer, modules.Pooling(48, "cls"), modules.Dense(48, 16)]
    model = sentence_transformers.SentenceTransformer(modules=parts, device="cpu", prompts={"query": "ask: "})
    model.save(str(tmp_path))
    said = likewise("model", tmp_path, "--json")
    assert (said.json["dimensions"], said.json["pooling"]) == (16, ["cls"])
    assert (said.json["query_prompt"], said.json["document_prompt"]) == ("ask: ", "")
    assert said.json["modules"] == ["Transformer", "Pooling", "Dense"]
    assert parameters(said)["2_Dense/linear.weight"] == (16, 48)
    assert "'ask: ' before queries" in likewise("model", tmp_path).out


def test_a_static_model_says_what_it_lacks(likewise: Callable[..., Any], evaluation_data: Path) -> None:
    folder = evaluation_data / "models" / "potion-base-4m-fp32"
    said = likewise("model", folder, "--json")
    assert parameters(said) == {"embeddings": (29528, 128)}
    encoder = load_encoder(folder)
    assert (said.json["dimensions"], said.json["max_tokens"]) == (encoder.dimensions, encoder.max_tokens) == (128, 512)
    assert (said.json["layers"], said.json["hidden"]) == (None, None)
    assert "no transformer, so no hidden layers" in likewise("model", folder).out


def test_errors_are_one_line(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    shutil.copy(tiny("bert") / "config.json", tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"no weights")
    for name, said in {
        "nobody/nothing": "not on this machine",
        str(tmp_path / "nowhere"): "does not exist",
        str(tmp_path / "empty"): "has no weights",
        str(tmp_path / "broken"): "cannot be read",
    }.items():
        likewise("model", name).failed(2, said)
