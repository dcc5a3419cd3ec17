"""Model folders that are compiled, or computed by native blocks."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine.encoders.test_model_folders import OWN_CODE, exported, sharded
from hardware import FLOAT32
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from indexer.encoders import load_encoder
from indexer.encoders.load import load_recipe
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import ModelError
from likewise.speed.compilation.export import compile_encoder
from likewise.speed.compilation.graph import _traceable_masks
from likewise.speed.native import Native


@pytest.fixture
def copy(tiny: Callable[[str], Path], tmp_path: Path) -> Path:
    return shutil.copytree(tiny("bert"), tmp_path / "copy")


@pytest.fixture
def words(tiny: Callable[[str], Path]) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(tiny("bert") / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@pytest.mark.parametrize("kind", ["one .bin", "shards of .bin", "shards of .safetensors"])
def test_every_form_of_weights_takes_the_native_path(copy: Path, sentences: list[str], kind: str) -> None:
    wanted = load_encoder(copy, precision="float32").encode(sentences)
    if kind == "one .bin":
        torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
        (copy / "model.safetensors").unlink()
    else:
        sharded(copy, kind.rpartition(".")[2])
    encoder = load_encoder(copy, precision="float32")
    assert isinstance(encoder, TorchEncoder)
    assert isinstance(encoder.transformer, Native)
    assert np.abs(encoder.encode(sentences) - wanted).max() < FLOAT32


@pytest.mark.parametrize("kind", ["plain", "int8", "shared rows", "bfloat16", "pickled"])
def test_static_models_are_means_in_numpy(words: Tokenizer, tmp_path: Path, sentences: list[str], kind: str) -> None:
    torch.manual_seed(2)
    size = words.get_vocab_size()
    tensors: dict[str, torch.Tensor] = {"embeddings": torch.randn(size, 12)}
    table = tensors["embeddings"]
    if kind == "int8":
        tensors["embeddings"] = (table * 40).clamp(-127, 127).to(torch.int8)
        table = tensors["embeddings"].float()
    if kind == "shared rows":
        tensors |= {"mapping": torch.arange(size) % 40, "weights": torch.rand(size)}
        table = table[tensors["mapping"]] * tensors["weights"][:, None]
    if kind == "bfloat16":
        tensors["embeddings"] = table.bfloat16()
        table = tensors["embeddings"].float()
    if kind == "pickled":
        torch.save(tensors, tmp_path / "pytorch_model.bin")
    else:
        save_file(tensors, tmp_path / "model.safetensors")
    words.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "model2vec"}')
    encoder = load_encoder(tmp_path)
    assert isinstance(encoder, StaticEncoder)
    rows = [table[words.encode(text, add_special_tokens=False).ids].mean(0) for text in sentences]
    wanted = torch.nn.functional.normalize(torch.stack(rows), dim=-1).numpy()
    assert np.abs(encoder.encode(sentences) - wanted).max() < FLOAT32
    compile_encoder(encoder, tmp_path / "compiled", "float32")
    assert np.abs(CompiledEncoder.open(tmp_path / "compiled").encode(sentences) - wanted).max() < FLOAT32


def test_code_of_a_model_runs_with_trust_alone_and_is_compiled(
    copy: Path,
    sentences: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    (copy / "own.py").write_text(OWN_CODE)
    settings = {
        "model_type": "likewise-own",
        "vocab_size": 200,
        "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"},
    }
    (copy / "config.json").write_text(json.dumps(settings))
    weights = {"words.weight": torch.randn(200, 16), "mix.weight": torch.randn(16, 16), "mix.bias": torch.randn(16)}
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="it brings Python code of its own, which runs only if you trust"):
        load_encoder(copy, pooling="mean")
    encoder = load_encoder(copy, pooling="mean", precision="float32", max_tokens=64, trust_remote_code=True)
    compile_encoder(encoder, tmp_path / "compiled", "float32")
    compiled = CompiledEncoder.open(tmp_path / "compiled")
    assert np.abs(compiled.encode(sentences) - encoder.encode(sentences)).max() < FLOAT32
    out, err = capfd.readouterr()
    assert (out, set(err.split())) == ("", {"loading"})


@pytest.mark.parametrize(
    ("name", "pooling"), [("model", "mean"), pytest.param("bge-small-en-v1.5", "cls", marks=pytest.mark.slow)]
)
def test_a_folder_with_only_onnx_runs_on_openvino(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str], name: str, pooling: Any
) -> None:
    folder = shutil.copytree(tiny("bert"), tmp_path / name)
    wanted = load_encoder(folder, pooling=pooling, precision="float32").encode(sentences)
    exported(folder, "onnx/model.onnx")
    encoder = load_encoder(folder)
    assert (encoder.recipe.pooling, encoder.recipe.layers, encoder.max_tokens) == (pooling, (4,), 64)
    assert np.abs(encoder.encode(sentences) - wanted).max() < 1e-4
    again = load_recipe(encoder.recipe)
    assert again.recipe == encoder.recipe
    compile_encoder(encoder, tmp_path / "compiled", "float32")
    assert np.abs(CompiledEncoder.open(tmp_path / "compiled").encode(sentences) - wanted).max() < 1e-4
    for arguments in ({"layers": 2}, {"pooling": "pooler"}):
        with pytest.raises(ModelError, match="only ONNX files, which show the last layer alone"):
            load_encoder(folder, **arguments)
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="damaged, or not for OpenVINO"):
        load_encoder(folder)


def test_two_threads_trace_masks_one_after_the_other() -> None:
    from transformers import masking_utils

    functions = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
    before = functions["sdpa"]
    second_waits, second_inside = threading.Event(), threading.Event()

    def second() -> None:
        second_waits.set()
        with _traceable_masks():
            second_inside.set()

    thread = threading.Thread(target=second)
    with _traceable_masks():
        thread.start()
        assert second_waits.wait(10)
        assert not second_inside.wait(0.2)
    thread.join(10)
    assert second_inside.is_set()
    assert functions["sdpa"] is before
