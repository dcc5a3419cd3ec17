"""Printing text, JSON and warnings so that no control character of a document reaches a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from indexer.errors import BadInput

FINISHES, LEFT = "likewise.finishes", "likewise.left"
"""Keys of a click context's meta: the command goes on if its reader leaves; the reader has left."""

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[ -~]*")
_JOINERS = (
    "\u200c\u200d\u00ad"  # needed by Persian, Indic scripts and emoji; and soft hyphens. They do not move the cursor.
)


def printable(text: str) -> str:
    """Return text with every control, escape and direction-changing character replaced, one for one."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        character
        if character in _JOINERS or unicodedata.category(character) not in _UNSAFE
        else " "
        if character.isspace()
        else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def say(text: str, *, err: bool = False, tabs: bool = False) -> None:
    """Print lines without styling. `tabs` keeps tabs, which only move the cursor to the right."""
    kept = re.split("([\n\t])" if tabs else "(\n)", text)
    _print("".join(part if part in ("\n", "\t") else printable(part) for part in kept), err)


def say_json(value: Any) -> None:
    """Print one line of JSON in ASCII, so that no character of a document can control a terminal."""
    _print(json.dumps(value, default=_as_json), False)


def _print(text: str, err: bool) -> None:
    """Print a line. A reader that has left ends neither a command that changes something nor a warning's command."""
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
    from indexer.stores.open import without_passwords as without

    return without(text)


def discard(stream: TextIO) -> None:
    """Discard what is buffered in a stream and everything that is written to it later."""
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
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _NoInput(io.RawIOBase):
    """Closed standard input, which raises an error when it is read."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise BadInput("standard input is closed, so - has nothing to read: give it a pipe or a file")


def colour() -> bool | None:
    """Return False if the environment asks for no colour; None lets click decide whether the output is a terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def warn(message: str) -> None:
    """Print a warning on standard error."""
    say(f"likewise: warning: {message}", err=True)


def warn_of(notes: Iterable[str]) -> None:
    """Print the notes of one or several results, each once."""
    for note in dict.fromkeys(notes):
        warn(note)


def on_terminal() -> bool:
    """Return whether progress can be drawn: standard error is a terminal with cursor movement."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def shown(path: str) -> str:
    """Return an absolute path relative to the working folder if it is inside it; a DSN without its password."""
    if not os.path.isabs(path):  # noqa: PTH117 - a uri may not be a path
        return without_passwords(path)
    folder = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118
    return path.removeprefix(folder)


def quoted(path: str) -> str:
    """Return a path or a DSN as it is shown, quoted for a shell: for a command that the user may run."""
    return shlex.quote(shown(path))


def number(value: int) -> str:
    """Return a number with commas between its thousands."""
    return f"{value:,}"


def count_of(value: int, noun: str) -> str:
    """Return a number with its noun, which gets an s unless there is exactly one."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep the progress bars and notices of model libraries off the terminal."""
    before = {name: os.environ.get(name) for name in ("HF_HUB_DISABLE_PROGRESS_BARS", "TOKENIZERS_PARALLELISM")}
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="true")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
