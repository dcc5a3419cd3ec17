"""likewise check: what is verified and what is repaired."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indexer.stores.local.check
from indexer.stores.local.swap import swap
from likewise.map.projection import principal_components


def test_a_sound_index(likewise: Callable[..., Any], topics: Path) -> None:
    assert likewise("check", topics).out == "ok\n"
    report = likewise("check", topics, "--json").json
    assert (report["ok"], report["problems"]) == (True, [])


def test_a_missing_word_index_is_made_again_from_the_catalog(likewise: Callable[..., Any], topics: Path) -> None:
    before = likewise("search", topics, "water sea", "--mode", "words", "--json").json["hits"]
    shutil.rmtree(topics / "words")
    said = likewise("check", topics)
    assert said.code == 1
    assert "words" in said.out
    assert likewise("check", topics, "--repair").code == 0
    assert likewise("check", topics).out == "ok\n"
    after = likewise("search", topics, "water sea", "--mode", "words", "--json").json["hits"]
    assert [(hit["uri"], hit["score"]) for hit in after] == [(hit["uri"], hit["score"]) for hit in before]
    assert len(after) == 2


def test_recall_is_that_of_an_exact_index(likewise: Callable[..., Any], topics: Path) -> None:
    measured = likewise("check", topics, "--recall", "--json").json["recall"]
    assert (measured["recall"], measured["exact"]) == (1.0, True)


@pytest.mark.slow
def test_a_damaged_map_is_named_with_the_command_that_draws_it_again(
    likewise: Callable[..., Any], topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.map.projection._umap", principal_components)
    assert likewise("map", topics).code == 0
    assert likewise("check", topics).out == "ok\n"
    file = topics / "derived" / "map.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    said = likewise("check", topics, "--json")
    said.reported(1, problems=[f"the map {file} is damaged: likewise map {topics} draws it again"])
    assert likewise("map", topics).code == 0
    assert likewise("check", topics).out == "ok\n"


def test_a_file_that_another_process_replaces_during_a_check_is_no_problem(
    likewise: Callable[..., Any], topics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    likewise("copy", topics, tmp_path / "other.index")
    look = indexer.stores.local.check._segments

    def look_after_an_exchange(*arguments: Any, **options: Any) -> Any:
        if (tmp_path / "other.index").exists():
            swap(topics, tmp_path / "other.index")  # as a change of the model does, after the snapshot was taken
            shutil.rmtree(tmp_path / "other.index")
            yield "a segment of the snapshot is missing"
        yield from look(*arguments, **options)

    monkeypatch.setattr(indexer.stores.local.check, "_segments", look_after_an_exchange)
    assert likewise("check", topics).out == "ok\n"
    shutil.rmtree(topics / "words")
    assert likewise("check", topics).code == 1  # a problem that stays is one
