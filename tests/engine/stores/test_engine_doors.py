"""Engines that are found by the scheme of an address: those of packages of others, and a part that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.stores.reference import ReferenceEngine

from indexer import BadInput, Document, Index, doors
from indexer.settings import Settings
from indexer.stores.addresses.open import create_store, engine_of, is_store, is_uri
from search.searcher import Searcher


def open_reference(address: str, shards: int | None) -> ReferenceEngine:
    assert shards in (None, 3)
    return ReferenceEngine.at(address)


def test_a_package_of_others_gives_the_engine_of_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"dict": f"{__name__}:open_reference"}
    monkeypatch.setattr(doors, "_entry_points", lambda group: given if group == "engines" else {})
    assert not is_store("dict://papers")
    create_store("dict://papers", Settings(2), shards=3)
    assert is_uri("dict://papers")
    assert is_store("dict://papers")
    with Index.open("dict://papers") as index, Searcher("dict://papers") as searcher:
        index.add([Document("a", "bread")], vectors=[[1, 0]])
        assert searcher.search("bread", mode="words")[0].uri == "a"


def test_an_address_of_another_scheme_is_a_path(tmp_path: Path) -> None:
    address = f"{tmp_path}/s3://bucket"
    assert not is_uri(address)
    assert not is_uri("s3://bucket")
    assert engine_of(address).address == str(Path(address))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_without_its_part_an_index_in_a_database_says_what_to_install(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "engines": {scheme: "indexer.stores.gone.door:open_engine"}})
    address = f"{scheme}://me:secret@host/db?index=papers"
    assert is_uri(address)
    with pytest.raises(BadInput) as caught:
        Searcher(address)
    install = f"not installed ({scheme}): pip install likewise"
    assert str(caught.value) == f"an index in a database needs a part of likewise that is {install}"
    with pytest.raises(BadInput, match="begins with postgresql:// in small letters"):
        is_uri("PostgreSQL://me:secret@host/db")
