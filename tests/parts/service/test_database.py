"""The answers of the service while the database of an index is stopped, killed or frozen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres_server import OwnServer
from starlette.testclient import TestClient

from indexer import Document, Index
from likewise.postgres import connections


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    server = OwnServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def address(server: OwnServer) -> str:
    address = server.address("papers")
    with Index.create(address, dimensions=3) as index:
        index.add([Document("sun", "The sun is a star.")], vectors=np.eye(3, dtype=np.float32)[:1])
    return address


@pytest.fixture
def client(address: str, own_vectors: Path, open_client: Callable[..., TestClient]) -> TestClient:
    """A client of one index in the database and one in a folder."""
    return open_client({"papers": address, "folder": own_vectors})


def search(client: TestClient, index: str = "papers") -> Any:
    return client.post(f"/v1/indexes/{index}/search", json={"query": "sun", "mode": "words"})


def require_unavailable(answer: Any) -> None:
    assert (answer.status_code, answer.json()["slug"]) == (503, "index-unavailable")
    assert answer.json()["detail"] == "the index is not available at this moment: try again"
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("end", ["kill", pytest.param("stop", marks=pytest.mark.slow)])
def test_a_database_that_is_down_is_unavailable_until_it_is_back(
    server: OwnServer, client: TestClient, end: str
) -> None:
    assert search(client).json()["matched"] == 1
    getattr(server, end)()
    try:
        for answer in (search(client), search(client), client.get("/readyz")):
            require_unavailable(answer)
        assert search(client, "folder").json()["matched"] == 1
    finally:
        server.start()
    assert search(client).json()["matched"] == 1
    assert client.get("/readyz").status_code == 200


@pytest.mark.slow
def test_a_frozen_database_is_unavailable_and_costs_the_others_nothing(
    server: OwnServer, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.1)
    assert search(client).json()["matched"] == 1
    server.pause()
    try:
        answers: list[Any] = []
        together = [threading.Thread(target=lambda: answers.append(search(client))) for _ in range(12)]
        for thread in together:
            thread.start()
        for thread in together:
            thread.join()
        assert len(answers) == 12
        for answer in answers:
            require_unavailable(answer)
        assert search(client, "folder").json()["matched"] == 1
    finally:
        server.resume()
    assert search(client).json()["matched"] == 1
