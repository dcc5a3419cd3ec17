"""What the terminal can show: its width, lines broken at words, and links to files."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import click

LinkStyle = Literal["", "file", "kitty", "vscode"]

MIN_WIDTH = 40
"""Columns below which lines are no longer made shorter: a word a line helps nobody."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal that standard output goes to.

    Attributes:
        width: in columns.
        links: the form of links to files that it understands; empty where none is known to work.
    """

    width: int
    links: LinkStyle = ""

    def link(self, text: str, path: str | None, line: int | None) -> str:
        """Return text as a link to a file, and to a line of it where terminals agree on a form for that."""
        if not self.links or path is None or not os.path.isabs(path):  # noqa: PTH117
            return text
        name = quote(path, errors="surrogateescape")
        if self.links == "vscode":
            address = f"vscode://file{name}{f':{line}' if line else ''}"
        else:
            address = f"file://{quote(os.uname().nodename)}{name}"
            if self.links == "kitty" and line:
                address += f"#{line}"
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def terminal() -> Terminal | None:
    """Return the terminal that standard output goes to; None for a file, a pipe or a terminal that only prints."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return Terminal(max(MIN_WIDTH, shutil.get_terminal_size().columns), link_style(os.environ))


def link_style(environment: Mapping[str, str]) -> LinkStyle:
    """Return the form of links that the terminal understands, by what it says of itself in the environment.

    FORCE_HYPERLINK=1 asks for links in any other terminal, and FORCE_HYPERLINK=0 for none.
    """
    forced = environment.get("FORCE_HYPERLINK")
    if forced == "0":
        return ""
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if term.startswith(("screen", "tmux")):  # they pass links on only if they are told to
        return "file" if forced else ""
    if "KITTY_WINDOW_ID" in environment or term == "xterm-kitty":
        return "kitty"
    if program == "vscode":
        return "vscode"
    version = environment.get("VTE_VERSION", "")
    if (
        forced
        or program in ("iTerm.app", "WezTerm", "ghostty")
        or (version.isdecimal() and int(version) >= 5000)
        or term.startswith(("foot", "alacritty", "xterm-ghostty"))
        or not {"WT_SESSION", "KONSOLE_VERSION"}.isdisjoint(environment)
    ):
        return "file"
    return ""


def columns(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def break_lines(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of each line of a text that is broken at spaces, and only inside words that are wider."""
    start = position = 0  # of the line, and of the first character that is not on it yet
    used = 0
    space: int | None = None  # the last space of the line, where it can be broken
    while position < len(text):
        character = text[position]
        wide = _columns(character)
        if character == " ":
            space = position
        if used + wide > width and position > start:
            end = space if space is not None else position
            yield start, end
            start = end + (space is not None)
            position, used, space = start, 0, None
            continue
        used += wide
        position += 1
    if start < len(text):
        yield start, len(text)


def styled(text: str, marks: Sequence[tuple[int, int]], start: int, end: int) -> str:
    """Return text[start:end] with the marked parts set off."""
    pieces, position = [], start
    for mark in marks:
        first, last = max(mark[0], start), min(mark[1], end)
        if first < last:
            pieces += [text[position:first], click.style(text[first:last], fg="green", bold=True)]
            position = last
    return "".join([*pieces, text[position:end]])


def short_path(path: str) -> str:
    """Return the shortest of the relative path, the path from the home folder and the absolute path.

    Each can be pasted into a command in the working folder.
    """
    forms = [path]
    relative = os.path.relpath(path)
    if not relative.startswith(os.path.join("..", "..", "..")):  # noqa: PTH118
        forms.append(relative)
    home = str(Path.home())
    if home != os.sep and path.startswith(home + os.sep):
        forms.append("~" + path[len(home) :])
    return min(forms, key=len)
