"""The writing connection to a catalog."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from opened import store_of

from indexer import Index
from indexer.settings import Settings
from indexer.stores.local.catalog import catalog
from indexer.stores.local.catalog.catalog import Catalog
from indexer.stores.local.catalog.database import Database


def _value(path: Path, statement: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (value,) = connection.execute(statement).fetchone()
    return int(value)


def test_a_writer_makes_no_table_to_find_out_what_sqlite_can_do(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    with Index.create(folder, dimensions=2):
        pass
    before = _value(folder / "catalog.db", "PRAGMA schema_version")
    with Index.open(folder) as index, store_of(index).writer() as writer:
        assert writer.begin_run() == 1
    assert _value(folder / "catalog.db", "PRAGMA schema_version") == before


def test_a_new_catalog_has_all_its_settings_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = catalog._set

    def fail(db: Database, settings: Mapping[str, str]) -> None:
        write(db, settings)
        raise RuntimeError

    monkeypatch.setattr(catalog, "_set", fail)
    with closing(Catalog(tmp_path / "catalog.db")) as made, pytest.raises(RuntimeError):
        made.initialise(Settings(2))
    assert _value(tmp_path / "catalog.db", "SELECT count(*) FROM setting") == 0
