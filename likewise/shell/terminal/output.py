"""Printing text, JSON and warnings so that no control character of a document reaches a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any, TextIO

import click

from indexer.errors import BadInput, LikewiseError, in_shell

FINISHES, LEFT = "likewise.finishes", "likewise.left"
"""Keys of a click context's meta: the command continues if its reader leaves; the reader has left."""

_TOO_FAR_UP = os.path.join("..", "..", "..")  # noqa: PTH118
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[ -~]*")
_WITHOUT_WIDTH = "\u200c\u200d\u00ad\u200b\u2060\ufeff"
"""Joiners, which Persian, Indic scripts and emoji need, soft hyphens, and spaces without a width. They do not move the
cursor."""
_DIRECTION_MARKS = str.maketrans("\u200e\u200f\u061c", "\u200b" * 3)
"""Marks that are written in Arabic and Hebrew, as a space without a width."""


def printable(text: str) -> str:
    """Return text with every control, escape and direction-changing character replaced, one for one."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        character
        if character in _WITHOUT_WIDTH or unicodedata.category(character) not in _UNSAFE
        else " "
        if character.isspace()
        else "\N{REPLACEMENT CHARACTER}"
        for character in text.translate(_DIRECTION_MARKS)
    )


def say(text: str, *, err: bool = False, tabs: bool = False) -> None:
    """Print lines without styling. `tabs` keeps tabs, which only move the cursor to the right."""
    kept = re.split("([\n\t])" if tabs else "(\n)", text)
    _print("".join(part if part in ("\n", "\t") else printable(part) for part in kept), err)


def say_json(value: Any) -> None:
    """Print one line of JSON in ASCII, so that no character of a document can control a terminal."""
    _print(json.dumps(value, default=_as_json), False)


def _print(text: str, err: bool) -> None:
    """Print a line. If the reader has left, a command that changes something continues, and so does the command of a
    warning."""
    try:
        click.echo(without_passwords(text) if err else text, err=err)
    except BrokenPipeError:
        context = click.get_current_context(silent=True)
        if not err and not (context and context.meta.get(FINISHES)):
            raise
        discard(sys.stderr if err else sys.stdout)
        if context and not err:
            context.meta[LEFT] = True


def without_passwords(text: str) -> str:
    """Return an address or a message without the passwords in addresses of databases."""
    if "://" not in text:  # nearly always, and the other file need not be imported
        return text
    from indexer.stores.addresses.open import without_passwords as without

    return without(text)


def discard(stream: TextIO) -> None:
    """Discard the buffered content of a stream and everything that is written to it later."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def prepare_streams() -> None:
    """Make standard streams usable if they are closed or cannot write every character."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # The files of an index must not get the descriptors 0 to 2, to which libraries print.
        while (nowhere := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(nowhere, True)
        os.close(nowhere)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(_NoInput()))
    sys.stdout = sys.stdout or _NoOutput()
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _NoInput(io.RawIOBase):
    """Closed standard input, which raises an error when it is read."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise BadInput("standard input is closed, so - has nothing to read: give it a pipe or a file")


class OutputClosed(LikewiseError):
    """Standard output is closed, and the command has something to print."""

    exit_code = 3


class _NoOutput(io.TextIOBase):
    """Closed standard output. Writing to it is an error, except for a command that changes something."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        context = click.get_current_context(silent=True)
        if not (context and context.meta.get(FINISHES)):
            raise OutputClosed("standard output is closed, so nothing can be printed: give it a file or a pipe")
        return len(text)

    @property
    def buffer(self) -> Any:
        self.write("")
        return None


def colour() -> bool | None:
    """Return False if the environment asks for no colour; None lets click decide whether the output is a terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def warn(message: str) -> None:
    """Print a warning on standard error."""
    say(f"likewise: warning: {in_shell(message)}", err=True)


def warn_of(notes: Iterable[str]) -> None:
    """Print the notes of one or several results, each once."""
    for note in dict.fromkeys(notes):
        warn(note)


def on_terminal() -> bool:
    """Return whether progress can be drawn: standard error is a terminal with cursor movement."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def shown(path: str) -> str:
    """Return an absolute path relative to the working folder if that is shorter; a DSN without its password.

    A path that leads up more than two folders stays absolute, because it is hard to read.
    """
    if not os.path.isabs(path):  # noqa: PTH117 - a uri may not be a path
        return without_passwords(path)
    folder = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118
    if path.startswith(folder):
        return path.removeprefix(folder)
    relative = os.path.relpath(path)
    is_worse = relative.startswith(_TOO_FAR_UP) or len(relative) >= len(path) or os.path.normpath(path) != path
    return path if is_worse else relative


def quoted(path: str) -> str:
    """Return a path or a DSN as it is shown, quoted for use in a command that the user may run."""
    return shlex.quote(shown(path))


def number(value: int) -> str:
    """Return a number with commas between its thousands."""
    return f"{value:,}"


def quiet_libraries() -> None:
    """Keep the progress bars and notices of model libraries, which are not loaded yet, off the terminal."""
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="true")
