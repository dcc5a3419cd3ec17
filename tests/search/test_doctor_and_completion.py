"""likewise doctor, and completion in shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search.cli import doctor as _  # noqa: F401 - its command hides the module of this name
from search.cli.program import COMMANDS

DOCTOR = sys.modules["search.cli.doctor"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def topics(report: Any, topic: str) -> list[str]:
    return [finding["text"] for finding in report["findings"] if finding["topic"] == topic]


def test_a_healthy_installation(likewise: Callable[..., Any], here: Path) -> None:
    (here / "a.txt").write_text("text")
    assert likewise("index", "a.txt").code == 0
    said = likewise("doctor", "--json")
    assert (said.code, said.json["ok"]) == (0, True)
    report = said.json
    assert topics(report, "index")[0].startswith(".likewise: 1 documents, 1 passages")
    assert topics(report, "libraries") and topics(report, "cpu")
    assert {"pdf", "docx", "epub", "markdown"} <= set(topics(report, "readers")[0].split(", "))
    assert topics(report, "precision")[0].startswith(("float32 on cpu: ", "bfloat16 on cpu: "))
    text = likewise("doctor").out
    assert text.endswith("everything works\n") and "Traceback" not in text


def test_what_is_missing_is_named_with_a_line_to_paste(
    likewise: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = DOCTOR._installed
    needed = {"": ["numpy", "no-such-core"], "serve": ["no-such-extra"], "watch": ["click"]}
    monkeypatch.setattr(DOCTOR, "_requirements", lambda: needed)
    monkeypatch.setattr(DOCTOR, "_installed", lambda name: None if name.startswith("no-such") else installed(name))
    said = likewise("doctor")
    assert said.code == 1
    assert "problem: not installed: no-such-core\n             pip install no-such-core" in said.out
    assert "serve: no-such-extra not installed\n             pip install 'likewise[serve]'" in said.out
    assert "watch: installed" in said.out
    assert said.out.endswith("1 problem\n")


def test_a_reader_that_cannot_be_imported_is_a_problem(
    likewise: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "indexer.sources.readers.pdf", None)
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
        assert report["ok"] and topics(report, "sources") == [f"missing: {here / 'a.txt'}"]
        return
    if damage == "encoder":
        (here / ".likewise" / "encoder").mkdir(exist_ok=True)
        (here / ".likewise" / "encoder" / "recipe.json").write_text("{}")
    elif damage == "configuration":
        (here / ".likewise.toml").write_text("colour = 1")
    said = likewise("doctor", *(["none.index"] if damage == "not an index" else []))
    expected = {"encoder": "--repair", "configuration": "unknown key colour", "not an index": "there is no index here"}
    assert (said.code, expected[damage] in said.out) == (1, True), said.out


def complete(shell: str, *words: str, cwd: Path) -> list[str]:
    """The lines that a shell gets when the last word is completed."""
    variables = {"_LIKEWISE_COMPLETE": f"{shell}_complete", "PYTHONPATH": str(ROOT)}
    if shell == "fish":
        variables |= {"COMP_WORDS": " ".join(["likewise", *words]), "COMP_CWORD": words[-1]}
    else:
        variables |= {"COMP_WORDS": " ".join(["likewise", *words]), "COMP_CWORD": str(len(words))}
    said = subprocess.run(
        [sys.executable, "-c", "from search.cli import main; main()"],
        env=os.environ | variables, cwd=cwd, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert said.stderr == ""
    return said.stdout.splitlines()


def test_commands_options_values_and_paths_are_completed(here: Path) -> None:
    assert complete("bash", "se", cwd=here) == ["plain,search", "plain,serve"]
    assert complete("bash", "search", "--mo", cwd=here) == ["plain,--mode"]
    assert complete("bash", "search", "--mode", "h", cwd=here) == ["plain,hybrid"]
    assert complete("bash", "search", "pap", cwd=here) == ["file,pap"]
    assert complete("bash", "index", "x.index", "no", cwd=here) == ["file,no"]
    assert complete("zsh", "doc", cwd=here)[:2] == ["plain", "doctor"]
    assert complete("fish", "doc", cwd=here)[0].startswith("plain,doctor")


def test_the_script_of_each_shell_is_valid(here: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        if shell == "bash" and not shutil.which("bash"):
            continue
        said = subprocess.run(
            [sys.executable, "-c", "from search.cli import main; main()"],
            env=os.environ | {"_LIKEWISE_COMPLETE": f"{shell}_source", "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert "_LIKEWISE_COMPLETE" in said.stdout
        if shutil.which(shell):
            assert subprocess.run([shell, "-n"], input=said.stdout, text=True, check=False).returncode == 0


def test_every_command_can_be_completed(here: Path) -> None:
    assert [line.partition(",")[2] for line in complete("bash", "", cwd=here)] == list(COMMANDS)
