"""The first writer migrates an index to a newer format, here to one that is made up; readers never do."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Document, Index, NewerFormat
from indexer.stores.local.catalog import connections, schema
from indexer.stores.local.catalog.catalog import Catalog
from indexer.stores.local.catalog.database import Database, Migrations
from indexer.stores.local.disk import failpoint
from search import Searcher

DOCUMENTS = [Document(uri, f"text {uri}", metadata={"n": number}) for number, uri in enumerate("abc")]
VECTORS = np.eye(4)[:3]


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        return connection.execute(query).fetchall()


def stored(folder: Path) -> list[Any]:
    """The rows that no migration here changes."""
    queries = ("SELECT * FROM document", "SELECT * FROM passage", "SELECT * FROM field_value", "SELECT * FROM ledger")
    return [rows(folder, query) for query in queries]


def version(folder: Path) -> int:
    ((number,),) = rows(folder, "PRAGMA user_version")
    return int(number)


def is_migrated(folder: Path) -> bool:
    return bool(rows(folder, "SELECT 1 FROM sqlite_master WHERE name = 'made_up'"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of format 1."""
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add(DOCUMENTS, vectors=VECTORS)
    return tmp_path / "x.index"


def migrations(*later: Callable[[Database], object]) -> Migrations:
    """Return the migration to format 1 and later ones."""
    known = Migrations("likewise")
    for number, migration in enumerate((schema.version_1, *later), 1):
        known(name=f"version_{number}")(migration)
    return known


@pytest.fixture
def format_2(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this version know a format 2, which has one more table, after the index was made."""

    def version_2(db: Database) -> None:
        db.table("made_up").insert({"number": db.table("document").count})

    monkeypatch.setattr(schema, "MIGRATIONS", migrations(version_2))
    monkeypatch.setattr(connections, "FORMAT_VERSION", 2)


WRITES: dict[str, Callable[[Index], object]] = {
    "add": lambda index: index.add([Document("new", "text")], vectors=VECTORS[:1]),
    "remove": lambda index: index.remove(["nothing"], missing_ok=True),
    "compact": lambda index: index.compact(),
}


@pytest.mark.usefixtures("format_2")
def test_readers_read_the_older_format_and_the_first_writer_migrates(folder: Path) -> None:
    before = stored(folder)
    with Searcher(folder) as searcher, Index.open(folder) as index:
        assert searcher.count("n >= 1") == 2
        assert (index.check().problems, index.info().format_version, is_migrated(folder)) == ((), 1, False)
        with store_of(index).writer():
            pass
        assert (version(folder), is_migrated(folder), stored(folder)) == (2, True, before)
        assert rows(folder, "SELECT number FROM made_up") == [(3,)]
        assert (index.check().problems, index.info().format_version, searcher.count("n >= 1")) == ((), 2, 2)
        assert index.add(DOCUMENTS, vectors=VECTORS).unchanged == ("a", "b", "c")
        with store_of(index).writer():  # a second time there is nothing to migrate
            pass
        assert rows(folder, "SELECT number FROM made_up") == [(3,)]


@pytest.mark.usefixtures("format_2")
@pytest.mark.parametrize("write", WRITES)
def test_every_way_to_write_migrates(folder: Path, write: str) -> None:
    with Index.open(folder) as index:
        WRITES[write](index)
    assert (version(folder), is_migrated(folder)) == (2, True)


@pytest.mark.usefixtures("format_2")
def test_a_new_index_has_the_newest_format(tmp_path: Path) -> None:
    with Index.create(tmp_path / "y.index", dimensions=4) as index:
        assert index.info().format_version == 2
    assert is_migrated(tmp_path / "y.index")


def test_a_version_that_does_not_know_the_newer_format_refuses_it(
    folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("format_2")
    with Index.open(folder) as index, store_of(index).writer():
        pass
    monkeypatch.undo()
    with pytest.raises(NewerFormat, match="has format 2 and this likewise reads up to 1: upgrade likewise"):
        Index.open(folder)
    with pytest.raises(NewerFormat):
        Catalog(folder / "catalog.db")


@pytest.mark.usefixtures("format_2")
def test_a_migration_that_is_killed_has_not_begun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(folder)
    if (child := os.fork()) == 0:
        try:
            failpoint._STEP = failpoint.MIGRATED
            with Index.open(folder) as index:
                index.remove(["a"])
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert (version(folder), is_migrated(folder), stored(folder)) == (1, False, before)
    with Searcher(folder) as searcher:
        assert searcher.count("n >= 1") == 2
    with Index.open(folder) as index:
        assert index.remove(["a"]) == 1
    assert (version(folder), is_migrated(folder)) == (2, True)


@pytest.mark.usefixtures("format_2")
def test_a_migration_that_fails_has_not_begun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(db: Database) -> None:
        db.table("half").insert({"number": 1})
        raise ZeroDivisionError

    before = stored(folder)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", migrations(lambda db: None, broken))
        with Index.open(folder) as index, pytest.raises(ZeroDivisionError):
            index.remove(["a"])
    assert (version(folder), is_migrated(folder), stored(folder)) == (1, False, before)
    assert rows(folder, "SELECT 1 FROM sqlite_master WHERE name = 'half'") == []


@pytest.mark.usefixtures("format_2")
def test_the_golden_index_is_migrated(tmp_path: Path) -> None:
    folder = tmp_path / "golden.index"
    shutil.copytree(Path(__file__).parent / "files" / "golden.index", folder)
    before = stored(folder)
    with Index.open(folder) as index, store_of(index).writer():
        pass
    assert (version(folder), stored(folder)) == (2, before)
