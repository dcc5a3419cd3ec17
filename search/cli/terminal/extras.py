"""The error of a command whose extra is not installed."""

from __future__ import annotations

from indexer.errors import BadInput


def missing_extra(error: ModuleNotFoundError, extra: str) -> BadInput:
    """Return the error for a library that an extra brings."""
    return BadInput(
        f"this command needs {error.name}, which is not installed: pip install 'likewise[{extra}]', or in a clone "
        f"pip install -e '.[{extra}]'"
    )
