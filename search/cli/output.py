"""What every command prints with: cleaned text, JSON, warnings. Nothing of a document reaches a terminal raw."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from indexer.errors import BadInput

FINISHES, LEFT = "likewise.finishes", "likewise.left"
"""In a click context's meta: the command goes on without a reader; its reader has left."""

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[ -~]*")
_JOINERS = "\u200c\u200d\u00ad"  # needed by Persian, Indic scripts and emoji, and soft hyphens; they move nothing


def printable(text: str) -> str:
    """Text with every control, escape and direction-changing character replaced by a space or a question mark."""
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
    """Print lines that hold no styling of ours; tabs are kept where asked for, as they only move right."""
    kept = re.split("([\n\t])" if tabs else "(\n)", text)
    _print("".join(part if part in ("\n", "\t") else printable(part) for part in kept), err)


def say_json(value: Any) -> None:
    """Print one line of JSON; as ASCII, so that no character of a document acts on a terminal."""
    _print(json.dumps(value, default=_as_json), False)


def _print(text: str, err: bool) -> None:
    """Print a line. Where nobody reads any more, that ends no work under way, and a lost warning ends nothing."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        context = click.get_current_context(silent=True)
        if not err and not (context and context.meta.get(FINISHES)):
            raise
        discard(sys.stderr if err else sys.stdout)
        if context and not err:
            context.meta[LEFT] = True


def discard(stream: TextIO) -> None:
    """Let what is written to a stream from here on, and what waits in it, come to nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def prepare_streams() -> None:
    """Make standard streams usable that were closed, or cannot write every character."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # An index's own files must not be opened under the numbers that libraries print to.
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
    """Standard input that was closed: only who reads it is told."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise BadInput("standard input is closed, so - has nothing to read: give it a pipe or a file")


def colour() -> bool | None:
    """False where the environment asks for none; None leaves it to whether the output is a terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def warn(message: str) -> None:
    say(f"likewise: warning: {message}", err=True)


def warn_of(notes: Iterable[str]) -> None:
    """Print the notes of one or several results, each once."""
    for note in dict.fromkeys(notes):
        warn(note)


def on_terminal() -> bool:
    """Whether progress may be drawn: stderr is a terminal that understands it."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def shown(path: str) -> str:
    """An absolute path relative to the working folder, where it lies below it."""
    if not os.path.isabs(path):  # noqa: PTH117 - a uri need not be a path
        return path
    here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118
    return path.removeprefix(here)


def number(value: int) -> str:
    return f"{value:,}"


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
