"""What may lie in a model's folder: pickled weights, shards, static tables, two routes, code of its own, damage."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hardware import FLOAT32
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Router, StaticEmbedding, Transformer
from tokenizers import Tokenizer

from indexer.encoders import load_encoder
from indexer.encoders.compilation.export import compile_encoder
from indexer.encoders.load import load_recipe
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.recipes.locate import fingerprint
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.torch.bert import Bert
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import ModelError, TextTooLong


@pytest.fixture
def copy(tiny: Callable[[str], Path], tmp_path: Path) -> Path:
    return shutil.copytree(tiny("bert"), tmp_path / "copy")


def sharded(folder: Path, ending: str) -> None:
    """Replace the weights by two shards with an index."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    whole, stem = {"safetensors": ("model.safetensors", "model"), "bin": ("pytorch_model.bin", "pytorch_model")}[ending]
    names = sorted(weights)
    places = {name: f"{stem}-0000{1 + (number % 2)}-of-00002.{ending}" for number, name in enumerate(names)}
    for file in set(places.values()):
        part = {name: weights[name].contiguous() for name in names if places[name] == file}
        save_file(part, folder / file) if ending == "safetensors" else torch.save(part, folder / file)
    (folder / f"{whole}.index.json").write_text(json.dumps({"weight_map": places}))


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
    assert isinstance(encoder.transformer, Bert)
    assert np.abs(encoder.encode(sentences) - wanted).max() < FLOAT32


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("was-run"),)


def test_a_pickled_file_runs_no_code(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (copy / "model.safetensors").unlink()
    for content in (pickle.dumps({"x": Harmful()}), b"nothing"):
        (copy / "pytorch_model.bin").write_bytes(content)
        with pytest.raises(ModelError, match="cannot be loaded: they are damaged"):
            load_encoder(copy)
    assert not Path("was-run").exists()


def test_a_pickled_dense_module_is_read(tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str]) -> None:
    model = SentenceTransformer(modules=[Transformer(str(tiny("bert"))), Pooling(48), Dense(48, 20)], device="cpu")
    model.save(str(tmp_path))
    dense = tmp_path / "2_Dense"
    torch.save(load_file(dense / "model.safetensors"), dense / "pytorch_model.bin")
    (dense / "model.safetensors").unlink()
    encoder = load_encoder(tmp_path, precision="float32")
    assert isinstance(encoder, TorchEncoder)
    assert np.abs(encoder.encode(sentences) - model.encode(sentences, normalize_embeddings=True)).max() < FLOAT32


@pytest.fixture
def words(tiny: Callable[[str], Path]) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(tiny("bert") / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@pytest.mark.parametrize("kind", ["plain", "int8", "shared rows"])
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
    save_file(tensors, tmp_path / "model.safetensors")
    words.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "model2vec"}')
    encoder = load_encoder(tmp_path)
    assert isinstance(encoder, StaticEncoder)
    rows = [table[words.encode(text, add_special_tokens=False).ids].mean(0) for text in sentences]
    wanted = torch.nn.functional.normalize(torch.stack(rows), dim=-1).numpy()
    assert np.abs(encoder.encode(sentences) - wanted).max() < FLOAT32
    compile_encoder(encoder, tmp_path / "compiled", "float32")
    assert np.abs(CompiledEncoder.open(tmp_path / "compiled", None).encode(sentences) - wanted).max() < FLOAT32


def test_a_static_model_needs_no_torch(words: Tokenizer, tmp_path: Path) -> None:
    model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path))
    program = f"""
import sys
from indexer.encoders import load_encoder
assert load_encoder({str(tmp_path)!r}).encode(["the river bank"]).shape == (1, 8)
loaded = {{"torch", "transformers", "sentence_transformers"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_documents_of_a_router_are_cut_by_their_own_route(
    tiny: Callable[[str], Path], words: Tokenizer, tmp_path: Path
) -> None:
    documents = [Transformer(str(tiny("bert")), max_seq_length=20), Pooling(48)]
    router = Router.for_query_document([StaticEmbedding(words, embedding_dim=48)], documents)
    model = SentenceTransformer(modules=[router], device="cpu")
    model.save(str(tmp_path))
    encoder = load_encoder(tmp_path)
    assert (encoder.max_tokens, encoder.overhead()) == (20, 2)
    long = "the river bank " * 20
    with pytest.raises(TextTooLong):
        encoder.encode([long])
    room = long[: encoder.offsets([long])[0][17][1]]
    assert np.abs(encoder.encode([long], truncate=True) - encoder.encode([room])).max() < FLOAT32
    for role, encode in (("query", model.encode_query), ("document", model.encode_document)):
        wanted = encode(["the river bank"], normalize_embeddings=True)
        assert np.abs(encoder.encode(["the river bank"], role=role) - wanted).max() < FLOAT32  # type: ignore[arg-type]


OWN_CODE = """
import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

class OwnConfig(PreTrainedConfig):
    model_type = "likewise-own"
    def __init__(self, vocab_size=200, hidden_size=16, num_hidden_layers=1, **settings):
        super().__init__(**settings)
        self.vocab_size, self.hidden_size, self.num_hidden_layers = vocab_size, hidden_size, num_hidden_layers

class OwnModel(PreTrainedModel):
    config_class = OwnConfig
    def __init__(self, config):
        super().__init__(config)
        self.words = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.mix = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.post_init()
    def forward(self, input_ids, attention_mask=None, output_hidden_states=False, return_dict=True):
        first = self.words(input_ids)
        last = torch.tanh(self.mix(first))
        return BaseModelOutput(last_hidden_state=last, hidden_states=(first, last))
"""


def test_code_of_a_model_runs_with_trust_alone_and_is_compiled(
    copy: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    compiled = CompiledEncoder.open(tmp_path / "compiled", None)
    assert np.abs(compiled.encode(sentences) - encoder.encode(sentences)).max() < FLOAT32


def test_a_module_of_the_models_own_is_not_taken_for_the_librarys(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    SentenceTransformer(modules=[Transformer(str(tiny("bert"))), Pooling(48)], device="cpu").save(str(tmp_path))
    made = load_encoder(tmp_path).recipe
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules[0]["type"] = "custom_st.Transformer"
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "custom_st.py").write_text("raise AssertionError")
    for trusted in (False, True):
        with pytest.raises(ModelError, match=r"brings Python code of its own \(custom_st.Transformer\)"):
            load_encoder(tmp_path, trust_remote_code=trusted)
    assert isinstance(load_encoder(tmp_path, pooling="mean"), TorchEncoder)
    # An index that was made before keeps its meaning.
    stored = dataclasses.replace(made, fingerprint=fingerprint(tmp_path))
    assert isinstance(load_recipe(stored), TorchEncoder)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "tomorrow-bert"}, "does not know its architecture 'tomorrow-bert'"),
        ({"model_type": "clip"}, "is a model of pictures and texts (CLIP)"),
        ({"model_type": "mistral", "num_hidden_layers": "many"}, "cannot read its files as 'mistral'"),
        ({"hidden_size": 4}, "names no architecture"),
    ],
)
def test_what_transformers_cannot_load_is_said_in_our_words(copy: Path, settings: dict[str, Any], said: str) -> None:
    (copy / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError) as caught:
        load_encoder(copy)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    for raw in ("AutoModel", "checkpoint you are trying", "Traceback", "huggingface"):
        assert raw not in str(caught.value)


def test_a_damaged_tokenizer_is_said_in_our_words(copy: Path) -> None:
    (copy / "tokenizer.json").write_text('{"version": "9", "model": {"type": "New"}}')
    with pytest.raises(ModelError, match=r"tokenizer.json cannot be read: it is damaged") as e:
        load_encoder(copy)
    assert "untagged" not in str(e.value)


def exported(folder: Path, file: str) -> None:
    """Replace the weights by an ONNX file of the model, as torch's tracing exporter writes it."""
    exporter = pytest.importorskip("torch.onnx._internal.torchscript_exporter.onnx_proto_utils")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.model(
                input_ids=ids, attention_mask=mask, token_type_ids=types
            ).last_hidden_state
            return states

    (folder / file).parent.mkdir(exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(exporter, "_add_onnxscript_fn", lambda proto, _: proto)  # it would need the package onnx
        torch.onnx.export(
            States().eval(), (torch.ones(2, 5, dtype=torch.int64),) * 3, str(folder / file), input_names=names,
            output_names=["last_hidden_state"], dynamic_axes={name: {0: "b", 1: "s"} for name in names}, dynamo=False,
        )  # fmt: skip
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize(("name", "pooling"), [("model", "mean"), ("bge-small-en-v1.5", "cls")])
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
    assert np.abs(CompiledEncoder.open(tmp_path / "compiled", None).encode(sentences) - wanted).max() < 1e-4
    for arguments in ({"layers": 2}, {"pooling": "pooler"}):
        with pytest.raises(ModelError, match="only ONNX files, which show the last layer alone"):
            load_encoder(folder, **arguments)
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="damaged, or not for OpenVINO"):
        load_encoder(folder)
