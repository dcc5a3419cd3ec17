"""The shapes of answers, for the OpenAPI document. Answers themselves are written from the library's values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HitAnswer(_Answer):
    """A document with its best passage, or one passage. A search may leave members out (`fields`, `why`)."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema.pop("required"))

    uri: str
    title: str
    text: str = Field(description="The passage: characters start to end of the document's text, in code points.")
    start: int
    end: int
    score: float = Field(description="Ranks the hits, higher is better; the cosine in dense mode.")
    cosine: float | None = Field(description="Cosine of question and passage; null where it was not computed.")
    page: int | None
    line: int | None
    heading: str
    path: str | None
    format: str | None
    modified: str | None
    metadata: dict[str, Any]
    why: dict[str, Any] | None = Field(description="The reasons for the score.")
    percentile: float | None = Field(
        description="Percentage of random passages whose cosine with an unrelated question is lower."
    )
    index: str | None = Field(description="The index that holds it, where several were asked; else null.")
    family: list[str] = Field(description="With fold: uris of hits with nearly the same passage, 100 at most.")
    family_size: int = Field(description="How many such hits the search has met.")
    family_indexes: list[str] = Field(description="The index of each of the family, where several were asked.")


class SearchAnswer(_Answer):
    """Hits, best first."""

    query: str
    mode: Literal["dense", "words", "hybrid"]
    matched: int = Field(description="How many documents (or passages) the filter leaves.")
    exact: bool = Field(description="Whether the ranking is provably that of brute force.")
    answered: bool | None = Field(description="Whether something here seems to answer; null where that is not known.")
    did_you_mean: str = Field(description="The question with similar words for words that no document has; or empty.")
    notes: list[str] = Field(description="What the caller should know.")
    hits: list[HitAnswer]


class SearchManyAnswer(_Answer):
    """The hits of each question, in the order of the questions."""

    answers: list[SearchAnswer]


class IndexAnswer(_Answer):
    """An index that is served."""

    name: str
    documents: int
    passages: int
    model: str | None = Field(description="null where the index holds vectors of its owner's own.")
    dimensions: int
    fields: dict[str, list[Literal["boolean", "number", "text", "date"]]] = Field(
        description="The types of each metadata field, to filter by; of more than 200 fields the commonest."
    )
    more_fields: int = Field(description="How many metadata fields are not listed.")


class IndexesAnswer(_Answer):
    """Every index that is served."""

    indexes: list[IndexAnswer]
    writable: bool = Field(description="Whether the service takes documents and judgments.")


class SectionAnswer(_Answer):
    """The beginning of a part of a document."""

    start: int
    heading: str
    page: int | None


class DocumentAnswer(_Answer):
    """A document."""

    uri: str
    text: str
    title: str
    metadata: dict[str, Any]
    path: str | None
    format: str | None
    modified: str | None
    sections: list[SectionAnswer]
    original: str | None = Field(
        default=None, description="Media type of its original, if it has one and the service shows originals."
    )


class DocumentsAnswer(_Answer):
    """A page of documents, in the order they were added."""

    documents: list[DocumentAnswer]
    cursor: str | None = Field(description="For the next page; null after the last document.")
    notes: list[str] = Field(description="What the caller should know of the filter; only on the first page.")


class FoundDocumentsAnswer(_Answer):
    """Documents in the order of their uris, without unknown uris."""

    documents: list[DocumentAnswer]
    left: int = Field(description="How many of the last uris did not fit into the answer: ask again for these.")


class CountAnswer(_Answer):
    """How many documents a filter leaves."""

    documents: int
    notes: list[str] = Field(description="What the caller should know of the filter, such as values near to its own.")


class InfoAnswer(_Answer):
    """The state of an index in numbers, as `likewise info --json` prints it."""

    documents: int
    passages: int
    tokens: int = Field(description="How many tokens the encoder has read.")
    dimensions: int
    unsealed: int = Field(description="Passages that no segment holds yet.")
    bytes: int
    format_version: int
    history: str = Field(description="Drawn at random when the index was made; a copy has another.")
    segments: list[dict[str, Any]]
    fields: dict[str, list[Literal["boolean", "number", "text"]]]
    dates: list[str] = Field(description="Fields in which some text reads as a date.")
    details: dict[str, Any] = Field(description="Numbers that only this kind of store has.")


class ChangesAnswer(_Answer):
    """The uris of documents by what a request did to them."""

    added: list[str]
    replaced: list[str]
    updated: list[str]
    unchanged: list[str]
    notes: list[str]


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
