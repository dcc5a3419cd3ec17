"""Drafts that killed processes leave: named with their size, and removed, but never while their maker lives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres_server import new_address

from indexer import Document, Index
from indexer.errors import in_shell
from indexer.settings import Settings
from indexer.stores.addresses.copying import drop_unfinished
from indexer.stores.addresses.open import engine_of, open_store
from indexer.stores.local import slots
from indexer.stores.local.catalog.catalog import Catalog
from indexer.stores.reading.store import Store


@pytest.fixture
def source(tmp_path: Path) -> str:
    address = str(tmp_path / "source.index")
    with Index.create(address, dimensions=4) as index:
        index.add([Document(f"d{n}", f"text {n}") for n in range(4)], vectors=np.eye(4, dtype=np.float32))
    return address


def killed(place: object, name: str, action: Callable[[], object]) -> None:
    """Run an action in a process that is killed by SIGKILL when it calls a function."""
    if (child := os.fork()) == 0:
        try:
            setattr(place, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
            action()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def copy_commit(source: str, target: str) -> None:
    with Index.open(source) as index:
        index.copy(target)


@pytest.fixture
def draft(source: str, tmp_path: Path) -> Path:
    """What a copy to copy.index left that was killed after it had copied the catalog."""
    killed(Catalog, "restamp", lambda: copy_commit(source, str(tmp_path / "copy.index")))
    (draft,) = tmp_path.glob(".copy.index.*")
    return draft


@pytest.mark.parametrize("command", ["drop", "copy"])
def test_what_a_killed_copy_left_is_named_and_removed(
    likewise: Callable[..., Any], source: str, draft: Path, tmp_path: Path, command: str
) -> None:
    target = tmp_path / "copy.index"
    size = sum(path.stat().st_size for path in draft.rglob("*") if path.is_file())
    takes = f"{draft}: what a killed command was making takes {size / 2**20:,.1f} MB"
    note = f"{takes}; likewise copy --drop {target} removes it"
    for name in ("check", "status", "info"):
        assert note in likewise(name, target).err
        assert str(draft) not in likewise(name, source).err + likewise(name, source, "--json").out
    if command == "drop":
        assert likewise("copy", "--drop", target, "--json").json["bytes"] == size
        assert sorted(path.name for path in tmp_path.iterdir()) == ["source.index"]
    else:
        assert likewise("copy", source, target).code == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.index", "source.index"]
        assert not (target / "making").exists()
    assert list(tmp_path.glob(".*")) == []


def test_a_draft_of_a_living_process_and_a_folder_of_somebody_else_stay(draft: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.index"
    other = tmp_path / ".copy.index.0123abcd"  # a name like a draft's, without a mark that names it
    other.mkdir()
    (other / "making").write_text(draft.name)
    with closing(engine_of(target)) as engine, closing(engine_of(target)) as second:
        living = Path(engine.make("draft", Settings(4)).address)  # which has removed the abandoned one
        assert sorted(path.name for path in tmp_path.glob(".*")) == sorted([living.name, other.name])
        assert (second.leftovers(), second.sweep()) == ((), 0)
        assert living.is_dir()
        engine.publish("draft")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "copy.index", "source.index"]


def test_what_a_killed_rebuild_replaced_is_named_and_removed(source: str, tmp_path: Path) -> None:
    def rebuild() -> None:
        with closing(engine_of(source)) as engine, engine.exclusive():
            engine.make("draft", Settings(4))
            engine.publish("draft")

    killed(slots.shutil, "rmtree", rebuild)
    with closing(open_store(source)) as store:
        assert len(store.engine.leftovers()) == 1
    with Index.open(source) as index:
        assert len(index) == 0  # the new one
    assert drop_unfinished(source) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["source.index"]


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_what_a_copy_to_a_database_left_is_named_and_removed(likewise: Callable[..., Any], source: str) -> None:
    from likewise.postgres.address import parse_address
    from likewise.postgres.writer import PostgresWriter

    target, other = new_address(), new_address()
    begins = f"what a killed command was making as index {parse_address(target).index!r}"

    def left(store: Store) -> list[str]:
        return [note for note in store.engine.leftovers() if begins in note]

    assert likewise("copy", source, other).code == 0
    killed(PostgresWriter, "put", lambda: copy_commit(source, target))
    with closing(open_store(other)) as store:
        deadline = time.monotonic() + 10  # until the server has noticed that its client has gone
        while not (notes := left(store)) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [in_shell(note) for note in notes] == [
        note for note in likewise("check", other, "--json").json["notes"] if begins in note
    ]
    assert len(notes) == 1
    assert "likewise copy --drop" in likewise("info", target).err
    assert likewise("copy", "--drop", target).code == 0
    with closing(open_store(other)) as store:
        assert left(store) == []
    assert likewise("copy", "--drop", target).code == 2
