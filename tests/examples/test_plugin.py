"""examples/plugin as its user has it: installed beside likewise, whose reader, command and model are then there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTACTS = """dn: cn=Ada Lovelace,o=Friends
cn: Ada Lovelace
description: Wrote a program for the
  analytical engine.

dn: cn=Grace Hopper,o=Friends
cn: Grace Hopper
o: Navy
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip has installed the package."""
    folder = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder)]
    subprocess.run([*command, str(ROOT / "examples" / "plugin")], check=True)
    return folder


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Runs the command line in a folder with two contacts; `plugin=False` leaves the package out."""
    (tmp_path / "contacts").mkdir(exist_ok=True)
    (tmp_path / "contacts" / "friends.ldif").write_text(CONTACTS)

    def run(*arguments: str, plugin: bool = True) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(ROOT), *([str(installed)] if plugin else [])])
        command = [sys.executable, "-m", "likewise", *arguments]
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)

    return run


@pytest.mark.slow
def test_a_package_gives_a_reader_a_model_and_a_command(run: Run, tmp_path: Path) -> None:
    indexed = run("index", "people.index", "contacts", "--model", "letters://26", "--json")
    assert indexed.returncode == 0, indexed.stderr
    assert json.loads(indexed.stdout.splitlines()[-1])["indexed"] == 1
    hit = json.loads(run("search", "people.index", "ada lovelace", "--json").stdout)["hits"][0]
    assert hit["text"].startswith("Ada Lovelace\nWrote a program for the analytical engine.")
    assert json.loads(run("info", "people.index", "--json").stdout)["dimensions"] == 26
    assert run("longest", "people.index").stdout == f"74\t{tmp_path / 'contacts' / 'friends.ldif'}\n"
    assert "longest" in run("--help").stdout


@pytest.mark.slow
def test_without_the_package_each_of_the_three_is_missing_in_one_line(run: Run) -> None:
    assert run("index", "people.index", "contacts", "--model", "letters://26").returncode == 0
    refused = run("search", "people.index", "ada", plugin=False)
    assert refused.returncode == 2
    assert "a model named letters://... needs a part of likewise, or another package" in refused.stderr
    assert 'there is no command "longest"' in run("longest", "people.index", plugin=False).stderr
    assert run("index", "other.index", "contacts", "--json", "--model", "letters://26", plugin=False).returncode == 2
