"""The folders of slots on a disk that refuses."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from indexer.errors import StorageError
from indexer.settings import Settings
from indexer.stores.addresses.life_cycle import draft
from indexer.stores.addresses.open import create_store, engine_of
from indexer.stores.local import slots


def _refuse(*_: Any, ignore_errors: bool = False, **__: Any) -> None:
    if not ignore_errors:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_draft_that_cannot_be_removed_hides_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError), draft(engine_of(tmp_path / "x.index"), Settings(2)):
        monkeypatch.setattr(shutil, "rmtree", _refuse)
        _ = 1 / 0


def test_a_draft_that_cannot_be_written_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = create_store(tmp_path / "x.index", Settings(2))
    with store.snapshot() as snapshot:
        history = snapshot.history
    with (
        pytest.raises(StorageError, match="No space left"),
        store.engine.exclusive(),
        draft(store.engine, Settings(2)),
    ):
        monkeypatch.setattr(slots, "_sync", _refuse)
    with store.snapshot() as snapshot:
        assert snapshot.history == history
    assert [path.name for path in tmp_path.iterdir()] == ["x.index"]
