"""The language of an index in the shell: found, given, or set in a file; told once, and shown by `info`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GERMAN = "Die alten Häuser der Stadt stehen seit vielen Jahren am Fluss, und niemand weiß, wer sie gebaut hat."


@pytest.fixture
def encoder(make_encoder: Callable[..., Any]) -> Any:
    """The word encoder, with the name of a model that reads English alone."""
    return make_encoder(name="all-MiniLM-L6-v2")


@pytest.fixture
def records(lines: Callable[..., str]) -> str:
    return lines(*({"id": str(number), "text": f"{GERMAN} {number}"} for number in range(3)))


def test_the_language_is_found_told_once_and_shown(likewise: Callable[..., Any], records: str, tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    ran = likewise("index", folder, "-", "--json", stdin=records).succeeded()
    assert ran.err.count("reads English alone") == 1
    (note,) = (note for note in ran.json["notes"] if "reads English alone" in note)
    assert note in ran.err
    assert likewise("search", folder, "haus", "--mode", "words", "--json").json["matched"] == 3
    info = likewise("info", folder, "--json").json
    assert (info["languages"], info["language"]) == ({"de": 1.0}, "de")
    assert "German 100 %; words are searched as German" in likewise("info", folder).out
    likewise("index", folder, "-", "--language", "auto", "--json", stdin=records).reported(0, unchanged=3, notes=[])


def test_an_index_of_japanese_does_not_say_that_it_is_searched_as_english(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    text = "私の家の犬はとても元気で、毎日駅の前の公園で遊びます。水をたくさん飲んで、よく眠ります。"
    likewise("index", folder, "-", stdin=lines({"id": "a", "text": text * 2}))
    assert "Japanese 100 %; words are searched as characters and pairs of characters" in likewise("info", folder).out
    assert likewise("search", folder, "犬", "--mode", "words", "--json").json["matched"] == 1
    assert likewise("index", tmp_path / "few.index", "-", stdin=lines({"id": "a", "text": text})).code == 0
    few = likewise("info", tmp_path / "few.index").out
    assert "not known, because there is too little text\n" in few
    assert "English" not in few


def test_a_rebuild_finds_the_language_again(likewise: Callable[..., Any], records: str, tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    likewise("index", folder, "-", "--language", "en", stdin=records)
    assert likewise("search", folder, "haus", "--mode", "words", "--json").json["matched"] == 0
    likewise("index", folder, "-", "--rebuild", "--json", stdin=records).succeeded()
    assert likewise("info", folder, "--json").json["language"] == "en"
    found = likewise("index", folder, "-", "--rebuild", "--language", "auto", "--json", stdin=records)
    assert found.err.count("reads English alone") == 1
    assert likewise("info", folder, "--json").json["language"] == "de"


def test_an_empty_index_takes_the_language_that_is_given_later(
    likewise: Callable[..., Any], records: str, tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    assert likewise("index", folder, "-").code == 0
    assert likewise("info", folder, "--json").json["languages"] == {}
    assert "not known" in likewise("info", folder).out
    assert likewise("index", folder, "-", "--language", "none", stdin=records).code == 0
    assert likewise("info", folder, "--json").json["language"] == "none"


def test_a_file_may_leave_the_language_to_the_texts(
    likewise: Callable[..., Any], records: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".likewise.toml").write_text('language = "auto"\n')
    assert likewise("index", tmp_path / "x.index", "-", stdin=records).code == 0
    assert likewise("info", tmp_path / "x.index", "--json").json["language"] == "de"


MINILM, E5 = "all-MiniLM-L6-v2", "multilingual-e5-small"


@pytest.fixture
def two_models(
    likewise: Callable[..., Any],
    make_encoder: Callable[..., Any],
    register: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """The command line with word encoders under the names of the two models, as if both were installed."""
    encoders = {name: make_encoder(name=name, weights=name) for name in (MINILM, E5)}
    register(named=lambda spec: encoders[spec.model])
    monkeypatch.setattr("indexer.languages.choice.data_file", lambda: Path("data"))
    return likewise


@pytest.mark.parametrize("source", ["folder", "-"])
def test_the_model_is_chosen_said_and_shown(
    two_models: Callable[..., Any], records: str, tmp_path: Path, source: str
) -> None:
    folder, argument = tmp_path / "x.index", source
    if source == "folder":
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / "a.jsonl").write_text(records)
        argument = str(tmp_path / "texts")
    reason = f"the texts are German 100 %, and {MINILM} reads only English"
    ran = two_models("index", folder, argument, "--json", stdin=records).reported(0, model=E5, model_reason=reason)
    assert ran.err.count(f"likewise: the model is {E5}: {reason}\n") == 1
    assert "reads English alone" not in ran.err
    assert ran.json["notes"] == [note for note in ran.json["notes"] if reason not in note]
    info = two_models("info", folder, "--json").json
    assert (info["model"], info["model_reason"]) == (E5, reason)
    printed = two_models("info", folder).out
    assert (f"chosen     because {MINILM} reads only English\n" in printed, printed.count("German 100 %")) == (True, 1)
    again = two_models("index", folder, argument, "--model", "auto", "--json", stdin=records).reported(0, model=E5)
    assert "the model is" not in again.err
    rebuilt = two_models("index", folder, argument, "--rebuild", "--json", stdin=records)
    rebuilt.reported(0, model=E5, model_reason=reason)


def test_a_model_that_is_named_is_not_chosen(
    two_models: Callable[..., Any], records: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for options in (["--model", MINILM], ["--query-prompt", "question: "]):
        folder = f"{options[0]}.index"
        assert "model" not in two_models("index", f"./{folder}", "-", *options, "--json", stdin=records).json
        two_models("info", f"./{folder}", "--json").reported(0, model=MINILM, model_reason="")
    (tmp_path / "a.jsonl").write_text(records)
    for options, model in ((["--rebuild"], MINILM), (["--rebuild", "--model", "auto"], E5)):
        two_models("index", "./--model.index", "a.jsonl", *options)
        two_models("info", "./--model.index", "--json").reported(0, model=model)
    for value, model in (("auto", E5), (MINILM, MINILM)):
        (tmp_path / ".likewise.toml").write_text(f'model = "{value}"\n')
        two_models("index", f"{model}.index", "-", stdin=records)
        two_models("info", f"{model}.index", "--json").reported(0, model=model)


def test_without_the_package_nothing_is_fetched(
    two_models: Callable[..., Any], records: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.languages.choice.data_file", lambda: None)
    (tmp_path / "a.jsonl").write_text(records)
    ran = two_models("index", tmp_path / "x.index", tmp_path / "a.jsonl", "--json").reported(0, model=MINILM)
    assert f"is not installed: write --model {E5} to fetch it" in ran.err
    assert f"likewise migrate INDEX --model {E5}" in ran.err


def test_an_empty_index_says_that_its_model_is_open(two_models: Callable[..., Any], tmp_path: Path) -> None:
    two_models("index", tmp_path / "x.index", "-")
    assert "chosen     because no document has chosen a model yet\n" in two_models("info", tmp_path / "x.index").out


def test_standard_input_keeps_the_size_of_passages_that_is_given(
    two_models: Callable[..., Any], records: str, tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    two_models("index", folder, "-", "--max-tokens", "20", "--json", stdin=records).reported(0, model=E5)
    assert two_models("info", folder, "--json").json["passage_settings"] == {"max_tokens": 20, "overlap": 5}
    two_models("index", folder, "-", "--max-tokens", "20", "--json", stdin=records).reported(0, unchanged=3)
