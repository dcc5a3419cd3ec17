"""Threads that share one searcher or index: each question on one snapshot, each commit once."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.errors import StorageError
from indexer.stores.local.catalog import views
from search import Searcher

ROWS = np.eye(8, dtype=np.float32)


def made(folder: Path, count: int = 5) -> Index:
    index = Index.create(folder, dimensions=8)
    index.add([Document(f"d{i}", f"text {i}") for i in range(count)], vectors=ROWS[:count])
    return index


def test_a_question_that_another_thread_overtakes_is_answered_from_its_own_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, real, overtaken = made(tmp_path / "x.index"), views._generation, list[int]()
    with Searcher(tmp_path / "x.index") as searcher:
        assert len(searcher.search_vector(ROWS[0], 9)) == 5

        def generation(connection: Any) -> tuple[int, str]:
            found = real(connection)
            if not overtaken:  # between reading the commit and looking at what is known of it
                overtaken.append(found[0])
                other = threading.Thread(target=ahead)
                other.start()
                other.join()
            return found

        def ahead() -> None:
            index.add([Document("d1", "other")], vectors=ROWS[7:])
            assert [hit.text for hit in searcher.search_vector(ROWS[7], 1)] == ["other"]

        monkeypatch.setattr(views, "_generation", generation)
        (hit,) = searcher.search_vector(ROWS[1], 1)
        assert (hit.uri, hit.text, hit.score) == ("d1", "text 1", 1.0)
        assert len(overtaken) == 1
        assert searcher.search_vector(ROWS[1], 1)[0].uri == "d0"  # d1 points elsewhere now


def test_a_view_that_outlives_close_leaves_no_connection_behind(tmp_path: Path) -> None:
    snapshots = made(tmp_path / "x.index")._core.store._views
    with snapshots.view():
        idle = snapshots._idle
        snapshots.close()
    assert len(idle) == len(snapshots._idle) == 0


def test_too_many_open_files_is_no_damage(tmp_path: Path) -> None:
    with made(tmp_path / "x.index"), Searcher(tmp_path / "x.index") as searcher:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            with pytest.raises(StorageError, match="how many files this process has open"):
                searcher.search_vector(ROWS[0], 1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert searcher.search_vector(ROWS[0], 1)[0].uri == "d0"
