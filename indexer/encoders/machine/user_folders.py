"""The folders of this user for likewise. They may not exist yet.

A variable of the XDG Base Directory Specification names them. Without it they are where each platform has them. The
functions raise StorageError if a user without a home folder has not set the variable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import StorageError


def cache_folder() -> Path:
    """Return the folder for what can be made again, such as compiled encoders and vectors."""
    return _folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def configuration_folder() -> Path:
    return _folder("XDG_CONFIG_HOME", ".config", "Library/Application Support")


def state_folder() -> Path:
    """Return the folder for what is kept between two calls, such as the questions typed at the prompt."""
    return _folder("XDG_STATE_HOME", ".local/state", "Library/Application Support")


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let only one process, and one of its threads, make something in a folder of the cache; the others wait."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def _folder(variable: str, on_linux: str, on_macos: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    if not named.is_absolute():  # the specification ignores a relative path
        try:
            named = Path.home() / (on_macos if sys.platform == "darwin" else on_linux)
        except RuntimeError as error:
            raise StorageError(f"this user has no home folder: set HOME, or {variable}, to a folder") from error
    return named / "likewise"
