"""What the terminal can show: its width, lines broken at words, and links to files."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from search.cli.terminal.output import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LinkStyle = Literal["", "file", "kitty", "vscode"]

MIN_WIDTH = 40
"""Minimum columns of a line. Lines of one word each would help nobody."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal that standard output goes to.

    Attributes:
        width: in columns.
        links: the form of links to files that the terminal understands; empty if no form is known to work.
    """

    width: int
    links: LinkStyle = ""

    def lines(self, text: Text, margin: str = "", most: int | None = None) -> list[str]:
        """Return a text as styled lines, broken at words; an ellipsis follows the last if there are more than `most`.

        Args:
            text: without control characters.
            margin: beginning of the first line; the other lines begin with as many spaces.
        """
        from rich.text import Text

        if not text:
            return []
        indent = len(margin)
        lines = _lines(text, self.width - indent)
        if most is not None and len(lines) > most:
            (last, *_) = _lines(lines[most - 1], self.width - indent - 2)
            lines = [*lines[: most - 1], last.append(" …")]
        console = _console()
        with console.capture() as printed:
            for number, line in enumerate(lines):
                console.print(Text.assemble(" " * indent if number else margin, line), soft_wrap=True)
        return printed.get().splitlines()

    def address(self, path: str | None, line: int | None) -> str | None:
        """Return the address of a link to a file. It includes the line if terminals agree on a form for lines."""
        if not self.links or path is None or not os.path.isabs(path):  # noqa: PTH117
            return None
        name = quote(path, errors="surrogateescape")
        if self.links == "vscode":
            return f"vscode://file{name}{f':{line}' if line else ''}"
        return f"file://{quote(os.uname().nodename)}{name}{f'#{line}' if self.links == 'kitty' and line else ''}"


def terminal() -> Terminal | None:
    """Return the terminal that standard output goes to; None for a file, a pipe or a terminal that only prints."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return Terminal(max(MIN_WIDTH, shutil.get_terminal_size().columns), link_style(os.environ))


def link_style(environment: Mapping[str, str]) -> LinkStyle:
    """Return the form of links that the terminal understands, by its variables in the environment.

    FORCE_HYPERLINK=1 asks for links in any other terminal, and FORCE_HYPERLINK=0 for none.
    """
    forced = environment.get("FORCE_HYPERLINK")
    if forced == "0":
        return ""
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if term.startswith(("screen", "tmux")):  # they pass links on only if they are configured to
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


def _lines(text: Text, width: int) -> list[Text]:
    """Return the lines of a text, broken at spaces. Only a word that is wider than a line is broken inside."""
    lines = text.wrap(_console(), width)
    for line in lines:
        line.rstrip()
    return list(lines)


@cache
def _console() -> Console:
    """Return the console that styles lines. click prints the lines, and removes colours if none are wanted."""
    from rich.console import Console

    return Console(file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False)


def short_path(path: str) -> str:
    """Return the shortest of the relative path, the path from the home folder and the absolute path.

    Each can be pasted into a command in the working folder.
    """
    forms = [path, shown(path)]
    home = str(Path.home())
    if home != os.sep and path.startswith(home + os.sep):
        forms.append("~" + path[len(home) :])
    return min(forms, key=len)
