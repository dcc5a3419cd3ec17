"""GET /openapi.json: every request and answer, made from the classes that validate requests."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from search.server import answers, requests

_PROBLEMS = {
    400: "The request is wrong.",
    401: "A token is needed, or the token is wrong.",
    403: "A foreign page, or a service that is read-only.",
    404: "No such index or document.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    421: "The Host header names another service.",
    431: "Too many headers.",
    500: "The service failed.",
    503: "Too much to do, or the index is not available: try again after Retry-After seconds.",
    507: "The disk of the index is full.",
}
_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "Name of an index.",
}
_URI = {
    "name": "uri",
    "in": "query",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
    "description": "Uri of a document.",
}
_FIELD = {**_URI, "name": "field", "description": "A metadata field."}
_QUERY = {**_URI, "name": "query", "description": "A question."}
_SCHEMAS = "#/components/schemas/"


def describe_api() -> dict[str, Any]:
    """Return the OpenAPI document."""
    search = _operation("Rank the documents of an index by a question", answers.SearchAnswer, requests.SearchRequest)
    similar = _operation("Find the documents nearest to one", answers.SearchAnswer, requests.SimilarRequest)
    fields = _operation("List the fields of an index, with their frequent values", answers.FieldsAnswer)
    judgments = _operation("Return the judgments of a question", answers.JudgmentsAnswer) | {"parameters": [_QUERY]}
    judge = _operation(
        "Say whether a document answers a question (if writable)",
        answers.JudgmentsAnswer,
        requests.JudgmentRequest,
    )
    get = _operation("Return a document", answers.DocumentAnswer)
    delete = _operation("Remove a document (if writable)", answers.RemovedAnswer)
    put = _operation("Add or replace documents (if writable)", answers.ChangesAnswer, requests.DocumentsRequest)
    embeddings = _operation(
        "Embed texts with the model of an index (OpenAI's form)",
        answers.EmbeddingsAnswer,
        requests.EmbeddingsRequest,
        answers.OpenAIErrorAnswer,
    )
    rerank = _operation(
        "Order documents by how well they answer (Cohere's form, if there is a reranker)",
        answers.RerankAnswer,
        requests.RerankRequest,
    )
    drawn = _operation("Describe the map of an index", answers.MapAnswer)
    places = _text("Return x and y of every point as little-endian float32", "application/octet-stream")
    colours = _operation("Return the value of a field at every point", answers.ColoursAnswer)
    placed = _operation("Name documents of the map", answers.PlacedAnswer, requests.PlacedRequest)
    index = "/v1/indexes/{name}"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "likewise",
            "version": version("likewise"),
            "description": "Search document collections by meaning, by words, or by both.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"token": []}],
        "paths": {
            "/healthz": {"get": _operation("Say that the process answers", answers.StatusAnswer)},
            "/readyz": {"get": _operation("Say that every index can be read", answers.StatusAnswer)},
            "/metrics": {"get": _text("Metrics for Prometheus")},
            "/v1/indexes": {"get": _operation("List the indexes, with their fields", answers.IndexesAnswer)},
            f"{index}/fields": {"parameters": [_NAME], "get": fields},
            f"{index}/search": {"parameters": [_NAME], "post": search},
            f"{index}/map": {"parameters": [_NAME], "get": drawn},
            f"{index}/map/places": {"parameters": [_NAME], "get": places},
            f"{index}/map/colours": {"parameters": [_NAME, _FIELD], "get": colours},
            f"{index}/map/documents": {"parameters": [_NAME], "post": placed},
            f"{index}/similar": {"parameters": [_NAME], "post": similar},
            f"{index}/document": {"parameters": [_NAME, _URI], "get": get, "delete": delete},
            f"{index}/judgments": {"parameters": [_NAME], "get": judgments, "put": judge},
            f"{index}/documents": {"parameters": [_NAME], "put": put},
            "/v1/embeddings": {"post": embeddings},
            "/v1/rerank": {"post": rerank},
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    summary: str,
    answer: type[BaseModel],
    body: type[BaseModel] | None = None,
    problem: type[BaseModel] = answers.ProblemAnswer,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": {"description": "Done.", "content": _json(answer)}, **_problems(problem)},
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _json(body)}
    return operation


def _text(summary: str, media_type: str = "text/plain") -> dict[str, Any]:
    content = {media_type: {"schema": {"type": "string"}}}
    return {
        "summary": summary,
        "responses": {"200": {"description": "Done.", "content": content}, **_problems(answers.ProblemAnswer)},
    }


def _problems(kind: type[BaseModel]) -> dict[str, Any]:
    media_type = "application/problem+json" if kind is answers.ProblemAnswer else "application/json"
    return {
        str(status): {"description": description, "content": _json(kind, media_type)}
        for status, description in _PROBLEMS.items()
    }


def _json(kind: type[BaseModel], media_type: str = "application/json") -> Mapping[str, Any]:
    return {media_type: {"schema": {"$ref": _SCHEMAS + kind.__name__}}}


def _schemas() -> dict[str, Any]:
    kinds: list[tuple[type[BaseModel], Any]] = [
        *((kind, "validation") for kind in _models(requests)),
        *((kind, "serialization") for kind in _models(answers)),
    ]
    _, document = models_json_schema(kinds, ref_template=_SCHEMAS + "{model}")
    schemas: dict[str, Any] = document["$defs"]
    return schemas


def _models(module: Any) -> list[type[BaseModel]]:
    return [
        value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and value.__module__ == module.__name__
        and name[0] != "_"
    ]
