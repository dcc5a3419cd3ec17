"""likewise embed: files read back with other libraries are the encoder's vectors; tokens are transformers' states."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hardware import BFLOAT16, FLOAT32
from matplotlib.axes import Axes
from safetensors.numpy import load_file, save_file

from indexer.encoders import load_encoder
from indexer.encoders.torch.encoder import TorchEncoder
from likewise.inspection import many_recipes, plots, vector_files
from likewise.inspection.vector_files import EmbeddedText, format_of, open_vectors

TEXTS = ["Two dogs run through the snow.", "short", "Vaccines train the immune system, slowly.", "the river bank"]


@pytest.fixture
def passes(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The layers that each forward pass through a tiny BERT was asked for."""
    encoder = load_encoder(tiny("bert"), precision="float32")
    assert isinstance(encoder, TorchEncoder)
    kind, asked = type(encoder.transformer), []
    whole = kind.states

    def states(self: Any, batch: Any, wanted: list[int]) -> Any:
        asked.append(list(wanted))
        return whole(self, batch, wanted)

    monkeypatch.setattr(kind, "states", states)
    return asked


def read(file: Path) -> np.ndarray:
    """Vectors (texts, dimensions) of a file with one recipe."""
    if file.suffix == ".npy":
        return np.load(file, allow_pickle=False)
    return np.array([line["vector"] for line in lines_of(file)], np.float32)


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("ending", ["npy", "jsonl"])
@pytest.mark.parametrize("recipe", ["all-MiniLM-L6-v2", "all-MiniLM-L6-v2:cls@-2", "tiny:mean@-4..-1+concat"])
def test_a_file_holds_the_encoders_vectors_exactly(
    likewise: Callable[..., Any],
    tiny: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
    recipe: str,
) -> None:
    given: list[EmbeddedText] = []
    embed_texts = many_recipes.embed_texts

    def kept(*arguments: Any) -> list[EmbeddedText]:
        given.extend(rows := embed_texts(*arguments))
        return rows

    monkeypatch.setattr(many_recipes, "embed_texts", kept)
    recipe = recipe.replace("tiny", str(tiny("bert")))
    file = tmp_path / f"vectors.{ending}"
    said = likewise("embed", *TEXTS, "--recipe", recipe, "-o", file, "--json")
    wanted = load_encoder(recipe).encode(TEXTS)
    assert np.array_equal(read(file), np.stack([row.vectors for row in given]))
    assert np.abs(read(file) - wanted).max() < BFLOAT16
    assert said.json["dimensions"] == {recipe: wanted.shape[1]}
    assert (said.json["texts"], said.json["cut"], said.json["format"]) == (4, 0, ending)
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_standard_output_is_json_lines_and_options_make_a_recipe(
    likewise: Callable[..., Any], tiny: Callable[[str], Path]
) -> None:
    said = likewise("embed", *TEXTS, "--model", tiny("bert"), "--layers=-2..-1", "--combine", "sum", "--precision",
                    "float32")  # fmt: skip
    lines = [json.loads(line) for line in said.out.splitlines()]
    wanted = load_encoder(tiny("bert"), pooling="mean", layers=(3, 4), combine="sum", precision="float32").encode(TEXTS)
    assert np.abs(np.array([line["vector"] for line in lines], np.float32) - wanted).max() < FLOAT32
    assert [(line["id"], line["text"]) for line in lines] == list(enumerate(TEXTS))
    assert {line["recipe"] for line in lines} == {f"{tiny('bert')}:mean@-2,-1+sum"}


def test_recipes_of_a_model_share_one_forward_pass(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, passes: list[list[int]]
) -> None:
    recipes = [f"{tiny('bert')}:{rest}" for rest in ("mean", "cls@-2", "max@0,1+concat")]
    arguments = [part for recipe in recipes for part in ("--recipe", recipe)]
    likewise("embed", *TEXTS, *arguments, "-o", tmp_path / "x.jsonl", "--precision", "float32")
    assert passes == [[0, 1, 3, 4]]
    lines = lines_of(tmp_path / "x.jsonl")
    assert [(line["id"], line["recipe"]) for line in lines] == [(n, name) for n in range(4) for name in recipes]
    for recipe in recipes:
        found = np.array([line["vector"] for line in lines if line["recipe"] == recipe], np.float32)
        assert np.abs(found - load_encoder(recipe, precision="float32").encode(TEXTS)).max() < FLOAT32
    del passes[:]
    likewise("embed", *TEXTS, *arguments, "--tokens", "-o", tmp_path / "y.jsonl")
    assert passes == [[0, 1, 3, 4]]
    found = [(line["id"], line["recipe"]) for line in lines_of(tmp_path / "y.jsonl")]
    assert found == [(n, name) for n in range(4) for name in recipes]


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "mpnet"])
@pytest.mark.parametrize(("layers", "combine"), [("-1", "mean"), ("0", "mean"), ("-2..-1", "concat"), ("1,3", "sum")])
def test_vectors_of_tokens_are_transformers_hidden_states(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, kind: str, layers: str, combine: str
) -> None:
    arguments = ["--model", tiny(kind), f"--layers={layers}", "--combine", combine, "--tokens"]
    likewise("embed", *TEXTS, *arguments, "-o", tmp_path / "x.jsonl")
    model = transformers.AutoModel.from_pretrained(tiny(kind), dtype=torch.float32).eval()
    chosen = {"-1": [4], "0": [0], "-2..-1": [3, 4], "1,3": [1, 3]}[layers]
    for text, line in zip(TEXTS, lines_of(tmp_path / "x.jsonl"), strict=True):
        vectors = np.array(line["vectors"], np.float32)
        ids = [token["id"] for token in likewise("tokens", text, "--model", tiny(kind), "--json").json["tokens"]]
        with torch.inference_mode():
            states = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        parts = [states[layer][0].numpy() for layer in chosen]
        wanted = np.concatenate(parts, axis=1) if combine == "concat" else np.sum(parts, axis=0)
        assert vectors.shape == (len(ids), 48 * (len(chosen) if combine == "concat" else 1))
        assert np.abs(vectors - wanted).max() < FLOAT32 * max(1, np.abs(wanted).max())  # float32, sums of layers


def test_tokens_and_words_in_every_format(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    """A line has a vector for each token; .npy holds one text; a word is its tokens' mean."""
    asked = ["--model", tiny("bert"), "--layers", "2"]
    lines = [json.loads(line) for line in likewise("embed", *TEXTS, *asked, "--tokens").out.splitlines()]
    assert [line for line in lines if len(line["tokens"]) != len(line["vectors"])] == []
    likewise("embed", TEXTS[0], *asked, "--tokens", "-o", tmp_path / "one.npy").succeeded()
    one = np.load(tmp_path / "one.npy")
    largest = max(1, np.abs(one).max())
    assert np.abs(one - np.array(lines[0]["vectors"], np.float32)).max() < FLOAT32 * largest
    several = likewise("embed", *TEXTS, *asked, "--tokens", "-o", tmp_path / "all.npy")
    several.failed(2, "an .npy file holds one array, the tokens of one text: write .jsonl")
    assert not (tmp_path / "all.npy").exists()
    words = likewise("tokens", TEXTS[0], "--model", tiny("bert"), "--words", "--json").json["words"]
    found = json.loads(likewise("embed", TEXTS[0], *asked, "--words").out)
    assert found["tokens"] == [word["text"] for word in words]
    assert json.loads(likewise("embed", "\u200b", *asked, "--words").out)["vectors"] == []
    likewise("embed", "\u200b", TEXTS[0], *asked, "--words", "-o", tmp_path / "words.npy").failed(2, "holds one array")
    means = np.stack([one[word["positions"]].mean(0) for word in words])
    assert np.abs(np.array(found["vectors"]) - means).max() < FLOAT32 * largest


def test_streams_are_read_and_written_in_batches(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.inspection.commands.embed._BATCH_TEXTS", 3)
    texts = [f"the river bank {'snow ' * (number % 7)}of the house" for number in range(11)]
    model = ["--model", tiny("bert"), "--precision", "float32"]
    wanted = load_encoder(tiny("bert"), precision="float32").encode(texts)
    for name in ("a.npy", "a.jsonl"):
        said = likewise("embed", "-", *model, "-o", tmp_path / name, "--json", stdin="\r\n".join(texts) + "\n")
        assert said.json["texts"] == 11
        assert np.abs(read(tmp_path / name) - wanted).max() < FLOAT32
    records = "".join(json.dumps({"id": f"r{at}", "text": text}) + "\n\n" for at, text in enumerate(texts))
    (tmp_path / "r.jsonl").write_text(records)
    for source in (["--file", tmp_path / "r.jsonl"], ["-", "--jsonl"]):
        lines = likewise("embed", *source, *model, stdin=records).out.splitlines()
        assert [json.loads(line)["id"] for line in lines] == [f"r{at}" for at in range(11)]
    long = likewise("embed", "-", *model, stdin="\n".join([*texts[:4], "snow " * 99]))
    assert long.code == 2
    assert "line 5 of standard input has 101 tokens and the model reads 64" in long.err


def test_texts_are_cut_when_asked_and_it_says_so(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    texts, model = ["snow " * 99, "snow " * 62, "snow " * 63], ["--model", tiny("bert"), "--precision", "float32"]
    said = likewise("embed", *texts, *model, "--truncate", "-o", tmp_path / "x.npy", "--json")
    assert said.json["cut"] == 2
    assert "token limit: 2 of 3 texts" in said.err
    found = np.load(tmp_path / "x.npy")
    assert np.abs(found - found[1]).max() < FLOAT32
    tokens = likewise("embed", texts[0], *model, "--truncate", "--tokens", "-o", tmp_path / "y.npy")
    assert "token limit: 1 of 1 text\n" in tokens.err
    assert np.load(tmp_path / "y.npy").shape == (64, 48)


def test_the_prompt_of_a_role_is_put_before_the_text(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "prompted"
    shutil.copytree(tiny("bert"), folder)
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "why do ", "document": ""}}')
    asked = ["--model", folder, "--precision", "float32"]
    query = likewise("embed", "stars fade", *asked, "--role", "query").json["vector"]
    plain = likewise("embed", "why do stars fade", *asked).json["vector"]
    assert np.abs(np.array(query) - plain).max() < FLOAT32
    assert np.abs(np.array(likewise("embed", "stars fade", *asked).json["vector"]) - plain).max() > 0.01
    tokens = likewise("embed", "stars fade", *asked, "--role", "query", "--words").json["tokens"]
    assert tokens == ["why", "do", "stars", "fade"]


@pytest.mark.slow
def test_histogram_draws_every_layer(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    draw = plots.draw_layers

    def kept(path: Path, title: str, layers: Any) -> None:
        drawn.append((layers, title))
        draw(path, title, layers)

    monkeypatch.setattr(plots, "draw_layers", kept)
    asked = ["--model", tiny("bert"), "--precision", "float32", "-o", tmp_path / "x.npy"]
    said = likewise("embed", *TEXTS, *asked, "--histogram", tmp_path / "h.png")
    assert said.succeeded().err == ""
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG\r\n")
    ((layers, title),) = drawn
    assert "4 texts" in title
    assert len(layers) == 5
    for layer, found in enumerate(layers):
        lines = likewise("embed", *TEXTS, "--model", tiny("bert"), "--tokens", "--layers", layer).out.splitlines()
        for states, line in zip(found, lines, strict=True):
            assert states == pytest.approx(np.array(json.loads(line)["vectors"]), abs=FLOAT32)
    both = likewise(
        "embed", "a", "--recipe", tiny("bert"), "--recipe", tiny("mpnet"), "--histogram", tmp_path / "b.png"
    )
    assert "draws the layers of one model" in both.err


def test_histogram_holds_every_value_of_the_first_texts(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(plots, "draw_layers", lambda path, title, layers: drawn.append((title, layers)))
    (tmp_path / "texts.txt").write_text("".join(f"{word}\n" for word in range(130)))
    asked = ["--model", tiny("bert"), "-o", tmp_path / "x.npy", "--histogram", tmp_path / "h.png"]
    assert likewise("embed", "--file", tmp_path / "texts.txt", *asked).code == 0
    ((title, layers),) = drawn
    assert "128 texts" in title
    assert {len(found) for found in layers} == {128}
    values = np.array([[-77.7, 0.0, 0.5], [0.25, 0.5, 1.0]], np.float32)
    densities = []
    monkeypatch.undo()
    monkeypatch.setattr(Axes, "stairs", lambda self, *histogram, **options: densities.append(histogram))
    plots.draw_layers(tmp_path / "h.png", "t", [[values[:1], values[1:]]])
    ((density, edges),) = densities
    assert edges[0] < -77.7
    assert np.diff(edges) @ density == pytest.approx(1)
    assert density[0] == 0
    assert np.count_nonzero(density) == len({round(float(v) / float(np.diff(edges)[0])) for v in values.ravel()})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give TEXT..., or - for standard input, or --file FILE"),
        (["a", "--file", "b.txt"], "one of the three"),
        (["a", ""], "text 2 is empty"),
        (["a", "\udcff"], "text 2 is not UTF-8"),
        (["a", "--layers", "7"], "has no layer 7: layers go from 0"),
        (["a", "--layers", "x"], "'x' are not layers"),
        (["a", "--pooling", "x"], "pooling 'x' is not one of cls, mean, max"),
        (["a", "--combine", "x"], "combine 'x' is not one of mean, sum, concat"),
        (["a", "--recipe", "m:x"], "'x' is not a pooling"),
        (["a", "--recipe", "m", "--model", "m"], "give one or the other"),
        (["a", "--tokens", "--words"], "choose one"),
        (["a", "-o", "x.txt"], "no ending that names a format (.jsonl, .npy)"),
        (["a", "-o", "x.safetensors"], "no ending that names a format (.jsonl, .npy)"),
        (["a", "--format", "csv"], "format 'csv' is not one of jsonl, npy"),
        (["a", "--format", "npy"], "give --output FILE.npy"),
        (["a", "-o", "nowhere/x.npy"], "cannot be written (No such file or directory)"),
        (["a", "-o", "."], "no ending"),
        (["a", "-o", "/dev/null", "--format", "jsonl"], "not a regular file"),
        (["a", "--histogram", "x.txt"], "end it in .png, .svg, .pdf"),
        (["a", "--histogram", "nowhere/x.png"], "there is no folder"),
        (["--file", "nowhere.txt"], "nowhere.txt cannot be read"),
        (["-"], "standard input holds no text"),
        (["-", "--jsonl"], "standard input holds no text"),
        (["a", "--model", "nobody/nothing"], "not on this machine"),
        (["a", "--recipe", "all-MiniLM-L6-v2", "--recipe", "all-MiniLM-L6-v2:cls", "-o", "x.npy"],
         "an .npy file holds one array, the vectors of one recipe"),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_leave_no_file(
    likewise: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.npy").write_text("what was there")
    likewise("embed", *arguments).failed(2, said)
    assert [each.name for each in tmp_path.iterdir()] == ["x.npy"]
    assert (tmp_path / "x.npy").read_text() == "what was there"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"one\n\ntwo\n", "line 2 of standard input is empty"),
        (b"one\n\xff\n", "line 2 of standard input is not UTF-8"),
        (b'{"text": "a"}\n{"text": 3}\n', "line 2 of standard input is not a JSON object with a text"),
        (b'{"text": "a"}\n{"text": "\n', "line 2 of standard input: not valid JSON"),
    ],
)
def test_a_line_that_cannot_be_embedded_is_named(likewise: Callable[..., Any], lines: bytes, said: str) -> None:
    likewise("embed", "-", *(["--jsonl"] if b"{" in lines else []), stdin=lines).failed(2, said)


def test_texts_are_written_as_they_are(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    texts = ['a "snow", dog\nand\ttwo', "Füße – 雪\u2028\x1b[31m"]
    records = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    file = tmp_path / "x.jsonl"
    assert likewise("embed", "-", "--jsonl", "--model", tiny("roberta"), "-o", file, stdin=records).code == 0
    assert [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()] == texts


def test_numbers_read_back_are_the_same_float32(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 40)).astype(np.float32) * 10.0 ** rng.integers(-30, 30, size=(50, 40))
    vectors = vectors.astype(np.float32)
    file = tmp_path / "x.jsonl"
    with open_vectors(file, format_of(file, None)) as out:
        out.write([EmbeddedText(at, "a", "m", None, vector) for at, vector in enumerate(vectors)])
    assert np.array_equal(read(file), vectors)


def test_a_full_disk_leaves_no_file(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, rows: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(vector_files.Npy, "write", full)
    ended = likewise("embed", "a", "--model", tiny("bert"), "-o", tmp_path / "x.npy")
    ended.failed(3, "cannot be written (No space left on device): make room")
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_not_finite_are_an_error(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    weights = load_file(tiny("bert") / "model.safetensors")
    weights["encoder.layer.2.output.dense.bias"][:] = np.nan
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(tiny("bert") / file, tmp_path)
    save_file(weights, tmp_path / "model.safetensors")
    for arguments in (["embed", "a"], ["embed", "a", "--tokens"], ["tokens", "a b", "--similarity", "--layers=-1"]):
        likewise(*arguments, "--model", tmp_path).failed(2, "not finite")


def test_a_static_model_embeds_texts_and_has_no_vectors_of_tokens(
    likewise: Callable[..., Any], evaluation_data: Path
) -> None:
    folder = evaluation_data / "models" / "potion-base-4m-fp32"
    found = likewise("embed", "two rivers", "--model", folder).json["vector"]
    assert np.abs(np.array(found, np.float32) - load_encoder(folder).encode(["two rivers"])[0]).max() < FLOAT32
    likewise("embed", "two rivers", "--model", folder, "--tokens").failed(2, "shows no hidden layers")
