"""likewise status: what has changed since the last run, and the command that reads it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parts.shell.test_default_index import enter

from indexer.sources.formats import READER_VERSIONS


@pytest.fixture
def folder(tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two notes and an index of its own elsewhere; the user has no configuration."""
    return enter(tmp_path, likewise, monkeypatch)


def test_status_tells_what_changed_and_update_reads_it(likewise: Callable[..., Any], folder: Path) -> None:
    for file in (folder / "notes").iterdir():
        os.utime(file, (1, 1))
    likewise("index", "notes")
    kinds = ("new", "changed", "outdated", "gone", "ignored", "failed", "missing", "unlisted")
    nothing: dict[str, list[str]] = {kind: [] for kind in kinds}
    notes = folder / "notes"
    expected = {"documents": 2, "sources": [str(notes)], **nothing, "unchanged": 2, "prunable": 0, "reasons": {}}
    assert likewise("status", "--json").json == expected
    (notes / "star.txt").write_text("A star")
    (notes / "moon.txt").write_text("The moon is full")
    (notes / "bread.txt").unlink()
    catalog = (folder / ".likewise" / "catalog.db").read_bytes()
    said = likewise("status")
    assert said.out.splitlines() == [
        "new       notes/star.txt",
        "changed   notes/moon.txt",
        "gone      notes/bread.txt",
        ".likewise: 2 documents of 1 source; files: 1 new, 1 changed, 1 gone, 0 unchanged",
        "likewise update --prune reads the changes and removes what is gone",
    ]
    assert (folder / ".likewise" / "catalog.db").read_bytes() == catalog
    counts = likewise("update", "--json").json
    assert (counts["indexed"], counts["pruned"]) == (2, 0)
    assert likewise("status").out.splitlines() == [
        "gone      notes/bread.txt",
        ".likewise: 3 documents of 1 source; files: 1 gone, 2 unchanged",
        "likewise update --prune reads the changes and removes what is gone",
    ]
    assert likewise("update", "--prune", "--json").json["pruned"] == 1
    assert likewise("status", "--json").json == expected
    (notes / ".likewiseignore").write_text("moon.txt\n")
    assert likewise("status", "--json").json["ignored"] == [str(notes / "moon.txt")]
    (notes / "damaged.pdf").write_bytes(b"%PDF-1.4 broken")
    assert likewise("update").code == 1
    found = likewise("status", "--json").json
    assert found["failed"] == [*found["reasons"]] == [str(notes / "damaged.pdf")]
    (reason,) = found["reasons"].values()
    assert reason.startswith("damaged: not a readable PDF")
    assert likewise("status").out.splitlines()[0] == f"failed    notes/damaged.pdf: {reason}"
    (notes / "two.jsonl").write_text("no\nno\n")
    likewise("update")
    assert "failed    notes/two.jsonl: line 1: not valid JSON" in likewise("status").out
    assert "(and 1 more record)\n" in likewise("status").out


def test_an_advised_command_runs_as_it_is_printed(likewise: Callable[..., Any], folder: Path) -> None:
    said = likewise("info", "my notes & more.index")
    assert said.err.endswith(f"likewise index '{folder}/my notes & more.index' SOURCE\n")
    likewise("index", "my notes & more.index", "notes")
    (folder / "notes" / "star.txt").write_text("A star")
    advised = likewise("status", "my notes & more.index").out.splitlines()[-1].removesuffix(" reads the changes")
    assert shlex.split(advised) == ["likewise", "update", "my notes & more.index"]
    assert likewise(*shlex.split(advised)[1:], "--json").json["indexed"] == 1


def test_files_whose_reader_has_changed_are_outdated(
    likewise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = folder / "notes"
    for name in ("alpha.md", "beta.md"):
        (notes / name).write_text(f"the text of {name}")
    for file in notes.iterdir():
        os.utime(file, (1, 1))
    likewise("index", "notes")
    monkeypatch.setitem(READER_VERSIONS, "markdown", 99)
    found = likewise("status", "--json").json
    assert found["outdated"] == [str(notes / "alpha.md"), str(notes / "beta.md")]
    assert (found["unchanged"], found["changed"]) == (2, [])
