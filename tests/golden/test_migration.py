"""An index of format 1 answers as it did until the first writer migrates it, after which it knows its dates."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from older_formats import forget_readers
from opened import store_of

from indexer import Document, FilterError, Index
from indexer.stores.local.disk.failpoint import MIGRATED
from search import Searcher

GOLDEN = Path(__file__).parent / "files" / "golden.index"

DOCUMENTS = [
    Document("a", "one", metadata={"created": "25-Sep-2000", "n": 1}, modified="2024-01-31T10:00:00+00:00"),
    Document("b", "two", metadata={"created": ["2000-09-26", "soon", "26 Sep 2000"]}, modified="2024-02-01T10:00:00Z"),
    Document("c", "three", metadata={"created": "1 Oct 1999", "deep": {"er": ["2000", "2000-01"]}, "n": "2000-09"}),
    Document("d", "four", metadata={"created": "01/02/2003"}, modified=""),
]


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        return connection.execute(query).fetchall()


def fields(folder: Path) -> list[tuple[Any, ...]]:
    return rows(
        folder,
        "SELECT f.name, f.type, v.value, v.document_id FROM field_value v JOIN field f ON f.id = v.field_id"
        " ORDER BY 1, 2, 3, 4",
    )


def version(folder: Path) -> int:
    ((number,),) = rows(folder, "PRAGMA user_version")
    return int(number)


def open_a_writer(folder: Path) -> None:
    with Index.open(folder) as index, store_of(index).writer():
        pass


def made(folder: Path, documents: Sequence[Document]) -> Path:
    with Index.create(folder, dimensions=2) as index:
        index.add(documents, vectors=np.ones((len(documents), 2), np.float32))
    return folder


def made_with_version_1(folder: Path, documents: Sequence[Document]) -> Path:
    """An index as format 1 had it: the same tables, without the rows of dates."""
    forget_readers(made(folder, documents))
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        connection.execute("DELETE FROM field_value WHERE field_id IN (SELECT id FROM field WHERE type = 'date')")
        connection.execute("DELETE FROM field WHERE type = 'date'")
        connection.execute("DELETE FROM _sqlite_migrations WHERE name IN ('dates', 'reasons')")
        connection.execute("PRAGMA user_version = 1")
    return folder


def test_the_first_writer_migrates_and_embeds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    shutil.copytree(GOLDEN, folder)
    stored = "SELECT uri, content_hash, row_hash, tokens, metadata, modified FROM document ORDER BY id"
    before = (rows(folder, stored), rows(folder, "SELECT * FROM passage ORDER BY id"), fields(folder))
    with Searcher(folder) as searcher, Index.open(folder) as index:
        assert (index.check().problems, index.info().format_version, index.info().dates) == ((), 1, ())
        assert searcher.count("climbed >= 1889-10-06") == searcher.count('climbed >= "1889-10-06"') == 4
        assert searcher.count("modified > 2024-01-03") == searcher.count('modified > "2024-01-03"') == 2
        assert version(folder) == 1
        open_a_writer(folder)
        assert (version(folder), index.check().problems) == (4, ())
        assert (index.info().format_version, index.info().dates) == (4, ("climbed",))
        # A reader that was open before sees the dates from now on.
        assert searcher.count("climbed >= 1889-10-06") == searcher.count('climbed >= "1889-10-06"') == 4
        assert searcher.count("climbed > 1889-10-06") == 3
        assert searcher.count("modified > 2024-01-03") == 2
        assert searcher.count("modified = 2024-03-01T01:00") == 2
        assert searcher.count("modified = 2024-03") == 2
    after = [row for row in fields(folder) if row[1] != "date"]
    assert (rows(folder, stored), rows(folder, "SELECT * FROM passage ORDER BY id"), after) == before


def test_an_older_index_answers_as_before_until_then(tmp_path: Path) -> None:
    folder = made_with_version_1(tmp_path / "x.index", DOCUMENTS)
    with Searcher(folder) as searcher, Index.open(folder) as index:
        assert searcher.count("created >= 2000-09-26") == 2  # as text: 25-Sep-2000 and 2000-09-26
        assert searcher.count('created >= "26 Sep 2000"') == 1
        assert searcher.count("created in (2000-09-26, 1999-10-01)") == 1
        assert searcher.count("modified >= 2024-02-01") == 1
        assert searcher.count("modified = 2024-01-31") == 0
        assert searcher.count("modified >= -1h") == 0
        with pytest.raises(FilterError, match='with "31 Jan 2024": compare it with a date in quotes such as'):
            searcher.count('modified = "31 Jan 2024"')
        assert searcher.count("n < 2000-10") == 1
        assert (index.check().problems, index.info().dates, version(folder)) == ((), (), 1)
        open_a_writer(folder)
        assert searcher.count("created >= 2000-09-26") == 1
        assert searcher.count('created <= "26 Sep 2000"') == 3
        assert searcher.count("created in (2000-09-26, 1999-10-01)") == 2
        assert searcher.count('modified = "31 Jan 2024"') == searcher.count("modified = 2024-01-31") == 1
        assert (index.check().problems, version(folder)) == ((), 4)
        assert index.info().dates == ("created", "deep.er", "n")
        assert index.add(DOCUMENTS, vectors=np.ones((4, 2), np.float32)).unchanged == ("a", "b", "c", "d")
    assert fields(folder) == fields(made(tmp_path / "new.index", DOCUMENTS))


def test_an_empty_index_of_version_1(tmp_path: Path) -> None:
    folder = made_with_version_1(tmp_path / "x.index", [])
    with Searcher(folder) as searcher, Index.open(folder) as index:
        assert searcher.count("created >= 2000-09-26 or modified > -7d") == 0
        index.add(DOCUMENTS, vectors=np.ones((4, 2), np.float32))
        assert (version(folder), searcher.count("created >= 2000-09-26")) == (4, 1)


def test_damaged_texts_do_not_keep_a_writer_out(tmp_path: Path) -> None:
    folder = made_with_version_1(tmp_path / "x.index", DOCUMENTS)
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        connection.execute("UPDATE field_value SET value = CAST(x'32303030ff' AS TEXT) WHERE value = '25-Sep-2000'")
        connection.execute("UPDATE document SET modified = CAST(x'32303030ff' AS TEXT) WHERE uri = 'a'")
    open_a_writer(folder)
    assert version(folder) == 4
    with Searcher(folder) as searcher:
        assert searcher.count("created >= 1999-01-01 and modified > 2000-01") == 1


def test_a_migration_that_is_killed_has_not_begun(tmp_path: Path) -> None:
    folder = made_with_version_1(tmp_path / "x.index", DOCUMENTS)
    before = fields(folder)
    program = "import sys; from indexer import Index; Index.open(sys.argv[1]).remove(['d'])"
    ended = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "LIKEWISE_KILL_AT": MIGRATED},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert (version(folder), fields(folder)) == (1, before)
    with Searcher(folder) as searcher:
        assert searcher.count("created >= 2000-09-26") == 2
    open_a_writer(folder)
    assert version(folder) == 4
    assert fields(folder) == fields(made(tmp_path / "new.index", DOCUMENTS))
