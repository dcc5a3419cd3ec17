"""likewise show: a document as it is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_show_keeps_tabs_and_lines(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\techo\tone \x1b[31m\n")
    likewise("index", tmp_path / "x.index", tmp_path / "Makefile")
    said = likewise("show", tmp_path / "x.index", tmp_path / "Makefile")
    assert said.out.endswith("\n\nall:\n\techo\tone \N{REPLACEMENT CHARACTER}[31m\n\n")


def test_title_fields_and_text_are_printed(likewise: Callable[..., Any], topics: Path) -> None:
    head, text = likewise("show", topics, "moon").out.split("\n\n")
    assert head.splitlines() == ["title: Moon", "format: jsonl", "year: 2022"]
    assert text == "The moon pulls the water of the sea.\n"
    document = likewise("show", topics, "moon", "--json").json
    assert (document["uri"], document["metadata"]) == ("moon", {"year": 2022})


def test_a_misspelt_uri_is_refused(likewise: Callable[..., Any], topics: Path) -> None:
    likewise("show", topics, "mooon").failed(2, "mooon")
