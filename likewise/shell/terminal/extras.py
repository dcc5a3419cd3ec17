"""Checks before the work of a command: the library that it needs is installed, and its file can be written."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from indexer.errors import BadInput, to_install

_PICTURES = (".png", ".svg", ".pdf")


def missing_extra(error: ModuleNotFoundError, extra: str) -> BadInput:
    """Return the error for a library that an extra brings."""
    return BadInput(f"this command needs {error.name}, which is not installed: {to_install(extra)}")


def require_folder(path: Path) -> None:
    """Raise BadInput if a file cannot be written because its folder is missing."""
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}")


def picture_file(path: Path) -> Path:
    """Return a path that a picture can be drawn into.

    Raises:
        BadInput: the ending is unknown, the folder is missing, or the extra is not installed.
    """
    if path.suffix.lower() not in _PICTURES:
        raise BadInput(f"{path} is not a picture that likewise can draw: end it in {', '.join(_PICTURES)}")
    require_folder(path)
    try:
        import_module("matplotlib")  # the caller hears of its absence before it has computed anything
    except ModuleNotFoundError as error:
        raise missing_extra(error, "map") from error
    return path
