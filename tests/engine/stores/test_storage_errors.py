"""The kinds of `StorageError`: which causes they have, and what the shell and the service answer."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

import indexer
import search
from indexer.errors import (
    DiskFull,
    IndexDamaged,
    IndexUnavailable,
    LikewiseError,
    NotPermitted,
    StorageError,
    storage_error,
)
from indexer.stores.local.catalog.connections import read_error, write_error


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (OSError(errno.ENOSPC, "x"), DiskFull),
        (OSError(errno.EDQUOT, "x"), DiskFull),
        (RuntimeError(f"Error in fwrite: {os.strerror(errno.ENOSPC)}"), DiskFull),  # as FAISS and tantivy say it
        (OSError(errno.EROFS, "x"), NotPermitted),
        (PermissionError(errno.EACCES, "x"), NotPermitted),
        (OSError(errno.EMFILE, "x"), IndexUnavailable),
        (OSError(errno.EIO, "x"), StorageError),
        (ValueError("corrupt"), StorageError),
    ],
)
def test_the_cause_decides_the_kind(cause: Exception, kind: type[StorageError]) -> None:
    error = storage_error("segments/1: could not be written", cause)
    assert type(error) is kind
    assert str(error) == "segments/1: could not be written"


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (sqlite3.SQLITE_IOERR_READ, StorageError, "the disk reported an error (x): check the disk and its connection"),
        (sqlite3.SQLITE_IOERR_SHORT_READ, IndexDamaged, "restore a backup"),
        (sqlite3.SQLITE_CORRUPT, IndexDamaged, "restore a backup"),
        (sqlite3.SQLITE_CANTOPEN, IndexUnavailable, "look at its permissions"),
    ],
)
def test_only_damage_asks_for_a_backup(code: int, kind: type[LikewiseError], says: str) -> None:
    cause = sqlite3.OperationalError("x")
    cause.sqlite_errorcode = code
    error = read_error(Path("a.index/catalog.db"), cause)
    assert type(error) is kind
    assert says in str(error)
    if code == sqlite3.SQLITE_IOERR_READ:
        assert "check the disk" in str(write_error(Path("a.index/catalog.db"), cause))


def test_each_kind_has_a_status_of_its_own_and_one_exit_code() -> None:
    kinds = (StorageError, DiskFull, NotPermitted, IndexUnavailable)
    assert [(kind.http_status, kind.slug, kind.exit_code) for kind in kinds] == [
        (500, "storage", 3),
        (507, "disk-full", 3),
        (500, "not-permitted", 3),
        (503, "index-unavailable", 3),
    ]
    for kind in kinds:
        assert issubclass(kind, StorageError)
        assert getattr(search, kind.__name__) is getattr(indexer, kind.__name__) is kind
