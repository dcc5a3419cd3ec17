"""What may lie in a model's folder: pickled weights, shards, static tables, two routes, code of its own, damage."""

from __future__ import annotations

import ast
import json
import pickle
import re
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
from click.testing import CliRunner
from hardware import FLOAT32
from huggingface_hub.errors import LocalEntryNotFoundError
from huggingface_hub.utils import filter_repo_objects
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Router, StaticEmbedding, Transformer
from tokenizers import Tokenizer

from indexer import Document, Index
from indexer.doors import has_part
from indexer.encoders import RecipeSpec, load_encoder
from indexer.encoders.load import load_recipe
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


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("was-run"),)


def test_a_pickled_file_runs_no_code(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (copy / "model.safetensors").unlink()
    problem = "they are damaged" if has_part("speed") else "transformers .* cannot read its files"
    for content in (pickle.dumps({"x": Harmful()}), b"nothing"):
        (copy / "pytorch_model.bin").write_bytes(content)
        with pytest.raises(ModelError, match=f"cannot be loaded: {problem}"):
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


def test_a_question_to_a_static_model_loads_no_torch(words: Tokenizer, tmp_path: Path) -> None:
    model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path / "model"))
    with Index.create(tmp_path / "x.index", tmp_path / "model") as index:
        index.add([Document("a", "the river bank")])
    assert not (tmp_path / "x.index" / "encoder").exists()  # the model itself answers
    program = f"""
import sys
from search import Searcher
with Searcher({str(tmp_path / "x.index")!r}) as searcher:
    assert [hit.uri for hit in searcher.search("the river")] == ["a"]
loaded = {{"torch", "transformers", "sentence_transformers"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("kind", ["static", "router", pytest.param("onnx", marks=pytest.mark.needs("speed"))])
def test_all_files_of_a_model_on_the_hub_are_fetched(
    tiny: Callable[[str], Path], words: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The hub is a folder here. Its client's own filter says what is fetched from it."""
    hub, cache = tmp_path / "hub" / "some" / "model", tmp_path / "cache"
    table = StaticEmbedding(words, embedding_dim=48)
    documents = [Transformer(str(tiny("bert"))), Pooling(48)]
    if kind == "static":
        SentenceTransformer(modules=[table], device="cpu").save(str(hub))
        (hub / "0_StaticEmbedding").mkdir()  # as the library saved it before
        for name in ("model.safetensors", "tokenizer.json"):
            (hub / name).rename(hub / "0_StaticEmbedding" / name)
        (hub / "modules.json").write_text((hub / "modules.json").read_text().replace('""', '"0_StaticEmbedding"'))
    elif kind == "router":
        SentenceTransformer(modules=[Router.for_query_document([table], documents)], device="cpu").save(str(hub))
    else:
        exported(shutil.copytree(tiny("bert"), hub), "onnx/model.onnx")
    (hub / "README.md").write_text("not needed")
    fetched: list[str] = []

    def fetch(name: str, *, local_files_only: bool, **patterns: Any) -> str:
        if local_files_only and not cache.exists():
            raise LocalEntryNotFoundError("not here")
        files = [path.relative_to(hub).as_posix() for path in hub.rglob("*") if path.is_file()]
        wanted = filter_repo_objects(
            files,
            allow_patterns=patterns.get("allow_patterns"),
            ignore_patterns=patterns.get("ignore_patterns"),
        )
        for file in () if local_files_only else wanted:
            fetched.append(file)
            (cache / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(hub / file, cache / file)
        return str(cache)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    wanted = load_encoder(hub, precision="float32").encode(["the river bank"])
    # A download that was broken off has left the tokenizers of modules out.
    if kind == "static":
        (cache / "0_StaticEmbedding").mkdir(parents=True)
        shutil.copy(hub / "modules.json", cache)
        shutil.copy(hub / "0_StaticEmbedding" / "model.safetensors", cache / "0_StaticEmbedding")
    for _ in range(2):
        assert np.array_equal(load_encoder("some/model", precision="float32").encode(["the river bank"]), wanted)
    assert len(fetched) == len(set(fetched))
    assert "README.md" not in fetched


def test_documents_of_a_router_are_cut_by_their_own_route(
    tiny: Callable[[str], Path], words: Tokenizer, tmp_path: Path
) -> None:
    documents = [Transformer(str(tiny("bert")), max_seq_length=20), Pooling(48)]
    router = Router.for_query_document([StaticEmbedding(words, embedding_dim=48)], documents)
    model = SentenceTransformer(modules=[router], device="cpu")
    model.save(str(tmp_path))
    encoder = load_encoder(tmp_path, precision="float32")
    assert (encoder.max_tokens, encoder.overhead()) == (20, 2)
    long = "the river bank " * 20
    with pytest.raises(TextTooLong):
        encoder.encode([long])
    room = long[: encoder.offsets([long])[0][17][1]]
    assert np.abs(encoder.encode([long], truncate=True) - encoder.encode([room])).max() < FLOAT32
    for role, encode in (("query", model.encode_query), ("document", model.encode_document)):
        wanted = encode(["the river bank"], normalize_embeddings=True)
        assert np.abs(encoder.encode(["the river bank"], role=role) - wanted).max() < FLOAT32  # type: ignore[arg-type]


def test_a_router_whose_routes_differ_in_dimensions_is_refused(
    tiny: Callable[[str], Path], words: Tokenizer, tmp_path: Path
) -> None:
    documents = [Transformer(str(tiny("bert"))), Pooling(48)]
    router = Router.for_query_document([StaticEmbedding(words, embedding_dim=8)], documents)
    SentenceTransformer(modules=[router], device="cpu").save(str(tmp_path))
    with pytest.raises(ModelError, match="gives questions 8 dimensions and documents 48"):
        load_encoder(tmp_path)


@pytest.mark.slow
@pytest.mark.needs("speed", "shell", "inspection")
def test_a_router_is_two_models_of_one_index(tiny: Callable[[str], Path], words: Tokenizer, tmp_path: Path) -> None:
    documents = [Transformer(str(tiny("bert")), max_seq_length=20), Pooling(48)]
    router = Router.for_query_document([StaticEmbedding(words, embedding_dim=48)], documents)
    model = SentenceTransformer(modules=[router], device="cpu")
    model.save(str(tmp_path / "router"))
    texts, question = ["the river bank", "two dogs run", "bread"], "a river"
    with Index.create(tmp_path / "x.index", tmp_path / "router", language="en") as index:
        index.add([Document(text, text) for text in texts])
        index.compile()
        recipe = index.recipe
    assert recipe is not None
    assert recipe.question is not None
    assert (recipe.route, recipe.question.route, recipe.fingerprint) == (
        "document",
        "query",
        recipe.question.fingerprint,
    )
    assert recipe.for_documents.identity != recipe.question.identity
    expected = model.encode_document(texts, normalize_embeddings=True) @ model.encode_query(
        question, normalize_embeddings=True
    )
    program = f"""
import sys
from search import Searcher
with Searcher({str(tmp_path / "x.index")!r}) as searcher:
    print({{hit.uri: hit.score for hit in searcher.search({question!r}, exact=True)}})
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=120, capture_output=True, text=True)
    scores = ast.literal_eval(done.stdout)
    assert [scores[text] for text in texts] == pytest.approx(expected.tolist(), abs=0.01)
    assert load_encoder(recipe).recipe == recipe
    moved = (tmp_path / "router").rename(tmp_path / "moved")
    command = ["index", str(tmp_path / "x.index"), __file__, "--model", str(moved)]
    from likewise.shell import cli

    assert CliRunner().invoke(cli, command).exit_code == 0
    with Index.open(tmp_path / "x.index") as index:
        assert index.recipe is not None
        assert (index.recipe.model, index.recipe.for_questions.model) == (str(moved), str(moved))
    asked = RecipeSpec(str(moved), dimensions=24, query_prompt="question: ", max_tokens=16)
    Index.create(tmp_path / "short.index", asked).close()
    with Index.open(tmp_path / "short.index", moved) as index:
        assert index.recipe is not None
        for one in (index.recipe.for_documents, index.recipe.for_questions):
            assert (one.dimensions, one.query_prompt, one.max_tokens) == (24, "question: ", 16)
    described = CliRunner().invoke(cli, ["model", str(moved)]).output
    assert re.search(r"token limit  20\n(.*\n)*questions are embedded by\n(.*\n)*kind +StaticEmbedding", described)


OWN_CODE = """
print("loading")
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


def test_a_module_of_the_models_own_is_not_taken_for_the_librarys(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    SentenceTransformer(modules=[Transformer(str(tiny("bert"))), Pooling(48)], device="cpu").save(str(tmp_path))
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules[0]["type"] = "custom_st.Transformer"
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "custom_st.py").write_text("raise AssertionError")
    for trusted in (False, True):
        with pytest.raises(ModelError, match=r"brings Python code of its own \(custom_st.Transformer\)"):
            load_encoder(tmp_path, trust_remote_code=trusted)
    assert isinstance(load_encoder(tmp_path, pooling="mean"), TorchEncoder)


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


def exported(folder: Path, file: str, output: str = "last_hidden_state") -> None:
    """Replace the weights by an ONNX file of the model, as torch's tracing exporter writes it.

    With the output `sentence_embedding` it gives the vector of the first token.
    """
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
            return states[:, 0] if output == "sentence_embedding" else states

    (folder / file).parent.mkdir(exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(exporter, "_add_onnxscript_fn", lambda proto, _: proto)  # it would need the package onnx
        torch.onnx.export(
            States().eval(), (torch.ones(2, 5, dtype=torch.int64),) * 3, str(folder / file), input_names=names,
            output_names=[output], dynamic_axes={name: {0: "b", 1: "s"} for name in names}, dynamo=False,
        )  # fmt: skip
    (folder / "model.safetensors").unlink()


@pytest.mark.needs("speed")
def test_a_pooling_that_an_onnx_file_cannot_give_is_refused(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str]
) -> None:
    folder = shutil.copytree(tiny("bert"), tmp_path / "model")
    wanted = load_encoder(folder, pooling="cls", precision="float32").encode(sentences)
    exported(folder, "model.onnx", "sentence_embedding")
    encoder = load_encoder(folder)
    assert np.abs(encoder.encode(sentences) - wanted).max() < 1e-4
    with pytest.raises(ModelError, match="only ONNX files, which pool by themselves: leave the pooling out"):
        load_encoder(folder, pooling="max")
    assert np.abs(load_recipe(encoder.recipe).encode(sentences) - wanted).max() < 1e-4


def with_normalizer(folder: Path, normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer |= {"normalizer": normalizer} if normalizer else {}
    tokenizer |= {"pre_tokenizer": pre_tokenizer} if pre_tokenizer else {}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def test_a_tokenizer_that_makes_texts_endless_is_refused(copy: Path) -> None:
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    with_normalizer(copy, {"type": "Sequence", "normalizers": [double] * 60}, None)
    with pytest.raises(ModelError, match=r"makes a text up to 1,152,921,504,606,846,976 times as long"):
        load_encoder(copy)


def test_a_costly_expression_of_a_tokenizer_is_an_error_of_the_model(copy: Path) -> None:
    split = {"type": "Split", "pattern": {"Regex": "^(a|a)*$"}, "behavior": "Isolated", "invert": False}
    with_normalizer(copy, None, split)
    encoder = load_encoder(copy)
    for call in (encoder.encode, encoder.offsets):
        with pytest.raises(ModelError, match="the model's tokenizer fails on a text"):
            call(["a" * 64 + "!"])


@pytest.mark.parametrize("static", [True, False])
def test_a_token_without_a_vector_is_an_error_of_the_model(
    copy: Path, words: Tokenizer, tmp_path: Path, static: bool
) -> None:
    folder = tmp_path / "static" if static else copy
    if static:
        table = StaticEmbedding(words, embedding_weights=np.ones((words.get_vocab_size(), 4), np.float32))
        SentenceTransformer(modules=[table], device="cpu").save(str(folder))
    (file,) = folder.rglob("tokenizer.json")
    larger = Tokenizer.from_file(str(file))
    larger.add_tokens(["newword"])
    larger.save(str(file))
    encoder = load_encoder(folder)
    encoder.encode(["bank river"])
    with pytest.raises(ModelError, match="a tokenizer with more tokens than its weights have vectors"):
        encoder.encode(["bank newword"])


def test_an_absurd_limit_in_a_folder_is_bounded(copy: Path) -> None:
    (copy / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 10**18}))
    assert load_encoder(copy).max_tokens == 64
