"""The total of the progress bar: the bytes that the run will read, or none; looking for it breaks nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hardware import needs_root

from indexer.sources import ReadOptions, open_sources
from search.cli.progress import _size

ROOT = Path(__file__).parents[2]


def total(*arguments: str | Path, **options: tuple[str, ...]) -> int | None:
    return _size(open_sources([str(argument) for argument in arguments], ReadOptions(**options)))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "w" / "deep").mkdir(parents=True)
    for name, size in (("a.txt", 10), ("b.md", 200), ("deep/c.txt", 3000), (".hidden", 40000)):
        (tmp_path / "w" / name).write_bytes(b"x" * size)
    return tmp_path / "w"


def test_the_total_is_of_the_files_that_will_be_read(folder: Path) -> None:
    assert total(folder) == 3210
    assert total(folder / "a.txt") == 10
    assert total(f"{folder}/*.txt") == 10
    assert total(f"{folder}/**/*.txt") == 3010
    assert total(folder, glob=("*.md",)) == 200
    assert total(folder, folder / "a.txt") == 3210  # nothing twice
    assert total(folder, "-") is None


def test_what_vanishes_or_leads_nowhere_has_no_size(folder: Path) -> None:
    (folder / "nowhere").symlink_to(folder / "gone")
    sources = open_sources([str(folder), str(folder / "a.txt")], ReadOptions())
    (folder / "a.txt").unlink()
    assert _size(sources) == 3200


@needs_root
def test_a_folder_that_may_be_listed_and_not_entered(folder: Path, open_path: Path) -> None:
    folder = folder.rename(open_path / "w")
    (folder / "deep").chmod(0o744)
    program = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from search.cli.progress import _size
from indexer.sources import ReadOptions, open_sources
import indexer.sources.walk, pathspec
os.setuid(65534)
print(_size(open_sources([{str(folder)!r}], ReadOptions())))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd="/", capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stdout, ended.stderr) == ("210\n", "")
