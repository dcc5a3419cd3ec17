"""The tables of docs/measured.md: the page is their only list, and says how each is renewed.

Each section (`## Quality`) has tables, and above each table stands a line with CPU, date and command, such as

    AMD EPYC, AVX2 alone, 2 cores, 2026-11-27, `python -m benchmarks.languages`, table 2:

The number says which of the tables that the command prints is meant, if it is not the first. A table of another CPU is
kept, and so is one whose command is not in backquotes, because it was a script. `CPU not recorded` is any CPU.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "measured.md"
UNRECORDED = "CPU not recorded"
_HEAD = re.compile(r"(?P<cpu>.+), (?P<date>\d{4}-\d\d-\d\d), (?P<command>`[^`]+`|[^`]+?)(?:, table (?P<number>\d+))?:")


@dataclass(frozen=True)
class Table:
    """A table of the page. Lines are counted from 0."""

    section: str
    cpu: str
    date: str
    command: str
    number: int
    head: int
    start: int
    end: int


def tables_of(lines: list[str]) -> list[Table]:
    """Return the tables of the page.

    Raises:
        ValueError: the line above a table does not say where it comes from.
    """
    tables, section = [], ""
    for start, end in _blocks(lines):
        heading = next((line for line in reversed(lines[:start]) if line.startswith("## ")), "")
        section = heading[3:].lower().replace(" ", "-")
        if (head := _HEAD.fullmatch(lines[start - 2])) is None or lines[start - 1]:
            raise ValueError(f"line {start - 1} does not name CPU, date and command of the table: {lines[start - 2]}")
        cpu, date, command = head["cpu"], head["date"], head["command"]
        tables.append(Table(section, cpu, date, command, int(head["number"] or 1), start - 2, start, end))
    return tables


def rows_of(table: Table, lines: list[str]) -> list[list[str]]:
    """Return the cells of the head and of each row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[table.start : table.end]]
    return [rows[0], *rows[2:]]


def renew(page: Path, section: str, cpu: str, today: str) -> None:
    """Measure the tables of a section again that come from this CPU, and write them into the page.

    Raises:
        ValueError: the page has no such section, or a command printed no such table.
        CalledProcessError: a command failed.
    """
    lines = page.read_text(encoding="utf-8").splitlines()
    tables = [table for table in tables_of(lines) if table.section == section]
    if not tables:
        names = ", ".join(dict.fromkeys(table.section for table in tables_of(lines)))
        raise ValueError(f"{section}: {page.name} has no table of this name, but these: {names}")
    printed: dict[str, list[list[str]]] = {}
    for table in reversed(tables):  # From the last one, so that line numbers stay true.
        if table.cpu not in (cpu, UNRECORDED) or not table.command.startswith("`"):
            print(f"kept: {lines[table.head]}", file=sys.stderr)
            continue
        if table.command not in printed:
            printed[table.command] = _printed(table.command.strip("`"))
        if table.number > (count := len(printed[table.command])):
            raise ValueError(f"{table.command} printed {count} tables, and no table {table.number}")
        lines[table.start : table.end] = printed[table.command][table.number - 1]
        lines[table.head] = f"{cpu}, {today}{lines[table.head].removeprefix(f'{table.cpu}, {table.date}')}"
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")  # at once: the next command may fail after an hour


def _printed(command: str) -> list[list[str]]:
    """Run a command of this Python, and return the tables that it prints."""
    print(f"running: {command}", file=sys.stderr)
    words = shlex.split(os.path.expandvars(command))
    process = subprocess.run([sys.executable, *words[1:]], check=True, stdout=subprocess.PIPE, text=True)
    lines = process.stdout.splitlines()
    return [lines[start:end] for start, end in _blocks(lines)]


def _blocks(lines: list[str]) -> Iterable[tuple[int, int]]:
    """Yield the first line of each table, and the line after its last."""
    start = None
    for number, line in enumerate([*lines, ""]):
        if line.startswith("|") and start is None:
            start = number
        elif not line.startswith("|") and start is not None:
            yield start, number
            start = None
