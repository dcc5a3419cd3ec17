"""Hits for other programs: paths only, or a file opened in an editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import BadInput
from search.cli.terminal.output import printable, say, shown, warn

if TYPE_CHECKING:
    from search.hits import Hit

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
