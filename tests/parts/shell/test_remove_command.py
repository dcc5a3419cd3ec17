"""likewise remove: by uri, and by a filter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_documents_are_removed_by_a_filter(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    for number in range(5):
        (tmp_path / "old" / f"{number}.txt").write_text(f"text {number}")
    monkeypatch.chdir(tmp_path)
    assert likewise("index", ".likewise", "old").code == 0
    (tmp_path / "old").rename(tmp_path / "new")
    assert likewise("index", ".likewise", "new").code == 0
    (tmp_path / "new" / "5.txt").write_text("text 5")
    assert likewise("update", "--forget", "old").code == 0
    assert likewise("index", "one.index", "new/1.txt").out == "1 seen, 1 indexed: 1 document in 1 passage\n"
    assert likewise("info", "one.index").out.startswith("one.index: 1 document, 1 passage\n")
    said = likewise("remove", "--where", 'under "new"')  # six of eleven
    said.failed(2, "6 of 11 documents, more than half")
    assert likewise("remove", "--where", 'under "old"').out == "removed 5 documents\n"
    assert likewise("remove", "--where", 'format = "txd"', "--json").json == {"removed": 0}
    assert [line.split("\t")[0] for line in likewise("list").out.splitlines()] == [f"new/{n}.txt" for n in range(6)]
    assert likewise("remove", "--where", "exists uri", "--yes", "--json").json == {"removed": 6}
    for arguments in ([], ["new/1.txt", "--where", "exists uri"]):
        said = likewise("remove", ".likewise", *arguments)
        assert said.code == 2
        assert "give either URIs or --where" in said.err


def test_the_records_of_a_forgotten_file_are_removed_by_its_name(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,text\n1,a comet\n2,a sun\n")
    (tmp_path / "b.csv").write_text("id,text\n1,a river\n3,a sea\n")
    likewise("index", ".likewise", "a.csv", "b.csv").succeeded()
    likewise("update", "--forget", "a.csv").succeeded()
    assert likewise("remove", "--where", 'under "a.csv"').out == "removed 2 documents\n"
    assert likewise("list").out == "b.csv#1\t\n3\t\n"


def test_an_unknown_uri_removes_nothing(likewise: Callable[..., Any], topics: Path) -> None:
    likewise("remove", topics, "bread", "braed").failed(2, "braed")
    assert likewise("list", topics).out.splitlines()[0] == "bread\tBread"
    assert likewise("remove", topics, "bread", "moon", "--json").json == {"removed": 2}
    assert likewise("list", topics).out == "river\tRiver\n"
