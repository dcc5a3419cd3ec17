"""Temporary folders of readers, which go with the object that asked for them, in the process that made them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path


def temporary(owner: object, prefix: str) -> tuple[Path, Callable[[], object]]:
    """A new folder, and what removes it; called when `owner` is collected or the process ends, if not before.

    A forked child has the object too, and leaves the folder to its parent.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    return folder, weakref.finalize(owner, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
