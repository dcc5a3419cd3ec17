"""Temporary folders, which are removed with the object that owns them, by the process that made them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path


def temporary_folder(owner: object, prefix: str) -> tuple[Path, Callable[[], object]]:
    """Make a folder in the system's temporary folder; return it with a function that removes it.

    The folder is also removed when `owner` is collected or the process ends, but not if the process is killed. A
    forked child has the owner too, and leaves the folder to its parent.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    return folder, weakref.finalize(owner, remove_folder, folder, os.getpid())


def remove_folder(folder: Path, process: int) -> None:
    """Remove a folder, unless this is a forked child of the process that made it."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
