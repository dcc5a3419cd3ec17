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


class ValueAnswer(_Answer):
    """A value of a field."""

    value: str | int | float | bool
    documents: int = Field(description="How many documents have it.")


class NumbersAnswer(_Answer):
    """The range of the numbers of a field."""

    min: int | float
    max: int | float


class DaysAnswer(_Answer):
    """The range of the dates of a field: days in UTC, in ISO 8601."""

    min: str
    max: str


class FieldAnswer(_Answer):
    """A field that some document has."""

    name: str = Field(description="As filters write it.")
    types: list[Literal["boolean", "number", "text", "date"]]
    documents: int = Field(description="How many documents have a value.")
    values: list[ValueAnswer] = Field(
        description="The most frequent values, 20 at most; long texts are left out. Of path: the folders below the "
        "folder that holds all files."
    )
    shared: int = Field(description="How many values two documents or more have; 51 for more than 50.")
    numbers: NumbersAnswer | None = Field(description="The range in all documents.")
    days: DaysAnswer | None = Field(description="The range in all documents.")
    histogram: list[int] = Field(description="How many values are in each of 20 parts of the range, if asked for.")


class FacetAnswer(FieldAnswer):
    """A field, counted in the documents that a filter leaves."""

    types: list[Literal["boolean", "number", "text", "date"]] = []


class FacetsAnswer(_Answer):
    """Fields, each counted in the documents that its filter leaves."""

    facets: list[FacetAnswer]


class FieldsAnswer(_Answer):
    """Every field that some document has, with its frequent values."""

    fields: list[FieldAnswer]
    more_fields: int = Field(description="How many metadata fields are not listed: of more than 200, the rarest.")
    rare: list[str] = Field(description="The names of these, 2,000 at most.")


class ListAnswer(_Answer):
    """Documents, each with its beginning in the form of a hit without a score."""

    matched: int = Field(description="How many documents the filter leaves.")
    hits: list[dict[str, Any]]


class CentralAnswer(_Answer):
    """A document from the middle of a region."""

    uri: str
    title: str


class OverviewRegionAnswer(_Answer):
    """A main region of the map."""

    name: str
    documents: int
    central: list[CentralAnswer] = Field(description="The three documents nearest to its middle.")


class OverviewAnswer(_Answer):
    """What an index holds."""

    regions: list[OverviewRegionAnswer] = Field(description="The largest regions of the map; empty without a map.")
    questions: list[str] = Field(description="Three questions to try, made from central documents.")


class RegionAnswer(_Answer):
    """A region of a map."""

    x: float
    y: float
    level: int = Field(description="0 for the largest regions.")
    documents: int
    terms: list[str] = Field(description="The terms that distinguish it, best first.")


class MapAnswer(_Answer):
    """The map of an index, without its places."""

    documents: int
    outdated: bool = Field(description="Whether a quarter of the documents has come or gone since it was drawn.")
    regions: list[RegionAnswer]
    previous: bool = Field(description="Whether there is a map of the vectors that a change of the model replaced.")


class PreviousMapAnswer(_Answer):
    """The map of the vectors that a change of the model replaced, for the points of the index's own map."""

    model: str
    documents: int
    regions: list[RegionAnswer]
    places: str = Field(description="x and y of every point as little-endian float32 in base64; -1 if not on it.")


class ColourAnswer(_Answer):
    """The value of a field that a colour stands for, or a range of its numbers or dates."""

    value: str | int | float | bool
    documents: int = Field(description="How many documents have it.")
    from_: int | float | str | None = Field(alias="from", description="The lower bound of a range.")
    to: int | float | str | None = Field(description="The upper bound of a range.")


class ColoursAnswer(_Answer):
    """The points of a map by the value of a field."""

    field: str
    values: list[ColourAnswer] = Field(description="The most frequent values, or ranges in their order.")
    scale: bool = Field(description="Whether the values are ranges of numbers or dates.")
    colours: str = Field(description="One byte per point in base64: the position of its value, or 255 for others.")


class MatchingAnswer(_Answer):
    """The points of a map that pass a filter."""

    points: str = Field(description="One byte per point in base64: 1 for each that passes, or 0.")


class PlacedDocument(_Answer):
    """A document of the map."""

    point: int | None = Field(description="null where it came after the map was drawn.")
    uri: str
    title: str
    text: str = Field(description="The beginning of its text.")


class PlacedAnswer(_Answer):
    """Documents of the map."""

    documents: list[PlacedDocument]


class JudgmentAnswer(_Answer):
    """What was said of a document."""

    uri: str
    grade: int = Field(description="1 or more if it answers the question, 0 or less if it does not.")


class JudgmentsAnswer(_Answer):
    """The judgments of one question."""

    writable: bool = Field(description="Whether the service takes judgments.")
    judgments: list[JudgmentAnswer]


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
