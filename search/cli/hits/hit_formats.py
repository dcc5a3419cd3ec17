"""Hits for other programs: paths only, lines in a form of the user's own, or a file opened in an editor."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import string
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.errors import BadInput
from search.cli.terminal.output import printable, say, shown, warn

if TYPE_CHECKING:
    from search.hits import Hit

FIELDS = (
    *("rank", "path", "line", "page", "heading", "text", "title", "uri", "score", "cosine"),
    *("start", "end", "format", "modified", "index"),
)
_METADATA = "metadata."
_MAX_WIDTH = 1000

_PLUS = {"vi", "vim", "nvim", "emacs", "nano"}


def print_paths(hits: Iterable[Hit], *, nul: bool) -> None:
    """Print the file of each hit once, or its uri if it is in no file.

    Args:
        nul: end each path with a NUL character instead of a line feed, and print it unchanged, for `xargs -0`.
    """
    names = dict.fromkeys(shown(hit.path or hit.uri) for hit in hits)
    if not nul:
        for name in names:
            say(printable(name))
    elif sys.stdout.isatty():
        raise BadInput("-0 is for a program that reads it, not for a terminal: pipe it, as into xargs -0")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(os.fsencode(name) + b"\0" for name in names))
        sys.stdout.buffer.flush()


class LineFormat:
    r"""A line for each hit, such as '{path}:{line}: {text}'; \t and \n are a tab and a line feed."""

    def __init__(self, pattern: str) -> None:
        """Read a pattern.

        Raises:
            BadInput: a brace is not closed, or a field is unknown.
        """
        pattern = pattern.replace("\\t", "\t").replace("\\n", "\n")
        try:
            self._parts = [*string.Formatter().parse(pattern)]
        except ValueError as error:
            raise BadInput(f"--format {pattern!r}: {error}; write {{{{ for a brace") from error
        for _, name, form, conversion in self._parts:
            if name is None:
                continue
            if any(int(number) > _MAX_WIDTH for number in re.findall(r"\d{1,9}", form or "")):
                raise BadInput(f"--format {{{name}:{form}}}: a width is over {_MAX_WIDTH:,}: give a smaller one")
            if conversion or not (name in FIELDS or (name.startswith(_METADATA) and name != _METADATA)):
                named = f"!{conversion}" if conversion else f"unknown field {{{name}}}"
                raise BadInput(f"--format: {named}; there are {', '.join(FIELDS)} and {_METADATA}NAME")

    def line(self, rank: int, hit: Hit, text: str) -> str:
        """Return the line of a hit; a field without a value is empty.

        Raises:
            BadInput: a value cannot be written in the form that the pattern asks for.
        """
        written = []
        for literal, name, form, _ in self._parts:
            written.append(literal)
            if name is not None:
                written.append(printable(self._value(name, form or "", rank, hit, text)))
        return "".join(written)

    def _value(self, name: str, form: str, rank: int, hit: Hit, text: str) -> str:
        value: Any
        if name.startswith(_METADATA):
            value = hit.metadata.get(name.removeprefix(_METADATA))
        else:
            own = {"rank": rank, "text": text, "path": shown(hit.path or hit.uri)}
            value = own[name] if name in own else getattr(hit, name)
        if value is None:
            return ""
        if isinstance(value, float) and not form:
            return f"{value:.3f}"
        try:
            return format(value, form)
        except (TypeError, ValueError) as error:
            raise BadInput(f"--format {{{name}:{form}}}: {error}") from error


def print_lines(hits: Iterable[Hit], pattern: LineFormat, stem: Callable[[str], Hashable], first_rank: int = 1) -> None:
    """Print a line for each hit."""
    from search.cli.hits.hits import part_of

    for rank, hit in enumerate(hits, first_rank):
        say(pattern.line(rank, hit, part_of(hit, stem).text), tabs=True)


def open_hit(hit: Hit) -> None:
    """Open the file of a hit at its line, in VISUAL, EDITOR or vi.

    Raises:
        BadInput: the hit is in no file, or there is no editor.
    """
    path = hit.path
    if not path or not Path(path).is_file():
        raise BadInput(f"{shown(hit.uri)}: there is no file to open; likewise show prints the document")
    typed = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    if not Path(path).is_absolute():
        path = f"./{path}"  # an editor reads -c or +!command as an option
    command = editor_command(typed, path, hit.line)
    if shutil.which(command[0]) is None:
        raise BadInput(f"the editor {command[0]} is not found: set EDITOR to one that is installed")
    code = subprocess.run(command, check=False).returncode
    if code:
        warn(f"{typed} ended with {code}")


def editor_command(editor: str, path: str, line: int | None) -> list[str]:
    """Return the command that opens a file at a line, in the form of each known editor. Other editors get only the
    file.

    Raises:
        BadInput: the name of the editor cannot be read as a command.
    """
    try:
        command = shlex.split(editor)
    except ValueError as error:
        raise BadInput(f"EDITOR is {editor!r}, which is not a command: {error}") from error
    if not command:
        raise BadInput("EDITOR is empty: set it to an editor")
    name = Path(command[0]).name
    if line is None:
        return [*command, path]
    if name in _PLUS:
        return [*command, f"+{line}", path]
    if name == "code":
        return [*command, "-g", f"{path}:{line}"]
    if name == "subl":
        return [*command, f"{path}:{line}"]
    return [*command, path]
