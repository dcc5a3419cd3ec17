"""likewise index: records from standard input and files, counted. tests/indexer/test_ingest.py has the runs."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_a_second_run_changes_nothing(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("bread")
    (tmp_path / "notes" / "b.txt").write_text("moon")
    index = tmp_path / "x.index"
    counts = {"seen": 2, "indexed": 2, "unchanged": 0, "updated": 0, "skipped": 0, "failed": 0, "pruned": 0}
    first = likewise("index", index, tmp_path / "notes", "--json").json
    assert {name: first[name] for name in counts} == counts
    again = likewise("index", index, tmp_path / "notes", "--json").json
    assert {name: again[name] for name in counts} == counts | {"indexed": 0, "unchanged": 2}
    (tmp_path / "notes" / "b.txt").unlink()
    pruned = likewise("index", index, tmp_path / "notes", "--prune", "--json").json
    assert {name: pruned[name] for name in counts} == counts | {"seen": 1, "indexed": 0, "unchanged": 1, "pruned": 1}


def test_every_commit_is_printed_with_stream(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    records = lines({"id": "a", "text": "bread"}, {"id": "b", "text": "moon"})
    said = likewise("index", tmp_path / "x.index", "-", "--stream", "--json", stdin=records)
    *commits, last = (json.loads(line) for line in said.out.splitlines())
    assert sorted(uri for commit in commits for uri in commit["committed"]) == ["a", "b"]
    assert last["indexed"] == 2


def test_a_source_that_does_not_exist_makes_no_index(likewise: Callable[..., Any], tmp_path: Path) -> None:
    said = likewise("index", tmp_path / "x.index", tmp_path / "nothing")
    assert (said.code, said.out) == (2, "")
    assert "nothing" in said.err
    assert not (tmp_path / "x.index").exists()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives each thread a heap of its own")
def test_a_run_limits_the_heaps_of_its_threads() -> None:
    program = "from search.cli.indexing.runs import limit_arenas; raise SystemExit(not limit_arenas())"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # it lasts: not in this process
