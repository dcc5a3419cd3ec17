"""Each command of the program has its file of tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.shell.program import COMMANDS


def test_each_command_has_its_file_of_tests() -> None:
    files = {file.name for file in Path(__file__).parents[1].glob("*/test_*_command.py")}
    assert files == {f"test_{name}_command.py" for name in COMMANDS}


def test_the_help_groups_commands_by_what_a_person_wants(likewise: Callable[..., Any]) -> None:
    groups = grouped(likewise("--help").out)
    assert {title: names[:3] for title, names in groups.items()} == {
        "Use:": ["open", "index", "search"],
        "Leave running:": ["watch", "mcp"],
        "Look after:": ["status", "info", "remove"],
        "Measure:": ["evaluate", "compare", "tune"],
        "Look inside:": ["tokens", "model", "embed"],
    }
    assert sorted(name for names in groups.values() for name in names) == sorted(COMMANDS)


def test_a_terminal_shows_eight_commands_unless_all_are_asked_for(
    likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = likewise("--help").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for arguments in ([], ["--help"], ["-h"], ["help"]):
        said = likewise(*arguments)
        shown = said.out + said.err
        names = ["open", "index", "search", "similar", "show", "list", "update", "serve"]
        assert grouped(shown) == {"Use:": names}
        assert shown.endswith("\n\nMore commands: likewise --help --all\n")
    for line in ("--help --all", "--all -h", "--all", "help --all"):
        assert likewise(*line.split()).succeeded().out == everything
    assert likewise("help", "search").out == likewise("search", "--help").out


def grouped(text: str) -> dict[str, list[str]]:
    """Return the names of the commands in a help text, by the titles of their groups."""
    lines = text.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles[0] == "Options:"
    return {title: [match[1] for line in _below(title, lines) if (match := re.match(r"  ([a-z]+) {2,}\S", line))]
            for title in titles[1:]}  # fmt: skip


def _below(title: str, lines: list[str]) -> list[str]:
    rest = lines[lines.index(title) + 1 :]
    return rest[: rest.index("")] if "" in rest else rest


def test_options_that_few_people_need_are_below_the_others(likewise: Callable[..., Any]) -> None:
    common, _, rare = likewise("index", "--help").out.partition("\nRarely needed:\n")
    for option in ("--precision", "--device", "--recall", "--tokenizer"):
        assert f"\n  {option} " not in common, option
        assert f"  {option} " in rare, option
    for option in ("--model", "--prune", "--glob"):
        assert f"\n  {option} " in common or f"\n  {option}\n" in common, option
        assert f"  {option} " not in rare, option
    assert "[INDEX]\n" not in common.partition("Options:")[2]
