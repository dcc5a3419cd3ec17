"""Records in .json files that are JSON Lines, or objects around a list of records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from indexer.ledger import Code
from indexer.sources import Entry

Collect = Callable[..., list[Entry]]

OTTER, BEAVER = '{"id": 1, "text": "The otter builds no dam."}', '{"id": 2, "text": "The beaver does."}'
TEXTS = ["The otter builds no dam.", "The beaver does."]


def texts(entries: list[Entry]) -> list[str]:
    return [entry.document.text if entry.document else entry.reason.text() for entry in entries]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_json_lines_under_the_name_json(tmp_path: Path, collect: Collect, encoding: str) -> None:
    path = tmp_path / "lines.json"
    path.write_bytes(f"\n{OTTER}\n\n{BEAVER}\n".encode(encoding))
    entries = collect(path)
    assert texts(entries) == TEXTS
    assert [entry.reader for entry in entries] == ["json/2", "json/2"]


def test_a_damaged_line_fails_alone_and_lines_without_a_text_are_one_text(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "lines.json"
    path.write_text(f'{OTTER}\n{BEAVER}\n{{"id": 3,\n')
    assert texts(collect(path))[:2] == TEXTS
    assert [entry.state for entry in collect(path)] == ["read", "read", "failed"]
    path.write_text('{"level": "warn"}\n{"level": "error"}\n')
    assert texts(collect(path)) == ['{"level": "warn"}\n{"level": "error"}\n']


def test_a_list_of_records_inside_an_object(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "data.json"
    records = f"[\n{OTTER},\n{BEAVER}]"
    path.write_text(f'{{"response": {{"total": 2, "title": "Rodents",\n"docs": {records}}}}}')
    entries = collect(path)
    assert texts(entries) == TEXTS
    assert [entry.notes for entry in entries] == [(Code.MEMBERS_BESIDE('"response.title"'),), ()]
    path.write_text('{"é": [\n{"text": "one"},\n{"text": "two"}]}')
    assert [entry.uri for entry in collect(path)] == [f"{path}:2", f"{path}:3"]
    path.write_text(json.dumps({"é": [{"text": "one"}, {"text": "two"}]}))
    assert [entry.uri for entry in collect(path)] == [f"{path}:1", f"{path}:1:2"]


@pytest.mark.parametrize(
    "value",
    [
        {"users": [{"text": "one"}], "posts": [{"text": "two"}]},
        {"article": "long " * 50, "comments": [{"text": "one"}]},
        {"tasks": [{"label": "one"}, {"label": "two"}]},
        {"version": 1},
    ],
)
def test_other_objects_are_one_text(tmp_path: Path, collect: Collect, value: object) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(value))
    assert texts(collect(path)) == [json.dumps(value)]
