"""An index of every format there has been opens, answers as it did, is sound, and takes new documents."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

from indexer import Document, Index
from indexer.errors import NewerFormat
from search import Searcher

sys.path.insert(0, str(Path(__file__).parent))
from make import COUNT, ROWS

FOLDERS = sorted(Path(__file__).parent.glob("*.index"))


@pytest.mark.parametrize("golden", FOLDERS, ids=lambda folder: folder.name)
def test_an_older_index_opens_answers_and_grows(golden: Path, tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    shutil.copytree(golden, folder)
    uris = [f"d{i}" for i in range(COUNT)] + ["sealed", "tail"]
    units = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    alive = np.array(uris) != "d7"
    with Searcher(folder) as searcher:
        for number in (0, 7, COUNT, COUNT + 1):
            scores = np.where(alive, units @ units[number], -2)
            order = np.argsort(-scores)[:5]
            hits = searcher.search_vector(ROWS[number], 5)
            assert [hit.uri for hit in hits] == [uris[at] for at in order]
            assert [hit.score for hit in hits] == pytest.approx(scores[order].tolist(), abs=1e-3)
        assert searcher.search_vector(ROWS[0], 3, where="even = true and n < 100").matched == 50
        if golden.name != "version-1.index":  # the days begin with 2020, and every sixth is not written as a date
            assert searcher.count("day < 2020-01-07") == 5
            assert searcher.count("day >= 2020-02-01 and day <= 2020-02") == 24
            assert searcher.count('day = "29.02.2020" or day = 2020-02-29') == 1
    with Index.open(folder) as index:
        assert index.check().ok
        assert {row["kind"] for row in index.info().segments} == {"approximate", "exact"}
        index.add([Document("new", "text")], vectors=ROWS[:1])
        index.compact()
        assert len(index) == COUNT + 2
        assert index.check().ok


def test_a_newer_index_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    Index.create(folder, dimensions=4).close()
    with sqlite3.connect(folder / "catalog.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerFormat, match="has format 99 and this likewise reads up to 4: upgrade likewise"):
        Index.open(folder)
