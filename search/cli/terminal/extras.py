"""The error of a command whose extra is not installed."""

from __future__ import annotations

from pathlib import Path

from indexer.errors import BadInput, to_install


def missing_extra(error: ModuleNotFoundError, extra: str) -> BadInput:
    """Return the error for a library that an extra brings."""
    return BadInput(f"this command needs {error.name}, which is not installed: {to_install(extra)}")


def picture_file(path: Path) -> Path:
    """Return a path that a picture can be drawn into.

    Raises:
        BadInput: the ending is unknown, the folder is missing, or the extra is not installed.
    """
    from indexer.encoders.inspection.plots import picture

    try:
        return picture(path)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "map") from error
