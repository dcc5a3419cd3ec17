"""likewise doctor."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.errors import to_install
from likewise.shell.commands import doctor as _  # noqa: F401 - its command hides the module of this name

DOCTOR = sys.modules["likewise.shell.commands.doctor"]


def topics(report: Any, topic: str) -> list[str]:
    return [finding["text"] for finding in report["findings"] if finding["topic"] == topic]


def test_a_healthy_installation(likewise: Callable[..., Any], here: Path) -> None:
    (here / "a.txt").write_text("text")
    assert likewise("index", "a.txt").code == 0
    report = likewise("doctor", "--json").reported(0, ok=True).json
    assert topics(report, "index")[0].startswith(".likewise: 1 document, 1 passage,")
    assert topics(report, "libraries")
    assert topics(report, "cpu")
    assert {"pdf", "docx", "epub", "markdown"} <= set(topics(report, "readers")[0].split(", "))
    assert topics(report, "precision")[0].startswith(("float32 on cpu: ", "bfloat16 on cpu: "))
    text = likewise("doctor").out
    assert text.endswith("everything works\n")
    assert "Traceback" not in text


def test_what_is_missing_is_named_with_a_line_to_paste(
    likewise: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = DOCTOR._installed
    needed = {"": ["numpy", "no-such-core"], "serve": ["no-such-extra"], "watch": ["click"]}
    monkeypatch.setattr(DOCTOR, "_requirements", lambda: needed)
    monkeypatch.setattr(DOCTOR, "_installed", lambda name: None if name.startswith("no-such") else installed(name))
    said = likewise("doctor")
    assert said.code == 1
    assert "problem: not installed: no-such-core\n             pip install likewise\n" in said.out
    assert "serve: no-such-extra not installed\n             pip install 'likewise[serve]'" in said.out
    assert "watch: installed" in said.out
    assert said.out.endswith("1 problem\n")


@pytest.mark.slow
def test_pip_follows_the_advice_without_an_index(likewise: Callable[..., Any]) -> None:
    extras = {text.partition(":")[0] for text in topics(likewise("doctor", "--json").json, "extras")}
    advised = [shlex.split(to_install(extra))[-1] for extra in ("", "ray", *extras)]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", *advised]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Requirement already satisfied: likewise" in done.stdout
    assert "does not provide the extra" not in done.stderr


def test_a_reader_that_cannot_be_imported_is_a_problem(
    likewise: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "likewise.readers.formats.pdf", None)
    report = likewise("doctor", "--json").json
    assert not report["ok"]
    assert "pdf" not in topics(report, "readers")[0].split(", ")
    assert topics(report, "readers")[1].startswith("pdf: ")


@pytest.mark.parametrize("damage", ["missing", "encoder", "configuration", "not an index"])
def test_what_is_wrong_with_an_index(likewise: Callable[..., Any], here: Path, damage: str) -> None:
    (here / "a.txt").write_text("text")
    assert likewise("index", "a.txt").code == 0
    if damage == "missing":
        (here / "a.txt").unlink()
        report = likewise("doctor", "--json").json
        assert report["ok"]
        assert topics(report, "sources") == [f"missing: {here / 'a.txt'}"]
        return
    if damage == "encoder":
        (here / ".likewise" / "encoder").mkdir(exist_ok=True)
        (here / ".likewise" / "encoder" / "recipe.json").write_text("{}")
    elif damage == "configuration":
        (here / ".likewise.toml").write_text("colour = 1")
    said = likewise("doctor", *(["none.index"] if damage == "not an index" else []))
    expected = {"encoder": "--repair", "configuration": "unknown key colour", "not an index": "there is no index here"}
    assert said.code == 1, said.out
    assert expected[damage] in said.out, said.out
