"""likewise tokens against the transformers library: ids, segments, hidden states, and the two senses of bank."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hardware import FLOAT32

from indexer.encoders.recipes.locate import find_model

BANK = "After stealing money from the bank vault, the bank robber was seen fishing on the Mississippi river bank."
PAIR = ("The robber was fishing.", "Stars fade on the river bank.")


def hidden_states(folder: Path, ids: list[int], segments: list[int] | None = None) -> list[np.ndarray]:
    """transformers' hidden states (tokens, hidden) of each layer."""
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    types = {} if segments is None else {"token_type_ids": torch.tensor([segments])}
    with torch.inference_mode():
        states = model(input_ids=torch.tensor([ids]), output_hidden_states=True, **types).hidden_states
    return [state[0].numpy() for state in states]


def cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def column(said: Any, name: str) -> list[Any]:
    return [token[name] for token in said.json["tokens"]]


@pytest.mark.parametrize("texts", [(BANK,), PAIR])
def test_tokens_are_what_transformers_tokenizer_gives(likewise: Callable[..., Any], texts: tuple[str, ...]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(find_model("all-MiniLM-L6-v2"))
    wanted = tokenizer(*texts)
    said = likewise("tokens", *texts, "--json")
    assert column(said, "id") == wanted["input_ids"]
    assert column(said, "segment") == wanted["token_type_ids"]
    assert column(said, "mask") == wanted["attention_mask"]
    assert column(said, "token") == tokenizer.convert_ids_to_tokens(wanted["input_ids"])


def test_the_table_shows_position_token_id_segment_and_mask(likewise: Callable[..., Any]) -> None:
    rows = [line.split() for line in likewise("tokens", BANK).out.splitlines()]
    assert rows[0] == ["token", "id", "segment", "mask"]
    assert rows[1] == ["0", "[CLS]", "101", "0", "1"]
    assert rows[20] == ["19", "bank", "2924", "0", "1"]
    pair = [line.split() for line in likewise("tokens", "a b", "c").out.splitlines()]
    assert [row[3] for row in pair[1:]] == list("000011")


def test_the_two_senses_of_bank_come_apart(likewise: Callable[..., Any]) -> None:
    """The default layers are the middle two, 3 and 4 of 6; the cosines are those of transformers' hidden states."""
    said = likewise("tokens", BANK, "--similarity", "--of", "bank", "--json")
    found = np.array(said.json["cosines"])
    (vault, robber, river) = (entry["at"] for entry in said.json["compared"])
    assert (vault, robber, river) == (6, 10, 19)
    assert found[0, 1] > found[0, 2] + 0.05
    assert found[0, 1] > found[1, 2] + 0.05
    states = hidden_states(find_model("all-MiniLM-L6-v2"), column(said, "id"))
    assert said.json["recipe"] == "all-MiniLM-L6-v2, layers 3, 4 of 6, mean"
    wanted = cosines(((states[3] + states[4]) / 2)[[vault, robber, river]])
    assert np.abs(found - wanted).max() < FLOAT32
    assert found[0].round(3).tolist() == pytest.approx([1, 0.928, 0.861], abs=0.002)
    printed = likewise("tokens", BANK, "--similarity", "--of", "bank").out.splitlines()[-3:]
    assert printed[0].split() == ["6", "bank", *(f"{value:.3f}" for value in found[0])]


@pytest.mark.parametrize(("layers", "combine"), [("0", "mean"), ("-1", "mean"), ("1,3", "sum"), ("-2..-1", "concat")])
def test_layers_and_combining_of_one_text_and_of_a_pair(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], layers: str, combine: str
) -> None:
    chosen = {"0": [0], "-1": [4], "1,3": [1, 3], "-2..-1": [3, 4]}[layers]
    for texts in (PAIR[:1], PAIR):
        said = likewise("tokens", *texts, "--model", tiny("bert"), "--similarity", "--at", 1, "--at", 4, "--json",
                        f"--layers={layers}", "--combine", combine)  # fmt: skip
        states = hidden_states(tiny("bert"), column(said, "id"), column(said, "segment"))
        parts = [states[layer][[1, 4]] for layer in chosen]
        wanted = cosines(np.concatenate(parts, axis=1) if combine == "concat" else np.sum(parts, axis=0))
        assert np.abs(np.array(said.json["cosines"]) - wanted).max() < FLOAT32
    assert set(column(said, "segment")) == {0, 1}


def test_a_word_is_the_mean_of_its_tokens(likewise: Callable[..., Any], tiny: Callable[[str], Path]) -> None:
    said = likewise("tokens", "the robber", "robbers vault", "--model", tiny("bert"), "--words", "--similarity",
                    "--layers", "2", "--json")  # fmt: skip
    words = said.json["words"]
    assert [word["text"] for word in words] == ["the", "robber", "robbers", "vault"]
    assert max(len(word["positions"]) for word in words) > 1
    ids, segments = column(said, "id"), column(said, "segment")
    states = hidden_states(tiny("bert"), ids, segments)[2]
    wanted = cosines(np.stack([states[word["positions"]].mean(0) for word in words]))
    assert np.abs(np.array(said.json["cosines"]) - wanted).max() < FLOAT32
    assert sorted(at for word in words for at in word["positions"]) == [at for at, mark in enumerate(ids) if mark > 3]


def test_words_that_occur_once_are_all_compared_where_none_occurs_twice(likewise: Callable[..., Any]) -> None:
    said = likewise("tokens", "One river, two banks.", "--similarity", "--json")
    assert [entry["at"] for entry in said.json["compared"]] == [1, 2, 3, 4, 5, 6]
    again = likewise("tokens", "One river. Two rivers, one bank.", "--similarity", "--words", "--json")
    assert [entry["text"] for entry in again.json["compared"]] == ["One", "one"]


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "mpnet"])
def test_models_without_segments_have_segment_0_throughout(
    likewise: Callable[..., Any], tiny: Callable[[str], Path], kind: str
) -> None:
    said = likewise("tokens", *PAIR, "--model", tiny(kind), "--json")
    assert set(column(said, "segment")) == {0}
    assert {sequence for sequence in column(said, "sequence") if sequence is not None} == {0, 1}
    if kind == "roberta":
        tokens = column(said, "token")
        end = tokens.index("</s>")
        assert (tokens[0], tokens[end + 1], tokens[-1]) == ("<s>", "</s>", "</s>")
    found = likewise("tokens", *PAIR, "--model", tiny(kind), "--similarity", "--at=2", "--at=9", "--layers=3", "--json")
    wanted = cosines(hidden_states(tiny(kind), column(said, "id"))[3][[2, 9]])
    assert np.abs(np.array(found.json["cosines"]) - wanted).max() < FLOAT32


def test_a_text_over_the_limit_is_cut_only_when_asked(likewise: Callable[..., Any]) -> None:
    long = "word " * 300
    likewise("tokens", long).failed(2, "the text has 302 tokens and all-MiniLM-L6-v2 reads 256", "--truncate")
    cut = likewise("tokens", long, "--truncate", "--json").succeeded()
    assert len(cut.json["tokens"]) == 256
    assert column(cut, "token")[-1] == "[SEP]"
    assert "cut to the 256" in cut.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a", "--similarity", "--layers", "7"], "has no layer 7: layers go from 0"),
        (["a", "--similarity", "--layers", "x"], "'x' are not layers"),
        (["a", "--similarity", "--combine", "x"], "combine 'x' is not one of mean, sum, concat"),
        (["a", "--similarity", "--of", "b"], "no token reads 'b'"),
        (["unbelievably", "--similarity", "--of", "unbelievably"], "add --words"),
        (["a", "--similarity", "--at", "3"], "no token 3: they are numbered from 0 to 2"),
        (["a", "--of", "a"], "add it"),
        ([" "], "text 1 is empty"),
        (["\u200b", "--similarity"], "there is nothing to compare"),
        (["\u200b", "--similarity", "--words"], "there is nothing to compare"),
        (["a", ""], "text 2 is empty"),
        (["a", "\udcff"], "text 2 is not UTF-8"),
        (["a", "--model", "nobody/nothing"], "not on this machine"),
        (["a", "--model", "/nowhere/model"], "does not exist"),
    ],
)
def test_errors_are_one_line(
    likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    likewise("tokens", *arguments).failed(2, said)


def test_a_static_model_has_tokens_and_no_hidden_layers(likewise: Callable[..., Any], evaluation_data: Path) -> None:
    folder = evaluation_data / "models" / "potion-base-4m-fp32"
    assert [row.split()[1] for row in likewise("tokens", "two rivers", "--model", folder).out.splitlines()[1:]] == [
        "two",
        "rivers",
    ]
    likewise("tokens", "two rivers", "--model", folder, "--similarity").failed(2, "has no hidden layers")


def test_no_control_character_reaches_the_terminal(likewise: Callable[..., Any], tiny: Callable[[str], Path]) -> None:
    for arguments in ([], ["--words"], ["--words", "--similarity"]):
        assert "\x1b" not in likewise("tokens", "a\x1b[31m b", "--model", tiny("roberta"), *arguments).out


def test_tokens_alone_load_no_torch(environment: SimpleNamespace) -> None:
    program = (
        "import sys, likewise.shell\n"
        "try:\n    likewise.shell.main(['tokens', 'a b'])\n"
        "except SystemExit:\n    print({'torch', 'transformers', 'openvino'} & set(sys.modules))"
    )
    said = subprocess.run([environment.python, "-c", program], capture_output=True, text=True, check=True, timeout=110)
    assert said.stdout.splitlines()[-2:] == ["3  [SEP]   102        0     1", "set()"]
