"""A service whose index in a database has no replica of its words on this machine yet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import new_address, remove_index
from starlette.testclient import TestClient

from indexer import Document, Index
from indexer.errors import DiskFull
from indexer.stores.addresses.open import open_store
from likewise.postgres import words
from search import Searcher

DOCUMENTS = [Document("moon", "The moon orbits the earth."), Document("sun", "The sun is a star.")]


@pytest.fixture
def address(make_encoder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An index whose replica counts as large, and that nobody waits for. Its model reads many languages."""
    monkeypatch.setattr(words, "KEPT_PASSAGES", 1)
    monkeypatch.setattr(words, "WAITED_SECONDS", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    address = new_address()
    with Index.create(address, model=make_encoder(name="multilingual-e5-small")) as index:
        index.add(DOCUMENTS)
    yield address
    store: Any = open_store(address)
    remove_index(store.engine)
    store.close()


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event without which no replica is made."""
    may_end, make = threading.Event(), words._open

    def wait(view: Any) -> Any:
        assert may_end.wait(60)
        return make(view)

    monkeypatch.setattr(words, "_open", wait)
    yield may_end
    may_end.set()


def search(client: TestClient, mode: str, **members: Any) -> Any:
    return client.post("/v1/indexes/papers/search", json={"query": "the moon", "mode": mode, **members})


def await_words(client: TestClient) -> None:
    while client.get("/readyz").json()["words"] == "building":
        pass


def test_it_answers_by_meaning_until_the_words_are_there(
    address: str, reading: threading.Event, open_client: Callable[..., TestClient]
) -> None:
    client = open_client({"papers": address})  # type: ignore[dict-item]
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "words": "building"})
    answer = search(client, "hybrid").json()
    assert answer["mode"] == "dense"
    assert answer["notes"] == ["the words of papers are still being read: ranked by meaning alone"]
    assert answer["hits"] == search(client, "dense").json()["hits"]
    for refused in (search(client, "words"), search(client, "hybrid", min_score=0.1)):
        assert (refused.status_code, refused.json()["slug"]) == (503, "words-building")
        assert refused.json()["detail"] == (
            'papers: its words are still being read: ask again later, or ask with the mode "dense"'
        )
        assert int(refused.headers["Retry-After"]) > 0
    reading.set()
    await_words(client)
    assert client.get("/readyz").json() == {"status": "ready", "words": "ready"}
    assert [hit["uri"] for hit in search(client, "words").json()["hits"]] == ["moon"]
    answer = search(client, "hybrid").json()
    assert (answer["mode"], answer["notes"]) == ("hybrid", [])


def test_commits_are_followed_and_a_replaced_index_is_read_in_a_thread_again(
    address: str, make_encoder: Any, open_client: Callable[..., TestClient], reading: threading.Event
) -> None:
    reading.set()
    client = open_client({"papers": address})  # type: ignore[dict-item]
    await_words(client)
    reading.clear()
    with Index.open(address) as index:
        index.add([Document("moons", "Two moons.")])
    assert {hit["uri"] for hit in search(client, "words").json()["hits"]} == {"moon", "moons"}
    store: Any = open_store(address)
    remove_index(store.engine)
    store.close()
    with Index.create(address, model=make_encoder(name="multilingual-e5-small")) as index:
        index.add([Document("other", "Another moon.")])
    assert search(client, "words").status_code == 503
    reading.set()
    await_words(client)
    assert [hit["uri"] for hit in search(client, "words").json()["hits"]] == ["other"]


@pytest.mark.parametrize("waited", [0.0, 60.0])  # the failure comes after the start, or before
def test_a_replica_that_cannot_be_built_is_an_error_once_and_then_tried_again(
    address: str,
    open_client: Callable[..., TestClient],
    reading: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    waited: float,
) -> None:
    def fail(view: Any) -> Any:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(words, "_open", fail)
        patch.setattr(words, "WAITED_SECONDS", waited)
        client = open_client({"papers": address})  # type: ignore[dict-item]
        await_words(client)
    assert [search(client, "words").status_code for _ in range(3)] == [507, 503, 503]
    reading.set()
    await_words(client)
    assert search(client, "words").status_code == 200


def test_a_program_waits_for_the_words(address: str, reading: threading.Event) -> None:
    hits: list[list[str]] = []

    def ask() -> None:
        with Searcher(address) as searcher:
            hits.append([hit.uri for hit in searcher.search("moon", mode="words")])

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(0.2)
    assert hits == []
    reading.set()
    thread.join()
    assert hits == [["moon"]]
