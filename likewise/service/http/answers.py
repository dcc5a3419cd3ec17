"""The shapes of answers that are not values of the library, for the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from indexer.records import Document
from search.hits.hits import Hits


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchManyAnswer(_Answer):
    """The hits of each question, in the order of the questions."""

    answers: list[Hits]


class IndexAnswer(_Answer):
    """An index that is served."""

    name: str
    documents: int
    passages: int
    model: str | None = Field(description="null if the index holds vectors of its owner's own.")
    dimensions: int
    fields: dict[str, list[Literal["boolean", "number", "text", "date"]]] = Field(
        description="The types of each metadata field, to filter by; of more than 200 fields the commonest."
    )
    more_fields: int = Field(description="How many metadata fields are not listed.")


class IndexesAnswer(_Answer):
    """Every index that is served."""

    indexes: list[IndexAnswer]
    writable: bool = Field(description="Whether the service takes documents.")


@dataclass(frozen=True)
class DocumentAnswer(Document):
    """A document, with the media type of its original if it has one and the service shows originals."""

    original: str | None = None


class DocumentsAnswer(_Answer):
    """A page of documents, in the order they were added."""

    documents: list[Document]
    cursor: str | None = Field(description="For the next page; null after the last document.")
    notes: list[str] = Field(description="What the caller should know of the filter; only on the first page.")


class FoundDocumentsAnswer(_Answer):
    """Documents in the order of their uris, without unknown uris."""

    documents: list[Document]
    left: int = Field(description="How many of the last uris did not fit into the answer: ask again for these.")


class CountAnswer(_Answer):
    """How many documents a filter leaves."""

    documents: int
    notes: list[str] = Field(description="What the caller should know of the filter, such as values near to its own.")


class RemovedAnswer(_Answer):
    """How many documents were removed."""

    removed: int


class StatusAnswer(_Answer):
    """The state of the service."""

    status: Literal["ok", "ready"]


class ReadyAnswer(StatusAnswer):
    """The state of the indexes."""

    words: Literal["building", "ready"]


class ModelAnswer(_Answer):
    """An index whose model embeds texts."""

    id: str = Field(description="The name of the index.")
    object: Literal["model"]
    created: int = Field(description="Always 0, because indexes do not record when they were made.")
    owned_by: str


class ModelsAnswer(_Answer):
    """Every index that has a model."""

    object: Literal["list"]
    data: list[ModelAnswer]


class EmbeddingAnswer(_Answer):
    """One vector."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str = Field(description="Numbers, or little-endian float32 in base64.")


class UsageAnswer(_Answer):
    """How many tokens the model has read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(_Answer):
    """Vectors in the order of the texts."""

    object: Literal["list"]
    data: list[EmbeddingAnswer]
    model: str
    usage: UsageAnswer


class RerankedAnswer(_Answer):
    """One document's relevance."""

    index: int
    relevance_score: float = Field(ge=0, le=1)
    document: dict[str, Any] | None = None


class RerankAnswer(_Answer):
    """Documents by relevance, best first."""

    id: str
    results: list[RerankedAnswer]
    meta: dict[str, Any]


class ProblemAnswer(_Answer):
    """Problem details (RFC 9457) with `slug`, a short name for programs."""

    type: str
    title: str
    status: int
    detail: str
    slug: str
    field: str | None = Field(None, description="The field that no document has, for the slug unknown-field.")


class OpenAIError(_Answer):
    """What is wrong, as OpenAI says it."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorAnswer(_Answer):
    """An error in OpenAI's form."""

    error: OpenAIError
