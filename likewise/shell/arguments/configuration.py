"""Configuration files: defaults of a user, and of a folder with everything below it.

The user's file is `likewise/config.toml` in the folder for configuration (~/.config on Linux); the folder's file is the
nearest `.likewise.toml`, in the working folder or above it, and takes precedence. A file may come with somebody else's
folder, so none can allow a model to run code, and only the user's file names programs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer import doors
from indexer.encoders.machine.user_folders import configuration_folder
from indexer.errors import BadInput

if TYPE_CHECKING:
    from indexer.sources.formats import Program

FOLDER_FILE = ".likewise.toml"
_MODES = ("dense", "words", "hybrid")


def _exists(file: Path) -> bool:
    """Return whether this is a file. A file in a folder that this user may not enter does not count."""
    return os.path.isfile(file)  # noqa: PTH113


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


_KEYS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "mode": (lambda value: value in _MODES, f"one of {', '.join(_MODES)}"),
    "k": (lambda value: type(value) is int and value > 0, "a whole number above 0"),
    "model": (_is_text, "the name or folder of a model"),
    "language": (_is_text, "the code of a language, auto or none"),
}
"""Each key with a test of its value and a description of valid values."""

_EXTRACTORS = "extractors"
_LIMITS = ("seconds", "memory_mb", "output_mb")
"""The limits of a program that a file may set."""


def files() -> list[Path]:
    """Return the configuration files that exist. The last file takes precedence."""
    here = Path.cwd()
    nearest = next((file for folder in (here, *here.parents) if _exists(file := folder / FOLDER_FILE)), None)
    return [file for file in (user_file(), nearest) if file is not None and _exists(file)]


def user_file() -> Path:
    """Return the path of the user's configuration file, which may not exist."""
    return configuration_folder() / "config.toml"


def read_configuration() -> dict[str, str | int]:
    """Return the settings of all configuration files.

    Raises:
        BadInput: a file cannot be read, or has an unknown key or a wrong value. The message names both.
    """
    settings: dict[str, str | int] = {}
    for file in files():
        settings |= _read(file)
    return settings


def read_extractors() -> tuple[Program, ...]:
    """Return the programs that the user's file names for files which likewise does not read itself.

    Raises:
        BadInput: one of them cannot be run. The message names the file and what to change.
    """
    file = user_file()
    table = _toml(file).get(_EXTRACTORS, {}) if _exists(file) else {}
    if not isinstance(table, dict):
        raise BadInput(f"{file}: extractors is {table!r}: give a table, [extractors]")
    if not table:
        return ()
    part = doors.require("parts", "readers", f"the table extractors of {file}")
    programs = []
    for kind, value in table.items():
        members = value if isinstance(value, dict) else {"command": value}
        command = members.get("command")
        limits = {name: limit for name, limit in members.items() if name != "command"}
        if not isinstance(command, list) or limits.keys() - set(_LIMITS) or not all(map(_is_number, limits.values())):
            raise BadInput(
                f'{file}: extractors: "{kind}" is {value!r}: give a list of texts, or a table of command and the '
                f"numbers {', '.join(_LIMITS)}"
            )
        try:
            programs.append(part.ExtractorProgram(kind, tuple(command), **limits))
        except BadInput as error:
            raise BadInput(f"{file}: {error}") from error
    return tuple(programs)


def _is_number(value: object) -> bool:
    return type(value) in {int, float}


def _toml(file: Path) -> dict[str, Any]:
    import tomllib  # not at the top: most users have no such file, and every search would wait for it

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{file}: cannot be read as TOML: {error}") from error


def _read(file: Path) -> dict[str, str | int]:
    values = _toml(file)
    if _EXTRACTORS in values:
        if file != user_file():
            raise BadInput(
                f"{file}: extractors name programs, and this file may come with somebody else's folder: set them in "
                f"{user_file()}"
            )
        del values[_EXTRACTORS]
    for key, value in values.items():
        if "trust" in key.lower():
            raise BadInput(f"{file}: {key} cannot be set in a file: give --trust-remote-code each time it is meant")
        if key not in _KEYS:
            raise BadInput(f"{file}: unknown key {key}: it may set {', '.join(_KEYS)}")
        fits, meant = _KEYS[key]
        if not fits(value):
            raise BadInput(f"{file}: {key} is {value!r}: give {meant}")
    return values
