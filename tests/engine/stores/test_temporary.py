"""Temporary folders: removed with their owner, by the process that made them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from indexer.stores.temporary import temporary_folder

ROOT = Path(__file__).parents[3]

PARENT = """
import os, sys
from indexer.stores.temporary import temporary_folder
class Owner: pass
owner = Owner()
folder, remove = temporary_folder(owner, "likewise-")
if (child := os.fork()) == 0:
    remove()
    sys.exit()  # runs what the end of a process runs
os.waitpid(child, 0)
print(folder, folder.is_dir())
"""


class Owner:
    """Anything that can be collected."""


def test_a_folder_is_removed_with_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    owners = [Owner(), Owner()]
    (first, remove), (second, _) = [temporary_folder(owner, "likewise-") for owner in owners]
    (second / "file").touch()
    assert {*tmp_path.iterdir()} == {first, second}
    remove()
    remove()
    assert [*tmp_path.iterdir()] == [second]
    owners.clear()
    assert not [*tmp_path.iterdir()]


def test_a_forked_child_removes_nothing_and_its_parent_removes_the_folder_at_its_end(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    output = subprocess.check_output([sys.executable, "-c", PARENT], env=environment, text=True)
    folder, was_there = output.split()
    assert was_there == "True"
    assert not Path(folder).exists()
    assert not [*tmp_path.iterdir()]
