"""Each command of the program has its file of tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from likewise.shell.program import COMMANDS


def test_each_command_has_its_file_of_tests() -> None:
    files = {file.name for file in Path(__file__).parents[1].glob("*/test_*_command.py")}
    assert files == {f"test_{name}_command.py" for name in COMMANDS}


def test_the_help_groups_commands_by_what_a_person_wants(likewise: Callable[..., Any]) -> None:
    lines = likewise("--help").out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", "Use:", "Look after:", "Measure:", "Look inside:"]
    groups = {title: [match[1] for line in rest if (match := re.match(r"  ([a-z]+) {2,}\S", line))]
              for title, rest in ((title, _below(title, lines)) for title in titles[1:])}  # fmt: skip
    assert [groups[title][:3] for title in groups] == [
        ["open", "index", "search"],
        ["info", "remove", "check"],
        ["evaluate", "compare", "tune"],
        ["tokens", "model", "embed"],
    ]
    assert sorted(name for names in groups.values() for name in names) == sorted(COMMANDS)


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
