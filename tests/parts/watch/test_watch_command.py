"""likewise watch: what it refuses to start with. tests/parts/watch/test_watch.py has the watching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from indexer.sources import ReadOptions

pytest.importorskip("watchfiles")
from likewise.watch.watch import Watch


def test_standard_input_and_missing_folders_cannot_be_watched(likewise: Callable[..., Any], tmp_path: Path) -> None:
    likewise("watch", tmp_path / "x.index", "-").failed(2, "standard input cannot be watched")
    likewise("watch", tmp_path / "x.index", tmp_path / "nothing").failed(2, "nothing")
    assert not (tmp_path / "x.index").exists()


def test_without_a_source_the_recorded_ones_are_watched(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[Any] = []
    monkeypatch.setattr(Watch, "run", lambda self: watched.extend(self._groups))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("the moon")
    assert likewise("index", "x.index", "notes", "--glob", "*.md").code == 0
    assert likewise("watch", "x.index").code == 0
    assert watched == [(ReadOptions(glob=("*.md",)), [str(tmp_path / "notes")])]
    likewise("watch", "x.index", "--no-ignore").failed(2, "need a SOURCE")
    said = likewise("watch")
    assert said.code == 2
    assert "which INDEX?" in said.err
    likewise("index", "notes", "--glob", "*.md")  # makes the default index
    assert likewise("watch").code == 0
    assert watched[1:] == watched[:1]
    likewise("index", "empty.index", "-", stdin='{"id": "a", "text": "b"}')
    likewise("watch", "empty.index").failed(2, "no SOURCE is recorded")


def test_the_model_that_later_files_choose_is_told(
    likewise: Callable[..., Any],
    make_encoder: Callable[..., Any],
    register: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoders = {name: make_encoder(name=name) for name in ("all-MiniLM-L6-v2", "multilingual-e5-small")}
    register(named=lambda spec: encoders[spec.model])
    monkeypatch.setattr("indexer.languages.choice.data_file", lambda: Path("data"))
    (tmp_path / "notes").mkdir()

    def scans(watch: Watch) -> None:
        watch.scan()
        (tmp_path / "notes" / "a.md").write_text("Die Häuser der Stadt stehen am Fluss, und niemand weiß warum. " * 9)
        watch.scan()

    monkeypatch.setattr(Watch, "run", scans)
    ran = likewise("watch", tmp_path / "x.index", tmp_path / "notes")
    assert ran.err.count("likewise: the model is multilingual-e5-small: the texts are German 100 %") == 1


@pytest.mark.slow
def test_failures_are_counted_when_they_change(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("the moon")
    for number in range(7):
        (folder / f"{number}.jsonl").write_text("{")

    def scans(watch: Watch) -> None:
        for _ in range(2):
            watch.scan()
        (folder / "7.jsonl").write_text("{")
        watch.scan()

    monkeypatch.setattr(Watch, "run", scans)
    said = likewise("watch", tmp_path / "x.index", folder).succeeded()
    warned = [line for line in said.err.splitlines() if "failed" in line]
    assert [line.split()[2] for line in warned] == ["7", "1"]
    assert all("not valid JSON" in line and "--ledger failed lists all" in line for line in warned)
    assert said.out.splitlines() == [
        f"{start}: 1 document in 1 passage" for start in ("1 indexed, 7 failed", "8 failed")
    ]


def scanned_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, gone: Sequence[str]) -> Path:
    """Return a folder with a text per letter. A watch scans it, and again after each group of texts is gone."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in names:
        (folder / f"{name}.txt").write_text(f"the moon {name}")

    def scans(watch: Watch) -> None:
        watch.scan()
        for removed in gone:
            for name in removed:
                (folder / f"{name}.txt").unlink()
            watch.scan()

    monkeypatch.setattr(Watch, "run", scans)
    return folder


def test_documents_that_are_gone_are_removed_unless_they_are_to_be_kept(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scanned_folder(tmp_path, monkeypatch, "abcde", ["a", "", "b"])
    said = likewise("watch", tmp_path / "x.index", folder).succeeded()
    assert [line.partition(" in ")[0] for line in said.out.splitlines()] == [
        "5 indexed: 5 documents",
        "1 pruned: 4 documents",
        "1 pruned: 3 documents",
    ]
    for name in "ab":
        (folder / f"{name}.txt").write_text(f"the moon {name}")
    said = likewise("watch", tmp_path / "x.index", folder, "--keep").succeeded()
    assert said.out == "2 indexed: 5 documents in 5 passages\n"
    assert "source" not in said.err


def test_prune_is_accepted_and_contradicts_keep(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scanned_folder(tmp_path, monkeypatch, "abc", ["a"])
    assert "1 pruned: 2 documents" in likewise("watch", tmp_path / "x.index", folder, "--prune").succeeded().out
    assert "--prune" not in likewise("watch", "--help").out
    likewise("watch", tmp_path / "x.index", folder, "--prune", "--keep").failed(2, "contradict")


def test_a_refused_prune_is_not_recommended(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scanned_folder(tmp_path, monkeypatch, "abc", ["ab", "c"])
    said = likewise("watch", tmp_path / "x.index", folder).succeeded()
    warned = [line for line in said.err.splitlines() if "prun" in line]
    assert len(warned) == 2
    assert "2 of 3 documents, more than half: nothing was pruned" in warned[0]
    assert warned[1].endswith(f"{folder}: empty, so nothing is pruned")
