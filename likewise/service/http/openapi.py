"""GET /openapi.json: every request and answer, made from the classes that validate requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from likewise.service.http import answers

Parameter = Mapping[str, Any]

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


def _parameter(name: str, description: str, place: str = "query", required: bool = False, **schema: Any) -> Parameter:
    """Return the Parameter Object of OpenAPI of a text, or of what the schema says."""
    needed = {"required": True} if required else {}
    described = {"schema": {"type": "string", **schema}, "description": description}
    return {"name": name, "in": place, **needed, **described}


_NAME = _parameter("name", "Name of an index.", "path", required=True)
URI = _parameter("uri", "Uri of a document.", required=True, minLength=1)
FIELD = _parameter("field", "A metadata field.", required=True, minLength=1)
WHERE = _parameter("where", "A filter as text, as in a search.", minLength=1)
CURSOR = _parameter("cursor", "The cursor of the page before. Without it, the first page is returned.", minLength=1)
PAGE = _parameter("page", "Draw this page.", type="integer", minimum=1)
_MARK = {"type": "string", "pattern": "^\\d{1,12}-\\d{1,12}$"}
MARKS = _parameter(
    "mark",
    "START-END in the text of the document: the passage, and then its sentence.",
    type="array",
    items=_MARK,
    maxItems=2,
)
FILE = "application/octet-stream"
_SCHEMAS = "#/components/schemas/"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI document, which every service of this process shares."""
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = each.describe()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "likewise",
            "version": version("likewise"),
            "description": "Search document collections by meaning, by words, or by both.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": _schemas(), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


@dataclass(frozen=True, slots=True)
class Operation:
    """A request that the service answers.

    Attributes:
        name: name of the endpoint. Generated clients name a function by it, and a module by the tag.
        answer: the shape of the answer; a media type for an answer that is not JSON; None for an answer to the page,
            which may change its shape.
    """

    name: str
    tag: str
    method: str
    path: str
    summary: str
    answer: type | str | None
    body: type[BaseModel] | None
    parameters: tuple[Parameter, ...]

    def describe(self) -> dict[str, Any]:
        """Return the Operation Object of OpenAPI."""
        problem = answers.OpenAIErrorAnswer if self.answer is answers.EmbeddingsAnswer else answers.ProblemAnswer
        content: Mapping[str, Any] = {"application/json": {"schema": {"type": "object"}}}
        if isinstance(self.answer, str):
            content = {self.answer: {"schema": {"type": "string"}}}
        elif self.answer is not None:
            content = _json(self.answer)
        described: dict[str, Any] = {
            "operationId": self.name,
            "tags": [self.tag],
            "summary": self.summary,
            "parameters": [_NAME, *self.parameters] if "{name}" in self.path else self.parameters,
            "responses": {"200": {"description": "Done.", "content": content}, **_problems(problem)},
        }
        if self.body is not None:
            described["requestBody"] = {"required": True, "content": _json(self.body)}
        return described


OPERATIONS: list[Operation] = []
"""Every operation, in the order of the endpoints."""


def operation(
    tag: str,
    route: str,
    answer: type | str | None = None,
    body: type[BaseModel] | None = None,
    *parameters: Parameter,
) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that adds an endpoint to OPERATIONS. The endpoint's docstring is the summary."""
    method, path = route.split()

    def add(endpoint: Endpoint) -> Endpoint:
        summary = str(endpoint.__doc__).partition("\n")[0].rstrip(".")
        OPERATIONS.append(Operation(endpoint.__name__, tag, method, path, summary, answer, body, parameters))
        return endpoint

    return add


def _problems(kind: type) -> dict[str, Any]:
    media_type = "application/problem+json" if kind is answers.ProblemAnswer else "application/json"
    return {
        str(status): {"description": description, "content": _json(kind, media_type)}
        for status, description in _PROBLEMS.items()
    }


def _json(kind: type, media_type: str = "application/json") -> Mapping[str, Any]:
    return {media_type: {"schema": {"$ref": _SCHEMAS + kind.__name__}}}


def _schemas() -> dict[str, Any]:
    bodies = {each.body for each in OPERATIONS if each.body is not None}
    values = {each.answer for each in OPERATIONS if isinstance(each.answer, type)}
    values |= {answers.ProblemAnswer, answers.OpenAIErrorAnswer}
    kinds = [(kind, "validation") for kind in bodies] + [(kind, "serialization") for kind in values]
    described = ((kind, mode, TypeAdapter(kind)) for kind, mode in sorted(kinds, key=lambda each: each[0].__name__))
    _, document = TypeAdapter.json_schemas(described, ref_template=_SCHEMAS + "{model}")  # type: ignore[arg-type]
    schemas: dict[str, Any] = document["$defs"]
    del schemas["Hit"]["required"]  # a search may leave members out (`fields`, `why`)
    return schemas
