"""What the terminal can show: its width, lines broken at words, and links to files."""

from __future__ import annotations

import io
import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from likewise.shell.terminal.output import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MIN_WIDTH = 40
"""Minimum columns of a line. Lines of one word each would help nobody."""


class Terminal(NamedTuple):
    """A terminal that standard output goes to.

    Attributes:
        width: in columns.
    """

    width: int

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


def terminal() -> Terminal | None:
    """Return the terminal that standard output goes to; None for a file, a pipe or a terminal that only prints."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return Terminal(max(MIN_WIDTH, shutil.get_terminal_size().columns))


def link_address(path: str | None) -> str | None:
    """Return the address of a link to a file; None without a file, or if links are switched off.

    tmux and screen pass links on only if they are configured to: there FORCE_HYPERLINK=1 asks for links. Everywhere
    FORCE_HYPERLINK=0 switches them off.
    """
    forced, term = os.environ.get("FORCE_HYPERLINK"), os.environ.get("TERM", "")
    is_off = forced == "0" or (not forced and term.startswith(("screen", "tmux")))
    if is_off or path is None or not os.path.isabs(path):  # noqa: PTH117
        return None
    return f"file://{quote(os.uname().nodename)}{quote(path, errors='surrogateescape')}"


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
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises an error if there is none
    if home != os.sep and path.startswith(home + os.sep):
        forms.append("~" + path[len(home) :])
    return min(forms, key=len)
