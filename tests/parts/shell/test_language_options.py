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
