"""What every command prints with: cleaned text, JSON, warnings. Nothing of a document reaches a terminal raw."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

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


def say(text: str, *, err: bool = False) -> None:
    """Print lines that hold no styling of ours."""
    click.echo("\n".join(printable(line) for line in text.split("\n")), err=err)


def say_json(value: Any) -> None:
    """Print one line of JSON; as ASCII, so that no character of a document acts on a terminal."""
    click.echo(json.dumps(value, default=_as_json))


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def warn(message: str) -> None:
    say(f"likewise: warning: {message}", err=True)


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
