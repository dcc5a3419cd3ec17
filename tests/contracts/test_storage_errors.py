"""The kinds of `StorageError`: which causes they have, and what the shell and the service answer."""

from __future__ import annotations

import errno
import os

import pytest

import indexer
import search
from indexer.errors import DiskFull, IndexUnavailable, NotPermitted, StorageError, storage_error


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
