"""likewise index: records from standard input and files, counted. tests/parts/shell/test_ingest.py has the runs."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.shell.terminal.progress import RunProgress


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


def test_skipped_files_are_named_with_the_reason_once(likewise: Callable[..., Any], tmp_path: Path) -> None:
    notes, index = tmp_path / "notes", tmp_path / "x.index"
    notes.mkdir()
    (notes / "a.txt").write_text("bread")
    (notes / ".hidden").write_text("moon")
    for name in ("b.zip", "c.png", "d.txt"):
        (notes / name).write_bytes(b"" if name == "d.txt" else b"\x89PNG\0\1")
    said = likewise("index", index, notes)
    named = f"{notes}/b.zip (an archive), {notes}/c.png (an image), {notes}/d.txt (empty)"
    ledger = "x.index --ledger skipped lists all\n"
    assert f"warning: skipped: such as {named}; likewise info " in said.err
    assert said.err.endswith(ledger)
    assert "skipped" not in likewise("index", index, notes).err
    (notes / "e.png").write_bytes(b"\x89PNG\0\2\3")
    assert f"skipped: such as {notes}/e.png (an image); " in likewise("index", index, notes, "--json").err


def test_a_skipped_record_is_named_with_the_reason_and_not_its_line(
    likewise: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": "a", "text": "bread"}\n{"id": "b", "text": ""}\n')
    said = likewise("index", tmp_path / "x.index", tmp_path / "r.jsonl")
    assert "skipped: b (its text is empty); likewise info" in said.err


def test_every_commit_is_printed_with_stream(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    records = lines({"id": "a", "text": "bread"}, {"id": "b", "text": "moon"})
    said = likewise("index", tmp_path / "x.index", "-", "--stream", "--json", stdin=records)
    *commits, last = (json.loads(line) for line in said.out.splitlines())
    assert sorted(uri for commit in commits for uri in commit["committed"]) == ["a", "b"]
    assert last["indexed"] == 2


def test_a_source_that_does_not_exist_makes_no_index(likewise: Callable[..., Any], tmp_path: Path) -> None:
    likewise("index", tmp_path / "x.index", tmp_path / "nothing").failed(2, "nothing")
    assert not (tmp_path / "x.index").exists()


def test_an_unknown_device_is_refused_before_anything_is_done(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("bread")
    likewise("index", tmp_path / "x.index", tmp_path / "a.txt").succeeded()  # now the cache has its vector
    for name in ("x.index", "new.index"):
        said = likewise("index", tmp_path / name, tmp_path / "a.txt", "--device", "tpu")
        assert (said.code, said.err) == (
            2,
            "likewise: error: device 'tpu' is not usable here: choose cpu, or auto\n",
        )
    assert not (tmp_path / "new.index").exists()


def test_an_index_without_a_model_loads_none(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(RunProgress, "step", lambda _, text: steps.append(text))
    record = '{"id": "a", "text": "bread", "vector": [1, 0]}\n'
    likewise("index", tmp_path / "x.index", "-", "--dimensions", 2, stdin=record).succeeded()
    assert [step for step in steps if "model" in step] == []


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives each thread a heap of its own")
def test_a_run_limits_the_heaps_of_its_threads() -> None:
    program = "from likewise.shell.indexing.runs import limit_arenas; raise SystemExit(not limit_arenas())"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # it lasts: not in this process
