"""Leftovers of interrupted commands: check names them, a command removes them, and they are never an index in use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psycopg
import pytest
from listeners import Calling
from postgres_server import new_address, server_uri

from indexer import Document, Index
from indexer.errors import IndexLocked
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import settings_of_new
from indexer.listener import Commit
from indexer.stores.addresses.copying import copy, drop_unfinished
from indexer.stores.addresses.open import create_store, is_store, open_store
from indexer.stores.port import SIDE_SLOTS
from likewise.migration.migrate import open_next, switch
from likewise.postgres.address import parse_address
from likewise.postgres.connections import connect
from likewise.postgres.schema import DRAFT_LOCK


@pytest.fixture
def source(tmp_path: Path) -> str:
    address = str(tmp_path / "source.index")
    with Index.create(address, dimensions=4) as index:
        index.add([Document(f"d{n}", f"text {n}") for n in range(4)], vectors=np.eye(4, dtype=np.float32))
    return address


def break_off(source: str, target: str) -> None:
    def fail(commit: Commit) -> None:
        raise KeyboardInterrupt

    with closing(open_store(source)) as store, pytest.raises(KeyboardInterrupt):
        copy(store, target, Calling(committed=fail))


def test_an_unfinished_copy_is_named_and_removed(
    likewise: Callable[..., Any], environment: SimpleNamespace, source: str, tmp_path: Path
) -> None:
    other, target = new_address(), new_address()
    assert likewise("copy", source, other).code == 0
    break_off(source, target)
    shown = parse_address(target).shown
    command = f'likewise copy --drop "{shown}" removes it'
    notes = likewise("check", other, "--json").json["notes"]
    assert any(command in note and " MB in this database" in note for note in notes), notes
    assert command in likewise("info", target).err
    with connect(parse_address(target)) as busy:
        busy.execute(
            "SELECT pg_advisory_lock(%s, hashtext(%s))", (DRAFT_LOCK, f"{parse_address(target).index}\tunfinished")
        )
        assert command not in " ".join(likewise("check", other, "--json").json["notes"])
        with pytest.raises(IndexLocked, match="another process is making it"):
            drop_unfinished(target)
    said = likewise("copy", "--drop", shown, "--json")
    said.reported(0, dropped=shown)
    assert said.json["bytes"] > 0
    assert command not in " ".join(likewise("check", other, "--json").json["notes"])
    assert "no unfinished copy is there" in likewise("copy", "--drop", target).err
    assert likewise("copy", "--drop", other).code == 2  # an index that is used
    assert likewise("copy", "--drop", source, target).code == 2
    assert likewise("copy", source).code == 2
    assert is_store(other)


def test_an_unfinished_copy_in_a_folder_is_removed(source: str, tmp_path: Path) -> None:
    target, in_database = tmp_path / "copy.index", new_address()
    with closing(open_store(source)) as store:
        copy(store, in_database)
    break_off(in_database, str(target))
    (kept,) = tmp_path.glob(".copy*")
    with closing(open_store(kept)) as store, store.writer(), pytest.raises(IndexLocked):
        drop_unfinished(target)
    assert drop_unfinished(target) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.index"]


@pytest.mark.slow
def test_a_damaged_unfinished_copy_in_a_folder_is_removed(source: str, tmp_path: Path) -> None:
    target, in_database = tmp_path / "copy.index", new_address()
    with closing(open_store(source)) as store:
        copy(store, in_database)
    break_off(in_database, str(target))
    (kept,) = tmp_path.glob(".copy*")
    (kept / "catalog.db").write_bytes(b"not a database" * 1000)
    assert drop_unfinished(target) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.index"]


@pytest.mark.slow
def test_a_new_index_has_nothing_of_an_earlier_one_of_its_name(
    source: str, encoder: Any, make_encoder: Callable[..., Any]
) -> None:
    """Dropped as docs/postgres.md says, an index may leave the vectors of its earlier model under their own names."""
    other = make_encoder(name="other", weights="2")

    def with_previous(address: str) -> None:
        with IndexCore(create_store(address, settings_of_new(encoder)[0]), encoder) as main:
            Index(main).add([Document("old", "some text")])
            following = open_next(main, settings_of_new(other)[0], other, disk=lambda *_: None)
            switch(main, following)
        with psycopg.connect(server_uri()) as connection:
            connection.execute("DELETE FROM likewise.index WHERE name = %s", (parse_address(address).index,))

    def made(address: str) -> None:
        Index.create(address, encoder).close()

    def copied(address: str) -> None:
        with closing(open_store(source)) as store:
            copy(store, address)

    def copied_within(address: str) -> None:
        here = new_address()
        made(here)
        with Index.open(here) as index:
            index.copy(address)

    for make in (made, copied, copied_within):
        address = new_address()
        with_previous(address)
        make(address)
        with closing(open_store(address)) as store:
            assert not any(map(store.engine.exists, SIDE_SLOTS)), make
