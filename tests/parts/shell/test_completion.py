"""The completion of command lines in bash, zsh and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from likewise.shell.program import COMMANDS

ROOT = Path(__file__).parents[3]


def complete(shell: str, *words: str, cwd: Path) -> list[str]:
    """The lines that a shell gets when the last word is completed."""
    variables = {"_LIKEWISE_COMPLETE": f"{shell}_complete", "PYTHONPATH": str(ROOT)}
    if shell == "fish":
        variables |= {"COMP_WORDS": " ".join(["likewise", *words]), "COMP_CWORD": words[-1]}
    else:
        variables |= {"COMP_WORDS": " ".join(["likewise", *words]), "COMP_CWORD": str(len(words))}
    said = subprocess.run(
        [sys.executable, "-c", "from likewise.shell import main; main()"],
        env=os.environ | variables, cwd=cwd, capture_output=True, text=True, timeout=110, check=True,
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
            [sys.executable, "-c", "from likewise.shell import main; main()"],
            env=os.environ | {"_LIKEWISE_COMPLETE": f"{shell}_source", "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=110, check=True,
        )  # fmt: skip
        assert "_LIKEWISE_COMPLETE" in said.stdout
        if shutil.which(shell):
            assert subprocess.run([shell, "-n"], input=said.stdout, text=True, check=False).returncode == 0


def test_every_command_can_be_completed(here: Path) -> None:
    assert [line.partition(",")[2] for line in complete("bash", "", cwd=here)] == list(COMMANDS)
