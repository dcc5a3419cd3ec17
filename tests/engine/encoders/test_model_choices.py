"""What likewise chooses for a model by its folder alone: prompts, dimensions, the length of passages, refusals."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hardware import FLOAT32
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from indexer import Document, Index
from indexer.encoders import RecipeSpec, load_encoder
from indexer.encoders.recipes.locate import find_model
from indexer.encoders.recipes.prompts import known_prompts
from indexer.errors import ModelError, RecipeMismatch


@pytest.fixture
def folder(tiny: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """Make a copy of the tiny BERT under a name, with files of JSON beside it."""

    def make(name: str = "model", **files: Any) -> Path:
        place = shutil.copytree(tiny("bert"), tmp_path / name)
        for file, content in files.items():
            path = place / f"{file}.json"
            before = json.loads(path.read_text()) if path.exists() and isinstance(content, dict) else {}
            path.write_text(json.dumps({**before, **content} if isinstance(content, dict) else content))
        return place

    return make


@pytest.fixture
def shell(
    likewise: Callable[..., Any], register: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Runs a command line in an empty folder, with real models."""
    register(named=load_encoder)
    monkeypatch.chdir(tmp_path)
    return likewise


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("sparse", {"config_sentence_transformers": {"model_type": "SparseEncoder"}}, "a sparse encoder (SPLADE)"),
        ("naver-splade-v3", {}, "a sparse encoder (SPLADE)"),
        (
            "older",
            {"modules": [{"path": "", "type": "sentence_transformers.sparse_encoder.models.MLMTransformer"}]},
            "a sparse encoder (SPLADE)",
        ),
        ("pylate", {"config_sentence_transformers": {"model_type": "ColBERT"}}, "a ColBERT model"),
        ("late", {"config_sentence_transformers": {"model_type": "MultiVectorEncoder"}}, "a ColBERT model"),
        ("stanford", {"config": {"architectures": ["HF_ColBERT"]}}, "a ColBERT model"),
        ("reranker", {"config": {"architectures": ["BertForSequenceClassification"]}}, "a cross-encoder"),
    ],
)
def test_what_gives_no_vector_of_a_text_says_what_it_is(
    folder: Callable[..., Path], tmp_path: Path, name: str, files: dict[str, Any], said: str
) -> None:
    place = folder(name, **files)
    for load in (load_encoder, lambda model: Index.create(tmp_path / "x.index", model)):
        with pytest.raises(ModelError, match=r"model '.*' is ") as error:
            load(place)
        assert said in str(error.value)
        assert "\n" not in str(error.value)
    if "modules" not in files:  # Who names a pooling looks at the hidden states of any transformer.
        chosen = load_encoder(place, pooling="mean").recipe
        assert load_encoder(dataclasses.replace(chosen)).recipe == chosen


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("adapter_config.json", '{"base_model_name_or_path": "org/base"}', "only a PEFT adapter for org/base"),
        ("model-Q4_K_M.gguf", "", "only GGUF files"),
        ("openvino/openvino_model.xml", "", "only OpenVINO files"),
        ("tf_model.h5", "", "only weights for TensorFlow"),
    ],
)
def test_other_formats_of_weights_get_the_reason_and_the_way_out(
    folder: Callable[..., Path], file: str, content: str, said: str
) -> None:
    place = folder()
    (place / "model.safetensors").rename(place / ("adapter_model.safetensors" if "adapter" in file else "removed"))
    (place / file).parent.mkdir(exist_ok=True)
    (place / file).write_text(content)
    with pytest.raises(ModelError, match=f"has no weights: {said}.*; "):
        find_model(str(place))


def test_dimensions_that_the_folder_keeps_are_kept(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str]
) -> None:
    place = tmp_path / "short"
    parts = [Transformer(str(tiny("bert"))), Pooling(48)]
    model = SentenceTransformer(modules=parts, device="cpu", truncate_dim=20)
    model.save(str(place))
    theirs = model.encode(sentences, normalize_embeddings=True)
    ours = load_encoder(place, precision="float32").encode(sentences)
    assert (ours.shape[1], np.abs(ours - theirs).max() < FLOAT32) == (20, True)
    with Index.create(tmp_path / "old.index", RecipeSpec(str(place), dimensions=48)) as index:
        index.add([Document("a", "the river bank")])
    with Index.open(tmp_path / "old.index", place) as index:  # made before the setting was read, and kept
        index.add([Document("b", "the river bank")])
        assert index.dimensions == 48


@pytest.mark.slow
def test_the_leading_dimensions_of_a_model_are_asked_for_by_number(
    folder: Callable[..., Path], shell: Callable[..., Any], lines: Callable[..., str]
) -> None:
    place = folder("sizes", config={"matryoshka_dimensions": [16, 32]})
    record = lines({"id": "a", "text": "the river bank"})
    said = shell("index", "x.index", "-", "--model", place, "--dimensions", 16, stdin=record).succeeded()
    assert "was trained for" not in said.err
    assert shell("info", "x.index", "--json").json["dimensions"] == 16
    assert shell("index", "x.index", "-", "--dimensions", 16, stdin=record).code == 0
    assert shell("index", "x.index", "-", "--dimensions", 32, stdin=record).code == 2
    said = shell("index", "y.index", "-", "--model", place, "--dimensions", 20, stdin=record).succeeded()
    assert "was trained for 16, 32 dimensions, and not for 20" in said.err
    assert shell("index", "z.index", "-", "--model", place, "--dimensions", 49, stdin=record).code == 2


def test_known_models_get_their_prompts_where_the_folder_has_none(
    folder: Callable[..., Path], sentences: list[str]
) -> None:
    place = folder("multilingual-e5-small", config_sentence_transformers={"prompts": {"query": "", "document": ""}})
    encoder = load_encoder(place, precision="float32")
    assert (encoder.recipe.query_prompt, encoder.recipe.document_prompt) == ("query: ", "passage: ")
    bare = load_encoder(RecipeSpec(str(place), query_prompt="", document_prompt=""), precision="float32")
    wanted = bare.encode([f"passage: {text}" for text in sentences])
    assert np.abs(encoder.encode(sentences) - wanted).max() < FLOAT32
    own = folder("bge-small-en", config_sentence_transformers={"prompts": {"query": "ask: "}})
    assert load_encoder(own).recipe.query_prompt == "ask: "


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("intfloat/multilingual-e5-large-instruct", "Instruct: "),
        ("BAAI/bge-base-en-v1.5", "Represent this sentence"),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", "Represent this sentence"),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: "),
        ("mixedbread-ai/mxbai-embed-large-v1", "Represent this sentence"),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: "),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: "),
        ("BAAI/bge-m3", None),
        ("me/my-e5-small-finetuned", None),
    ],
)
def test_the_table_of_prompts_goes_by_the_name(name: str, query: str | None) -> None:
    snapshot = Path("hub") / f"models--{name.replace('/', '--')}" / "snapshots" / "abc"
    for found in (known_prompts(name, Path("anywhere")), known_prompts("c0ffee", snapshot)):
        assert (found is None) == (query is None)
        assert not found or found[0].startswith(str(query))


def test_an_index_without_prompts_keeps_its_meaning(folder: Callable[..., Path], tmp_path: Path) -> None:
    place = folder("e5-small")
    with Index.create(tmp_path / "x.index", RecipeSpec(str(place), query_prompt="", document_prompt="")) as index:
        index.add([Document("a", "the river bank")])
        made = index.recipe
    with Index.open(tmp_path / "x.index", place) as index:
        assert not index.add([Document("b", "the river")]).notes
        assert index.recipe == made
    with pytest.raises(RecipeMismatch):
        Index.open(tmp_path / "x.index", RecipeSpec(str(place), query_prompt="other: "))


@pytest.mark.slow
def test_prompts_are_given_in_the_shell(
    folder: Callable[..., Path], shell: Callable[..., Any], lines: Callable[..., str]
) -> None:
    place, record = folder(), lines({"id": "a", "text": "the river bank"})
    prompts = ("--query-prompt", "dogs: ", "--document-prompt", "snow: ")
    assert shell("index", "x.index", "-", "--model", place, *prompts, stdin=record).code == 0
    assert shell("index", "x.index", "-", *prompts, stdin=record).code == 0
    wrong = shell("index", "x.index", "-", "--query-prompt", "", stdin=record)
    wrong.failed(2, "was made with --query-prompt 'dogs: ' and not ''")
    assert shell("index", "x.index", "-", "--rebuild", "--query-prompt", "moon: ", stdin=record).code == 0
    with Index.open("x.index") as index:
        assert index.recipe is not None
        assert (index.recipe.query_prompt, index.recipe.document_prompt) == ("moon: ", "snow: ")
    embedded = shell("embed", "river", "--model", place, "--role", "query", *prompts, "--precision", "float32")
    plain = shell("embed", "dogs: river", "--model", place, "--precision", "float32")
    ours, wanted = (np.array(json.loads(each.out)["vector"]) for each in (embedded, plain))
    assert np.abs(ours - wanted).max() < FLOAT32
    assert shell("index", "y.index", "-", "--dimensions", 2, "--query-prompt", "a: ", stdin=record).code == 2


def test_a_long_context_does_not_make_long_passages(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    place = tmp_path / "long"
    parts = [Transformer(str(tiny("bert"))), Pooling(48), Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(place))
    encoder = load_encoder(place)

    class Long:
        recipe = dataclasses.replace(encoder.recipe, max_tokens=8192)
        dimensions, max_tokens = encoder.dimensions, 8192
        encode, offsets, overhead = encoder.encode, encoder.offsets, encoder.overhead

    with Index.create(tmp_path / "x.index", Long()) as index:  # type: ignore[arg-type]
        assert index._core.settings.passages is not None
        assert index._core.settings.passages.max_tokens == 512
        (note,) = index.add([Document("a", "the river bank")]).notes
        assert "reads 8,192 tokens of a text; passages have at most 512" in note
    with Index.create(tmp_path / "y.index", Long(), max_tokens=1024) as index:  # type: ignore[arg-type]
        assert index._core.settings.passages is not None
        assert index._core.settings.passages.max_tokens == 1024
    with Index.create(tmp_path / "z.index", place) as index:
        assert index._core.settings.passages is not None
        assert index._core.settings.passages.max_tokens == 64
        assert index.add([Document("a", "the river bank")]).notes == ()


def test_a_similarity_that_cosine_replaces_gets_a_note(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    for name, last, told in (("dot", [], 1), ("unit", [Normalize()], 0)):
        parts = [Transformer(str(tiny("bert"))), Pooling(48), *last]
        SentenceTransformer(modules=parts, device="cpu", similarity_fn_name="dot").save(str(tmp_path / name))
        with Index.create(tmp_path / f"{name}.index", tmp_path / name) as index:
            notes = index.add([Document("a", "the river bank")]).notes
            assert [note.count("was made for the similarity dot") for note in notes] == [1] * told
