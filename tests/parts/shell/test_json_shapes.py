"""The output for programs: the members that --json prints, by name and type. Members may be added, never changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from search import Hit

COUNTS = ("seen", "indexed", "unchanged", "updated", "skipped", "failed", "pruned")


@pytest.fixture
def folder(likewise: Callable[..., Any], tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Bread\n\nKnead the dough.\n")
    (tmp_path / "notes" / "r.jsonl").write_text('{"id": "r", "text": "yeast", "title": "R", "year": 2020}\n{"id": \n')
    assert likewise("index", tmp_path / "x.index", tmp_path / "notes").code == 1
    return tmp_path / "x.index"


def types(value: dict[str, Any], **expected: type | tuple[type, ...]) -> None:
    for name, kind in expected.items():
        assert isinstance(value[name], kind), (name, value[name])
        assert kind is bool or not isinstance(value[name], bool), name


def test_index(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("index", folder, folder.parent / "notes", "--json")
    assert len(said.out.splitlines()) == 1
    types(said.json, **dict.fromkeys(COUNTS, int))
    assert said.json["seen"] == sum(said.json[name] for name in COUNTS[1:-1])


def test_index_stream(likewise: Callable[..., Any], tmp_path: Path) -> None:
    said = likewise("index", tmp_path / "y.index", "-", "--stream", stdin='{"id": "a", "text": "b"}\n')
    first, last = (json.loads(line) for line in said.out.splitlines())
    assert first == {"committed": ["a"]}
    assert set(COUNTS) <= set(last)


@pytest.mark.parametrize("arguments", [["search", "yeast"], ["search", "yeast", "--passages"], ["similar", "r"]])
def test_search_and_similar(likewise: Callable[..., Any], folder: Path, arguments: list[str]) -> None:
    found = likewise(arguments[0], folder, *arguments[1:], "--json").json
    types(found, query=str, mode=str, matched=int, exact=bool, hits=list)
    assert found["mode"] == "dense"
    for hit in found["hits"]:
        assert set(hit) == {each.name for each in fields(Hit)}
        types(hit, uri=str, title=str, text=str, start=int, end=int, score=float, cosine=float, metadata=dict)
        assert hit["page"] is None
        assert sum(hit["why"]["contributions"].values()) == pytest.approx(hit["score"])
        assert -1 <= hit["cosine"] <= 1


def test_info_and_its_ledger(likewise: Callable[..., Any], folder: Path) -> None:
    found = likewise("info", folder, "--json").json
    types(found, documents=int, passages=int, dimensions=int, model=str, segments=list)
    assert (found["documents"], found["dimensions"], found["model"]) == (2, 64, "words")
    rows = [json.loads(line) for line in likewise("info", folder, "--ledger", "--json").out.splitlines()]
    assert [row for row in rows if set(row) != {"file", "uri", "state", "reason"}] == []
    assert sorted(row["state"] for row in rows) == ["failed", "indexed", "indexed"]
    (failed,) = likewise("info", folder, "--ledger", "failed", "--json").out.splitlines()
    assert json.loads(failed)["uri"].endswith("r.jsonl:2")


def test_check_show_list_remove_compact(likewise: Callable[..., Any], folder: Path) -> None:
    types(likewise("check", folder, "--json").json, ok=bool, problems=list, notes=list)
    assert likewise("show", folder, "r", "--json").json["metadata"] == {"year": 2020}
    listed = [json.loads(line) for line in likewise("list", folder, "--json").out.splitlines()]
    assert [type(row["uri"]) for row in listed] == [str, str]
    types(likewise("compact", folder, "--json").json, bytes=int, bytes_before=int)
    assert likewise("remove", folder, "r", "--json").json == {"removed": 1}


def test_errors_print_nothing_on_the_output(likewise: Callable[..., Any], folder: Path) -> None:
    for arguments in (["search", folder, ""], ["show", folder, "nothing"], ["search", folder, "a", "--where", "x = 1"]):
        likewise(*arguments, "--json").failed(2)
