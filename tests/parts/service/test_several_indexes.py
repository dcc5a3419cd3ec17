"""Several served indexes in one question, by HTTP, by MCP and with `Client`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from chromium import serving_here
from mcp.client import Client as McpClient
from starlette.testclient import TestClient

from indexer import Document, Index
from likewise.client.client import Client
from likewise.service import create_app
from likewise.service.mcp import make_mcp_server
from likewise.service.served import ServedIndexes
from search import BadInput, NotAnIndex, Query, UnknownField, search_indexes

SKY = [
    Document("moon", "The moon orbits the earth.\nIt is full once a month.", "Moon", {"year": 2020}),
    Document("sun", "The sun is a star.", "Sun", {"year": 2021}),
    Document("both", "The moon and bread.", "Both"),
]
KITCHEN = [
    Document("bread", "Bread is baked in an oven.", "Bread", {"lang": "en"}),
    Document("cheese", "The moon is not made of cheese.\nCheese is made of milk.", "Cheese", {"lang": "en"}),
    Document("both", "The moon over an oven.", "Both"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("several")
    for name, documents in (("sky", SKY), ("kitchen", KITCHEN)):
        with Index.create(folder / f"{name}.index", model=module_encoder) as index:
            index.add(documents)
    with Index.create(folder / "own.index", dimensions=3) as index:
        index.add([Document("vector", "A moon of numbers.")], vectors=[[1, 0, 0]])
    return {name: folder / f"{name}.index" for name in ("sky", "kitchen", "own")}


@pytest.fixture(scope="module")
def service(folders: dict[str, Path]) -> Iterator[TestClient]:
    app = create_app({name: str(path) for name, path in folders.items()})
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def pairs(answer: Any) -> list[tuple[str, str]]:
    return [(hit["index"], hit["uri"]) for hit in answer["hits"]]


@pytest.mark.parametrize("mode", ["dense", "words", "hybrid"])
def test_http_answers_as_the_library(service: TestClient, folders: dict[str, Path], mode: Any) -> None:
    asked = {"indexes": ["sky", "kitchen"], "query": "the full moon", "k": 4, "mode": mode, "where": "not year = 2021"}
    answer = service.post("/v1/search", json=asked).json()
    expected = search_indexes(
        [folders["sky"], folders["kitchen"]], Query("the full moon", 4, mode=mode, where="not year = 2021")
    )
    assert pairs(answer) == [(hit.index, hit.uri) for hit in expected]
    assert answer["matched"] == expected.matched
    assert answer["notes"] == list(expected.notes)
    assert [hit["score"] for hit in answer["hits"]] == pytest.approx([hit.score for hit in expected], abs=1e-5)
    few = service.post("/v1/search", json={**asked, "fields": ["index", "uri"]}).json()["hits"]
    assert few == [{"uri": uri, "index": name} for name, uri in pairs(answer)]


def test_without_names_all_are_asked_by_words_if_one_has_no_model(service: TestClient) -> None:
    answer = service.post("/v1/search", json={"query": "moon"}).json()
    assert (answer["mode"], answer["matched"]) == ("words", 5)
    note = "no model embeds questions to own, so every index was ranked by words alone"
    assert answer["notes"] == [f'{note}: ask other "indexes", or send "mode" if this is meant']
    for chosen in ({"mode": "words"}, {"indexes": ["sky", "kitchen"]}, {"indexes": ["own"]}):
        assert service.post("/v1/search", json={"query": "moon", **chosen}).json()["notes"] == [], chosen
    assert {name for name, _ in pairs(answer)} == {"sky", "kitchen", "own"}
    twice = service.post("/v1/search", json={"query": "moon", "indexes": ["sky", "sky"]}).json()
    assert (twice["mode"], twice["matched"]) == ("hybrid", 3)


def test_what_cannot_be_asked_is_refused(service: TestClient) -> None:
    def refused(**body: Any) -> tuple[int, str]:
        answer = service.post("/v1/search", json=body)
        return answer.status_code, answer.json()["detail"]

    assert refused(query="moon", indexes=["sky", "mars"]) == (
        404,
        "no index 'mars' is served here: sky, kitchen, own",
    )
    status, detail = refused(query="moon", mode="dense")
    assert status == 400
    assert detail.startswith("own: holds your own vectors and has no model")
    assert refused(query="moon", where="yaer > 1")[0] == 400
    assert refused(query="moon", indexes=[])[0] == 400
    assert refused(query="moon", area=[[0, 0], [1, 0], [1, 1]])[1] == "area: there is no member of this name"


def test_a_client_asks_several(folders: dict[str, Path]) -> None:
    app = create_app({name: str(path) for name, path in folders.items()})
    with serving_here(app) as port, Client(f"http://127.0.0.1:{port}") as client:
        question = Query("the full moon", 3, rerank=lambda query, texts: [-float(len(text)) for text in texts])
        expected = search_indexes([folders["sky"], folders["kitchen"]], question)
        hits = client.search_indexes(["sky", "kitchen"], question)
        assert [(hit.index, hit.uri) for hit in hits] == [(hit.index, hit.uri) for hit in expected]
        assert hits.matched == 6
        assert client.search_indexes(None, Query("moon", mode="words")).matched == 5
        with pytest.raises(NotAnIndex, match="mars"):
            client.search_indexes(["mars"], "moon")
        with pytest.raises(BadInput, match="list of names"):
            client.search_indexes("sky", "moon")
        with pytest.raises(UnknownField, match="yaer"):
            client.search_indexes(["sky"], Query("moon", where="yaer > 1"))


def test_mcp_asks_all_and_takes_a_document_where_it_is(folders: dict[str, Path]) -> None:
    served = ServedIndexes({name: str(path) for name, path in folders.items() if name != "own"})
    answers: dict[str, Any] = {}

    async def talk() -> None:
        async with McpClient(make_mcp_server(served)) as client:

            async def call(name: str, tool: str, **arguments: Any) -> None:
                answered = await client.call_tool(tool, arguments)
                answers[name] = answered.content[0].text if answered.is_error else answered.structured_content

            await call("all", "search", query="the moon", k=6)
            await call("one", "search", query="the moon", index="sky")
            await call("read", "get_document", uri="cheese", first_line=2)
            await call("twice", "get_document", uri="both")
            await call("named", "get_document", uri="both", index="sky")
            await call("like", "similar", uri="bread", k=1)
            await call("unknown", "similar", uri="mars")

    anyio.run(talk)
    served.close()
    assert {name for name, _ in pairs(answers["all"])} == {"sky", "kitchen"}
    assert len(answers["all"]["hits"]) == 6
    lines = {(hit["index"], hit["uri"]): hit["last_line"] for hit in answers["all"]["hits"]}
    assert lines["kitchen", "cheese"] == lines["sky", "moon"] == 2
    assert all("index" not in hit for hit in answers["one"]["hits"])
    assert answers["read"]["text"] == "Cheese is made of milk."
    assert "several indexes have a document with this uri: name one of them as index (sky, kitchen)" in answers["twice"]
    assert answers["named"]["text"] == "The moon and bread."
    assert [hit["uri"] for hit in answers["like"]["hits"]] == ["both"]
    assert "no document has this uri" in answers["unknown"]


def test_an_empty_question_is_allowed_with_examples(service: TestClient) -> None:
    expected = service.post("/v1/indexes/sky/search", json={"like": ["moon"]}).json()
    assert service.post("/v1/indexes/sky/search", json={"query": "", "like": ["moon"]}).json() == expected
    refused = service.post("/v1/indexes/sky/search", json={"query": ""})
    assert (refused.status_code, refused.json()["slug"]) == (400, "bad-input")
