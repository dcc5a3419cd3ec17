"""The writing connection to a catalog, as a `Database` of sqlite-utils. Only writers import this file.

sqlite-utils imports pandas if it is installed, which takes a second, and needs it only for data frames. So pandas is
hidden from this one import.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

__all__ = ("LOCK_TIMEOUT_SECONDS", "Database", "Migrations", "open_for_writing")


class _WithoutPandas(MetaPathFinder):
    """Hides pandas from the imports of this thread; other threads may import it at the same time."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(name, name=name)


_without_pandas = _WithoutPandas()
sys.meta_path.insert(0, _without_pandas)
try:
    from sqlite_utils import Database, Migrations
finally:
    sys.meta_path.remove(_without_pandas)

LOCK_TIMEOUT_SECONDS = 60
"""Maximum seconds that a write waits for SQLite's own lock, which others hold only briefly."""


class _WritingDatabase(Database):
    """The database of an SQLite that has ON CONFLICT."""

    supports_on_conflict = True
    """Without this value, sqlite-utils creates and drops a table in the catalog to find it out."""


def open_for_writing(catalog: Path) -> Database:
    """Open a catalog in autocommit mode, or make an empty one. Plugins of sqlite-utils are not loaded."""
    connection = sqlite3.connect(catalog, isolation_level=None, check_same_thread=False, timeout=LOCK_TIMEOUT_SECONDS)
    return _WritingDatabase(connection, recursive_triggers=False, execute_plugins=False)
