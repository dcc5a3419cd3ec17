"""likewise pairs: the most similar pairs of a file, and of an index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_the_command_on_a_file(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the bread is old\n\nstars explode\nthe bread is stale\nstars explode\n")
    said = likewise("pairs", tmp_path / "a.txt", "-n", "1").succeeded()
    assert said.out.splitlines()[0].endswith("1: the bread is old")
    assert said.out.splitlines()[1].endswith("4: the bread is stale")
    assert said.out.splitlines()[2] == "2 times  3: stars explode"
    assert said.err == "1 pair of 3 texts; 1 text more than once in the file\n"
    found = likewise("pairs", tmp_path / "a.txt", "--min-score", "0.999", "--json").json
    assert (found["pairs"], found["texts"], found["exact"], found["cut"]) == ([], 3, True, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.jsonl", '{"id": "x", "body": "stars explode"}\n{"id": "y", "body": "stars fade"}\n'),
        ("r.csv", "id,body\nx,stars explode\ny,stars fade\n"),
        ("r.tsv", "id\tbody\nx\tstars explode\ny\tstars fade\n"),
    ],
)
def test_the_command_on_records(likewise: Callable[..., Any], tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (pair,) = likewise("pairs", tmp_path / name, "--text-field", "body", "--json").json["pairs"]
    assert (pair["first"]["uri"], pair["second"]["uri"]) == ("x", "y")


def test_the_command_on_an_index(likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"id": "a", "text": "stars explode"}, {"id": "b", "text": "bread"}, {"id": "c", "text": "stars fade"}]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    assert likewise("index", tmp_path / "x.index", "-", stdin=lines).code == 0
    monkeypatch.setenv("LIKEWISE_INDEX", str(tmp_path / "x.index"))
    assert likewise("pairs", "-n", "2").err == "2 pairs of 3 passages\n"
    assert "segments   3 exact\n" in likewise("info").out
    best = likewise("pairs", "--json").json["pairs"][0]
    assert (best["first"]["uri"], best["second"]["uri"]) == ("a", "c")
    monkeypatch.setenv("LIKEWISE_INDEX", str(tmp_path))
    assert likewise("pairs", "--index", tmp_path / "x.index", "--json").json["pairs"][0] == best
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    assert "not both" in likewise("pairs", tmp_path / "t.txt", "--index", tmp_path / "x.index").err
    monkeypatch.delenv("LIKEWISE_INDEX")
    assert "name a FILE or an INDEX first" in likewise("pairs").err


def test_what_is_wrong_is_said_in_a_line(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "r.jsonl").write_text('{"id": "x"}\n')
    (tmp_path / "folder").mkdir()
    for name, complaint in (
        ("empty.txt", "holds no text"),
        ("r.jsonl", "has no text"),
        ("folder", "is no index"),
        ("none.txt", "does not exist"),
    ):
        said = likewise("pairs", tmp_path / name)
        assert said.code == 2
        assert complaint in said.err
