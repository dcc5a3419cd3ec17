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
    403: "A foreign page, or a service that is read-only or shows no originals.",
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
_WHERE = {
    "name": "where",
    "in": "query",
    "schema": {"type": "string", "minLength": 1},
    "description": "A filter as text, as in a search.",
}
_CURSOR = {**_WHERE, "name": "cursor", "description": "From the page before; without it, the first page."}
_PAGE = {"name": "page", "in": "query", "schema": {"type": "integer", "minimum": 1}, "description": "Draw this page."}
_MARKS = {
    "name": "mark",
    "in": "query",
    "schema": {"type": "array", "items": {"type": "string", "pattern": "^\\d{1,12}-\\d{1,12}$"}, "maxItems": 2},
    "description": "START-END in the text of the document: the passage, and then its sentence.",
}
_FILE = "application/octet-stream"
_SCHEMAS = "#/components/schemas/"


def describe_api() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "likewise",
            "version": version("likewise"),
            "description": "Search document collections by meaning, by words, or by both.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"token": []}],
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Paths(dict[str, dict[str, Any]]):
    """The operations of each path."""

    def add(
        self,
        tag: str,
        name: str,
        route: str,
        summary: str,
        answer: type[BaseModel] | str,
        body: type[BaseModel] | None = None,
        *parameters: Mapping[str, Any],
    ) -> None:
        """Add an operation. Generated clients name a module by its tag and a function by its name."""
        method, path = route.split()
        problem = answers.OpenAIErrorAnswer if answer is answers.EmbeddingsAnswer else answers.ProblemAnswer
        content = {answer: {"schema": {"type": "string"}}} if isinstance(answer, str) else _json(answer)
        operation: dict[str, Any] = {
            "operationId": name,
            "tags": [tag],
            "summary": summary,
            "parameters": [_NAME, *parameters] if "{name}" in path else parameters,
            "responses": {"200": {"description": "Done.", "content": content}, **_problems(problem)},
        }
        if body is not None:
            operation["requestBody"] = {"required": True, "content": _json(body)}
        self.setdefault(path, {})[method.lower()] = operation


def _paths() -> _Paths:
    paths = _Paths()
    add = paths.add
    add("service", "get_health", "GET /healthz", "Say that the process answers", answers.StatusAnswer)
    add("service", "get_readiness", "GET /readyz", "Say that every index can be read", answers.ReadyAnswer)
    add("service", "get_metrics", "GET /metrics", "Return metrics for Prometheus", "text/plain")

    index = "/v1/indexes/{name}"
    add("indexes", "list_indexes", "GET /v1/indexes", "List the indexes, with their fields", answers.IndexesAnswer)
    add("indexes", "list_fields", f"GET {index}/fields", "List fields with frequent values", answers.FieldsAnswer)
    add("indexes", "get_info", f"GET {index}/info", "Return the state of an index in numbers", answers.InfoAnswer)
    add("indexes", "count_fields", f"POST {index}/facets", "Count fields", answers.FacetsAnswer, requests.FacetsRequest)

    found = answers.SearchAnswer
    add("search", "search", f"POST {index}/search", "Rank documents by a question", found, requests.SearchRequest)
    add("search", "search_indexes", "POST /v1/search", "Search several indexes", found, requests.SearchIndexesRequest)
    many, answered = "Rank documents by each of some questions", answers.SearchManyAnswer
    add("search", "search_many", f"POST {index}/search-many", many, answered, requests.SearchManyRequest)
    add("search", "similar", f"POST {index}/similar", "Find documents like one", found, requests.SimilarRequest)

    add("documents", "list_by", f"POST {index}/list", "List by time or title", answers.ListAnswer, requests.ListRequest)
    add("indexes", "get_overview", f"GET {index}/overview", "Return regions and questions", answers.OverviewAnswer)

    document = f"{index}/document"
    add("documents", "get_document", f"GET {document}", "Return a document", answers.DocumentAnswer, None, _URI)
    original = "Return the file of a document, or the picture of a page (if originals are shown)", _FILE, None
    add("documents", "get_original", f"GET {index}/original", *original, _URI, _PAGE, _MARKS)
    remove = f"DELETE {document}", "Remove a document (if writable)"
    add("documents", "remove_document", *remove, answers.RemovedAnswer, None, _URI)
    pages, page = "List documents in pages, in the order they were added", answers.DocumentsAnswer
    add("documents", "list_documents", f"GET {document}s", pages, page, None, _WHERE, _CURSOR)
    uris, by_uri = "Return documents by their uris", answers.FoundDocumentsAnswer
    add("documents", "get_documents", f"POST {index}/get-many", uris, by_uri, requests.UrisRequest)
    counted = "Count the documents that a filter leaves", answers.CountAnswer, None
    add("documents", "count", f"GET {index}/count", *counted, _WHERE)
    change, changes = "Add or replace documents (if writable)", answers.ChangesAnswer
    add("documents", "put_documents", f"PUT {document}s", change, changes, requests.DocumentsRequest)

    judgments, judged = f"{index}/judgments", answers.JudgmentsAnswer
    add("judgments", "get_judgments", f"GET {judgments}", "Return the judgments of a question", judged, None, _QUERY)
    judge = "Say whether a document answers a question (if writable)"
    add("judgments", "judge", f"PUT {judgments}", judge, judged, requests.JudgmentRequest)

    drawn, coloured, placed = answers.MapAnswer, answers.ColoursAnswer, answers.PlacedAnswer
    add("map", "get_map", f"GET {index}/map", "Describe the map of an index", drawn)
    add(
        "map",
        "get_places",
        f"GET {index}/map/places",
        "Return x and y of every point as little-endian float32",
        "application/octet-stream",
    )
    add(
        "map",
        "get_previous_map",
        f"GET {index}/map/previous",
        "Return the map of the previous model's vectors",
        answers.PreviousMapAnswer,
    )
    add(
        "map",
        "get_colours",
        f"GET {index}/map/colours",
        "Return the value of a field at every point",
        coloured,
        None,
        _FIELD,
    )
    add("map", "name_points", f"POST {index}/map/documents", "Name documents", placed, requests.PlacedRequest)

    matching, filtered = answers.MatchingAnswer, requests.MatchingRequest
    add("map", "match_points", f"POST {index}/map/matching", "Tell which points pass a filter", matching, filtered)

    names = "List the indexes that embed texts (OpenAI's form)"
    embed, order = "Embed texts (OpenAI's form)", "Order documents by relevance (Cohere's form, if there is a reranker)"
    add("models", "list_models", "GET /v1/models", names, answers.ModelsAnswer)
    add("models", "embed", "POST /v1/embeddings", embed, answers.EmbeddingsAnswer, requests.EmbeddingsRequest)
    for number in "12":
        route = f"rerank_v{number}", f"POST /v{number}/rerank"
        add("models", *route, order, answers.RerankAnswer, requests.RerankRequest)
    return paths


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
