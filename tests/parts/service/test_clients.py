"""The clients that people use: OpenAI's own, and requests and a client generated from the OpenAPI document."""

from __future__ import annotations

import importlib
import json
import struct
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from chromium import serving_here
from hypothesis import HealthCheck, given, settings
from starlette.testclient import TestClient

from indexer.encoders.tokens.tokenizer import Tokenizer
from search import Searcher

if TYPE_CHECKING:
    import openai  # which every process of the tests would wait for


@pytest.fixture
def official(client: TestClient) -> openai.OpenAI:
    """OpenAI's client, which sends through the application instead of a network."""
    import openai

    return openai.OpenAI(api_key="none", base_url="http://127.0.0.1/v1", http_client=client, max_retries=0)


def test_the_official_client_gets_the_encoders_vectors(official: openai.OpenAI, encoder: Any) -> None:
    """It asks for base64 unless told otherwise."""
    answered = official.embeddings.create(model="papers", input=["the moon", "bread"], dimensions=64)
    rows = np.array([entry.embedding for entry in answered.data], np.float32)
    np.testing.assert_array_equal(rows, encoder.encode(["the moon", "bread"]))
    assert (answered.model, answered.usage.total_tokens) == ("papers", 7)
    as_floats = official.embeddings.create(model="papers", input="bread", encoding_format="float")
    np.testing.assert_array_equal(np.array(as_floats.data[0].embedding, np.float32), rows[1])
    asked = official.embeddings.create(model="papers", input="bread", extra_body={"input_type": "query"})
    np.testing.assert_array_equal(
        np.array(asked.data[0].embedding, np.float32), encoder.encode(["bread"], role="query")[0]
    )


def test_base64_is_little_endian_float32(client: TestClient, encoder: Any) -> None:
    body = {"model": "papers", "input": "bread", "encoding_format": "base64"}
    data = b64decode(client.post("/v1/embeddings", json=body).json()["data"][0]["embedding"])
    assert list(struct.unpack("<64f", data)) == encoder.encode(["bread"])[0].tolist()


def test_the_official_client_lists_the_indexes_that_have_a_model(
    open_client: Callable[..., TestClient], papers: Path, own_vectors: Path
) -> None:
    through = open_client({"vectors": own_vectors, "papers": papers})
    import openai

    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1/v1", http_client=through, max_retries=0)
    assert [(model.id, model.object) for model in client.models.list()] == [("papers", "model")]


def test_the_official_client_understands_errors(official: openai.OpenAI) -> None:
    import openai

    with pytest.raises(openai.NotFoundError, match="no index 'gpt' is served here") as missing:
        official.embeddings.create(model="gpt", input="a")
    assert missing.value.code == "unknown_index"
    for wrong in (
        {"input": []},
        {"dimensions": 3},
        {"input": [[1], ["a"]]},
        {"input": [3]},
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            official.embeddings.create(**{"model": "papers", "input": "a", **wrong})
        assert refused.value.type == "invalid_request_error"


def test_token_ids_are_those_of_the_index(client: TestClient, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenizers import Tokenizer as Words
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = Words(WordLevel({"the": 0, "moon": 1, "bread": 2, "a": 3, "b": 4, "?": 5}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    monkeypatch.setattr(encoder, "tokenizer", Tokenizer(words.to_str(), 32, special_tokens=False), raising=False)
    for ids, texts in (([0, 1], ["the moon"]), ([[0, 1], [2]], ["the moon", "bread"])):
        answered = client.post("/v1/embeddings", json={"model": "papers", "input": ids}).json()
        rows = np.array([entry["embedding"] for entry in answered["data"]], np.float32)
        np.testing.assert_array_equal(rows, encoder.encode(texts))
    unknown = client.post("/v1/embeddings", json={"model": "papers", "input": [1, 50_000]})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "unknown_token")


def test_documents_are_reranked_in_coheres_form(
    open_client: Callable[..., TestClient], papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Scorer:
        gives_probabilities = False

        def __call__(self, query: str, texts: list[str]) -> list[float]:
            return [1.2 if query in text else 0.9 - len(text) for text in texts]

    monkeypatch.setattr("likewise.service.http.app._load_scorer", lambda model: Scorer() if model else None)
    asked = {"query": "moon", "documents": ["bread and", {"text": "the moon", "id": 7}, "sun"], "model": "any"}
    client = open_client({"papers": papers}, rerank="scorer")
    both = [client.post(f"/v{n}/rerank", json={**asked, "return_documents": True}).json() for n in (1, 2)]
    assert [one["meta"]["api_version"]["version"] for one in both] == ["1", "2"]
    answered = both[0]["results"]
    assert both[1]["results"] == answered
    assert [entry["index"] for entry in answered] == [1, 2, 0]
    assert [entry["document"] for entry in answered] == [
        {"text": "the moon", "id": 7},
        {"text": "sun"},
        {"text": "bread and"},
    ]
    assert [round(entry["relevance_score"], 4) for entry in answered] == [0.7685, 0.1091, 0.0003]
    first = client.post("/v1/rerank", json={**asked, "top_n": 1}).json()["results"]
    assert [sorted(entry) for entry in first] == [["index", "relevance_score"]]
    # What Cohere's ClientV2.rerank sends with all of its options but `relevant_spans`, which nothing here can find.
    texts = {**asked, "documents": ["bread", "moon"], "top_n": 1, "max_tokens_per_doc": 4096, "priority": 0}
    assert client.post("/v2/rerank", json=texts).json()["results"][0]["index"] == 1
    refused = client.post("/v2/rerank", json={**texts, "relevant_spans": {}})
    assert (refused.status_code, refused.json()["detail"]) == (400, "relevant_spans: there is no member of this name")
    without = open_client({"papers": papers}).post("/v1/rerank", json=asked)
    assert (without.status_code, without.json()["slug"]) == (404, "no-reranker")


@pytest.mark.slow
def test_generated_requests_get_what_the_openapi_document_says(writer: TestClient) -> None:
    """schemathesis makes valid and invalid requests of every operation."""
    import schemathesis  # which takes a second, and only this test needs it
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    host = {"Host": "127.0.0.1"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", writer.app, headers=host)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 30
    made = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
    ]

    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        def send(case: Any) -> None:
            case.validate_response(case.call(headers=host), checks=made)

        send()


def test_examples_of_the_openapi_document_are_valid(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    example = document["components"]["schemas"]["SearchRequest"]["examples"][0]
    assert client.post("/v1/indexes/papers/search", json=example).status_code == 200


def test_generated_clients_name_functions_modules_and_bodies(client: TestClient) -> None:
    """A schema with `anyOf` beside its properties is `Any` in the clients that openapi-python-client generates."""
    document = client.get("/openapi.json").json()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(
        name.isidentifier() and len(operation["tags"]) == 1 for name, operation in zip(names, operations, strict=True)
    )
    assert {"search", "similar", "get_document", "list_indexes", "embed", "rerank_v2"} < set(names)
    for schema in document["components"]["schemas"].values():
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf"} & set(schema)


@pytest.mark.slow
def test_a_generated_client_searches_a_running_service(
    client: TestClient, papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"post_hooks": []}))
    with serving_here(client.app) as port:
        address = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "openapi_python_client", "generate", "--url", f"{address}/openapi.json"]
        options = ["--meta", "none", "--output-path", tmp_path / "generated", "--config", tmp_path / "config.json"]
        subprocess.run([*command, *options, "--fail-on-warning"], check=True, timeout=110, stdout=subprocess.DEVNULL)
        monkeypatch.syspath_prepend(tmp_path)
        models = importlib.import_module("generated.models")
        search = importlib.import_module("generated.api.search.search")
        asked = models.SearchRequest(
            query="the moon", k=2, where="year >= 2020", mode=models.SearchRequestModeType0.DENSE
        )
        with importlib.import_module("generated").Client(base_url=address) as generated:
            answered = search.sync("papers", client=generated, body=asked)
            refused = search.sync("papers", client=generated, body=models.SearchRequest(query="moon", where="yeer = 1"))
    expected = Searcher(papers).search("the moon", k=2, where="year >= 2020").as_json()
    assert answered.to_dict() == json.loads(json.dumps(expected))
    assert (refused.slug, refused.status) == ("unknown-field", 400)
