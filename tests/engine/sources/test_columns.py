"""Which texts in the metadata of a record are searched by words, and which are noted to be too long for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.columns import MAX_COLUMN_CHARACTERS, searched_columns


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"a": "copper", "b": "kettle", "c": "copper"}, ["copper", "kettle"]),
        ({"a": {"b": [{"c": "deep"}, "x1"]}, "d": ("t",)}, ["t", "x1", "deep"]),
        ({"n": 7, "t": True, "z": None, "e": "", "s": "  ", "list": [1, "01067"]}, []),
        ({"day": "2024-01-02", "at": "2024-01-02T10:00:00Z", "time": "10:30"}, []),
        ({"url": "https://example.org/a", "see": "see https://example.org/a"}, ["see https://example.org/a"]),
        ({"ids": "4711 12", "part": "PX-4017", "phone": "+49 351 123", "city": "北"}, ["北", "PX-4017"]),
        ({f"c{number}": f"word{number}" for number in range(300)}, 300),
        ({"long": "x " * MAX_COLUMN_CHARACTERS, "short": "y", "more": "z" * 4_999}, 2),
    ],
)
def test_texts_with_words_are_searched(metadata: dict[str, Any], expected: Any) -> None:
    columns = searched_columns("csv", metadata)
    assert (columns if isinstance(expected, list) else len(columns)) == expected
    assert searched_columns("jsonl", json.dumps(metadata, sort_keys=True)) == columns
    assert searched_columns("html", metadata) == searched_columns(None, metadata) == []


def test_a_column_that_is_too_long_is_noted(tmp_path: Path, collect: Callable[..., Any]) -> None:
    long = "many words " * 500
    rows = [
        {"text": "one", "story": long, "in": {"other": f"{long}!"}, "short": "copper"},
        {"text": "two", "story": "short"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.json").write_text(json.dumps([{"name": "n", "story": long}]))  # its columns are its text
    (tmp_path / "c.csv").write_text(f"text,a,vector\none,{long},\n")
    notes = [[note.text() for note in entry.notes] for entry in collect(tmp_path)]
    sentence = "{} beside its text is too long to be searched by words: name it with --text-field"
    assert notes == [[sentence.format('"story", "in.other"')], [], [], [sentence.format('"a"')]]
