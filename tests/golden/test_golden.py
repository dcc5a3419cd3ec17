"""Indexes that this version does not read: of a newer format, and from before the first release."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Any

import psycopg
import pytest
from postgres_server import new_address, remove_index, server_uri

from indexer import Document, Index, NewerFormat, OlderFormat
from indexer.stores.addresses.open import open_store
from likewise.postgres.address import parse_address
from search import Searcher

BEFORE_RELEASE = Path(__file__).parent / "before-release.index"
"""Made by the first program of this repository. It reports format 1, as indexes of this version do."""

RECORDS = json.dumps({"id": "a", "text": "fresh bread"}) + "\n" + json.dumps({"id": "b", "text": "cold tea"}) + "\n"


@pytest.fixture(params=["folder", "database"])
def older(request: pytest.FixtureRequest, tmp_path: Path, likewise: Callable[..., Any]) -> Iterator[str]:
    """The address of an index from before the first release. That in a database differs in its mark and version."""
    if request.param == "folder":
        shutil.copytree(BEFORE_RELEASE, tmp_path / "x.index")
        yield str(tmp_path / "x.index")
        return
    address = new_address()
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    with psycopg.connect(server_uri(), autocommit=True) as connection:
        name = parse_address(address).index
        ((tables,),) = connection.execute("SELECT tables FROM likewise.index WHERE name = %s", (name,)).fetchall()
        connection.execute(f"DELETE FROM {tables}.setting WHERE name = 'mark'")
        connection.execute("UPDATE likewise.index SET format_version = 3 WHERE name = %s", (name,))
    yield parse_address(address).shown
    store: Any = open_store(address)
    remove_index(store.engine)
    store.close()


def test_a_newer_index_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    Index.create(folder, dimensions=4).close()
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerFormat, match="has format 99 and this likewise reads up to 1: upgrade likewise"):
        Index.open(folder)


def test_an_index_from_before_the_first_release_is_refused_with_one_line(
    older: str, likewise: Callable[..., Any]
) -> None:
    sentence = f"{older}: was made before the first release of likewise, and cannot be read: index its sources again"
    hint = f"(likewise index {quote(older)} SOURCE --rebuild replaces it)"
    for command in (["info"], ["search", "bread"], ["index", "-"], ["check", "--repair"], ["remove", "a"], ["compact"]):
        said = likewise(command[0], older, *command[1:], stdin=RECORDS)
        assert said.failed(3) == f"{sentence} {hint}", command
    for use in (Index.open, lambda address: Index.open(address, create=True), lambda address: len(Searcher(address))):
        with pytest.raises(OlderFormat) as refused:
            use(older)
        assert str(refused.value) == sentence


def test_an_index_that_a_run_refuses_is_closed(
    older: str, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = open_store(older)
    closed: list[bool] = []
    with closing(store.engine), monkeypatch.context() as patch:
        patch.setattr(store.engine, "close", lambda: closed.append(True))
        patch.setattr("indexer.stores.addresses.open.open_store", lambda *_: store)
        assert likewise("index", older, "-", stdin=RECORDS).code == 3
    assert closed == [True]


def test_a_rebuild_replaces_an_index_from_before_the_first_release(older: str, likewise: Callable[..., Any]) -> None:
    assert likewise("index", older, "missing", "--rebuild").code == 2
    with pytest.raises(OlderFormat):  # the failed run has left it
        Index.open(older)
    said = likewise("index", older, "-", "--rebuild", "--json", stdin=RECORDS)
    said.reported(0, indexed=2)
    note = f"{older}: was made before the first release, and none of it was taken over"
    assert note in said.json["notes"]
    with Index.open(older) as index:
        assert (index.info().format_version, index.check().problems) == (1, ())
        assert [document.uri for document in index] == ["a", "b"]
        assert index.add([Document("c", "snow")]).added == ("c",)
    assert [hit["uri"] for hit in likewise("search", older, "bread", "-k", "1", "--json").json["hits"]] == ["a"]
    assert note not in likewise("index", older, "-", "--rebuild", "--json", stdin=RECORDS).json["notes"]


def test_vectors_of_another_model_go_with_an_index_from_before_the_first_release(
    tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    folder = tmp_path / "x.index"
    shutil.copytree(BEFORE_RELEASE, folder)
    shutil.copytree(BEFORE_RELEASE, folder / "previous")
    assert likewise("index", folder, "-", "--rebuild", stdin=RECORDS).code == 0
    assert not (folder / "previous").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x.index"]
