"""The bodies and parameters of requests, validated with pydantic. The OpenAPI document is made from the same classes.

An unknown member is refused, because a misspelt filter that is ignored gives wrong answers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator
from starlette.requests import Request

from indexer.errors import BadInput
from indexer.filters.dates import read_date
from indexer.filters.limits import FROM_CLIENTS
from indexer.filters.mapping import Filter, filter_tree
from indexer.filters.operators import ON_FIELDS
from indexer.filters.tree import Where as FilterTree
from indexer.sources.records.repeated_members import noting
from indexer.stores.fields.flatten import scalars
from indexer.stores.port import Sort
from likewise.service.http import limits
from likewise.service.http.maps import MAX_CORNERS, MAX_TITLES
from likewise.service.http.problems import Problem
from likewise.service.served import MAX_FOLDED_HITS, MAX_HITS
from search.hits.hits import HIT_MEMBERS
from search.query.query import Mode

_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)

Uri = Annotated[str, Field(min_length=1, max_length=10_000)]
Where = Annotated[
    Annotated[str, Field(max_length=FROM_CLIENTS.characters)] | dict[str, Any] | None,
    Field(
        description="A filter: text, or the same as an object. Fields are listed by GET /v1/indexes. "
        f"Comparisons: {ON_FIELDS}; under takes a folder of paths. At most {FROM_CLIENTS.conditions} conditions, "
        f"{FROM_CLIENTS.values:,} values after in, and {FROM_CLIENTS.pattern:,} characters after like and contains.",
        examples=[
            'year >= 2020 and lang in ("en", "de")',
            {"year": {">=": 2020}, "lang": {"in": ["en", "de"]}},
            'title like "%bread%" and under "/srv/papers"',
        ],
    ),
]
Question = Annotated[str, Field(min_length=1, max_length=limits.MAX_QUERY_CHARACTERS)]
QuestionVector = Annotated[list[FiniteFloat], Field(min_length=1, max_length=limits.MAX_DIMENSIONS)]
HitCount = Annotated[int, Field(ge=1, le=MAX_HITS, description="How many hits to return.")]


def _examples(*bodies: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def refuse_too_many_values(cls, body: bytes) -> None:
        """Raise Problem for a body that takes too much time and memory to parse, before it is parsed."""


Area = Annotated[
    list[Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]], Field(min_length=3, max_length=MAX_CORNERS)
]


ASKED_MEMBERS = (*HIT_MEMBERS, "shown")
"""The members of a hit that a request may ask for."""


class WithArea(_Body):
    """A request that may be limited to an area of the map."""

    area: Area | None = Field(
        None,
        description="Corners [x, y] of a polygon on the map. Only documents in it are counted, listed or ranked.",
    )


class MatchingRequest(WithArea):
    """Documents that pass a filter, and are in an area of the map if one is given."""

    where: Where = None


class _RankingRequest(_Body):
    """What the requests for hits have in common."""

    k: HitCount = 10
    mode: Mode | None = Field(
        None,
        description="dense ranks by meaning, words by BM25, hybrid by both. Without it: hybrid; dense for a vector "
        "without text; words where the index has no model.",
    )
    passages: bool = Field(False, description="Rank passages instead of documents.")
    exact: bool = Field(False, description="Compare with every vector.")
    min_score: FiniteFloat | None = Field(None, description="Leave out hits with a lower score.")
    fields: Annotated[list[Literal[ASKED_MEMBERS]], Field(min_length=1)] | None = Field(  # type: ignore[valid-type]
        None,
        description="The members of each hit to return. Without it, all but shown are returned. shown has the ranges "
        "[start, end] of text that do not repeat title, heading and metadata.",
    )
    why: bool = Field(True, description="Return the reasons for each score. Marking words takes time.")

    @property
    def members(self) -> tuple[str, ...]:
        """The members of each hit to return, in the order of `Hit`."""
        asked = HIT_MEMBERS if self.fields is None else self.fields
        return tuple(name for name in ASKED_MEMBERS if name in asked and (self.why or name != "why"))

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if not self.why and self.fields is not None and "why" in self.fields:
            raise ValueError("fields has why, and why is false: leave one of them out")
        return self


class SearchManyRequest(_RankingRequest):
    """Questions to an index, which are embedded together."""

    model_config = _examples({"queries": ["how do vaccines work", "moon"], "k": 3})

    queries: Annotated[
        list[Annotated[str, Field(max_length=limits.MAX_QUERY_CHARACTERS)]], Field(max_length=limits.MAX_QUESTIONS)
    ] = Field(description="The questions; a text may be empty if its vector is given and the mode is dense.")
    vectors: Annotated[list[QuestionVector], Field(max_length=limits.MAX_QUESTIONS)] | None = Field(
        None, description="The vectors of the questions, used instead of embedding their texts."
    )
    where: Where | Annotated[list[Where], Field(max_length=limits.MAX_QUESTIONS)] = None

    @model_validator(mode="after")
    def _fits(self) -> SearchManyRequest:
        if len(self.queries) * self.k > limits.MAX_HITS_TOGETHER:
            raise ValueError(f"ask for {limits.MAX_HITS_TOGETHER:,} hits at most, for all questions together")
        return self


class UrisRequest(_Body):
    """Documents to read."""

    model_config = _examples({"uris": ["pep-0008.rst", "pep-0020.rst"]})

    uris: Annotated[list[Uri], Field(max_length=MAX_HITS)]


class QuestionRequest(_RankingRequest):
    """A question: `query`, `vector` or both."""

    query: Annotated[str, Field(max_length=limits.MAX_QUERY_CHARACTERS)] | None = Field(
        None, description="The question; may be left out, or empty, with vector or like."
    )
    vector: QuestionVector | None = Field(
        None, description="The question's vector, used instead of embedding its text."
    )
    where: Where = None
    literal: bool = Field(
        True,
        description='false reads "a phrase", +word and, after the last plain word, -word and -"a phrase" in the query '
        "as conditions: words that each hit must hold, or must not hold.",
    )
    explain: bool = Field(False, description="Find the sentence of each hit that is nearest to the question.")
    like: Annotated[list[Uri], Field(max_length=limits.MAX_EXAMPLES)] = Field(
        [], description="Documents that hits should be like. They are no hits themselves. query may then be left out."
    )
    unlike: Annotated[list[Uri], Field(max_length=limits.MAX_EXAMPLES)] = Field(
        [], description="Documents that hits should be unlike."
    )
    fold: bool = Field(
        False,
        description="Return one hit for each family of hits whose passages have nearly the same text. Its members "
        f"family and family_size name and count the others. k is then at most {MAX_FOLDED_HITS}.",
    )
    newer: Annotated[str, Field(max_length=1000)] | None = Field(
        None,
        description="Newer documents first: a score above 0 halves for each step of age, such as 90d, 12h, 6mo or 1y; "
        "90d:FIELD takes the dates of a field instead of modified.",
        examples=["90d"],
    )

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.query and self.vector is None and not self.like:
            raise ValueError("give query, vector or both, or documents as like")
        if self.explain and self.k > limits.MAX_EXPLAINED:
            raise ValueError(f"explain embeds every sentence of every hit: ask for {limits.MAX_EXPLAINED} hits at most")
        if self.explain and "why" not in self.members:
            raise ValueError("explain is answered in why, which is left out: add why to fields, or leave explain out")
        return self


class SearchRequest(QuestionRequest, WithArea):
    """A question to an index: `query`, `vector` or both."""

    model_config = _examples({"query": "how do vaccines work", "k": 3, "where": "year >= 2020"})


class SearchIndexesRequest(QuestionRequest):
    """A question to several indexes, which answer in one ranking."""

    model_config = _examples({"indexes": ["papers", "notes"], "query": "how do vaccines work", "k": 3})

    indexes: Annotated[list[str], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="The names of the indexes. Without it, all indexes are asked."
    )


class SimilarRequest(MatchingRequest):
    """A question for documents that are near to one of the index."""

    model_config = _examples({"uri": "pep-0008.rst", "k": 3})

    uri: Uri
    k: HitCount = 10


class ListRequest(MatchingRequest):
    """Documents to list without a question."""

    k: HitCount = 10
    sort: Sort = "newest"


class FacetRequest(MatchingRequest):
    """A field to count, and the filter of the documents to count it in."""

    field: Annotated[str, Field(min_length=1, max_length=1000)]


class FacetsRequest(_Body):
    """Fields to count, each with its own filter: usually all conditions but those on the field itself."""

    facets: Annotated[list[FacetRequest], Field(min_length=1, max_length=limits.MAX_FACETS)]


class PlacedRequest(_Body):
    """Documents of the map, by their points or by their uris."""

    points: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MAX_TITLES)] = []
    uris: Annotated[list[Uri], Field(max_length=MAX_HITS)] = []


class NewSection(_Body):
    """The beginning of a part of a document."""

    start: int = Field(description="Offset of its first character in the text.")
    heading: str = ""
    page: int | None = None


class NewDocument(_Body):
    """A document to store."""

    uri: Uri
    text: str = Field(description=f"At most {limits.MAX_TEXT_CHARACTERS:,} characters.")
    title: Annotated[str | None, Field(max_length=10_000)] = ""
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description=f"At most {limits.MAX_METADATA_FIELDS:,} fields, counted with those below them.",
    )
    format: Annotated[str | None, Field(max_length=100)] = None
    modified: Annotated[str | None, Field(max_length=100)] = Field(None, description="ISO 8601 in UTC.")
    sections: list[NewSection] = []

    @model_validator(mode="after")
    def _can_be_stored(self) -> Self:
        if (length := len(self.text)) > limits.MAX_TEXT_CHARACTERS:
            raise ValueError(
                f"the text has {length:,} characters, and {limits.MAX_TEXT_CHARACTERS:,} is the limit: divide it "
                "into several documents, or index it from a file"
            )
        names = {name for name, _, _ in scalars("metadata", self.metadata)}
        if len(names) > limits.MAX_METADATA_FIELDS:
            raise ValueError(
                f"the document has {len(names):,} metadata fields, and {limits.MAX_METADATA_FIELDS:,} is the limit: "
                "write them into fewer fields, such as a list"
            )
        if self.modified is not None and read_date(self.modified) is None:
            raise ValueError(f"modified is {self.modified!r}: write a date such as 2024-01-31T10:00:00Z")
        if any(not 0 <= section.start <= length for section in self.sections):
            raise ValueError(f"a section starts outside of the text of {length:,} characters")
        return self


class DocumentsRequest(_Body):
    """Documents to add or replace."""

    model_config = _examples(
        {"documents": [{"uri": "a", "text": "Vaccines train the immune system.", "title": "Vaccines"}]}
    )

    documents: Annotated[list[NewDocument], Field(min_length=1)]
    vectors: list[QuestionVector] | list[list[QuestionVector]] | None = Field(
        None,
        description="Your own vectors: one for each document; with spans, one for each of its passages.",
    )
    spans: list[list[Annotated[list[int], Field(min_length=2, max_length=2)]]] | None = Field(
        None, description="For each document the [start, end] of its passages, in characters of its text."
    )
    replace_all: bool = Field(
        False, description="Replace all documents of an index of your own vectors by these, in one step."
    )


class RemovalRequest(_Body):
    """Documents to remove: `uris` or `where`."""

    model_config = _examples({"where": "year < 2020"}, {"uris": ["a", "b"]})

    uris: Annotated[list[Uri], Field(max_length=limits.MAX_REMOVED, fail_fast=True)] | None = None
    where: Where = None
    missing_ok: bool = Field(False, description="Ignore uris that no document has; otherwise nothing is removed.")
    yes: bool = Field(False, description="Remove more than half of the documents of the index.")


class EmbeddingsRequest(_Body):
    """Texts to embed, in OpenAI's form. Members of that form that do not change vectors are accepted."""

    model_config = _examples({"model": "papers", "input": ["how do vaccines work"], "input_type": "query"})

    model: str = Field(description="The name of an index, whose model embeds the texts.")
    input: (
        str
        | Annotated[list[str], Field(min_length=1, max_length=limits.MAX_TEXTS, fail_fast=True)]
        | Annotated[list[int], Field(min_length=1, max_length=limits.MAX_TEXTS_CHARACTERS, fail_fast=True)]
        | Annotated[
            list[Annotated[list[int], Field(min_length=1, fail_fast=True)]],
            Field(min_length=1, max_length=limits.MAX_TEXTS, fail_fast=True),
        ]
    ) = Field(description="A text, texts, or token ids of the index's own tokenizer.")
    encoding_format: Literal["float", "base64"] = Field("float", description="base64 is little-endian float32.")
    dimensions: Annotated[int, Field(ge=1, le=limits.MAX_DIMENSIONS)] | None = Field(
        None, description="Must be the index's own number, because its vectors have no other."
    )
    input_type: Literal["document", "query"] = "document"
    user: str | None = None

    @classmethod
    def refuse_too_many_values(cls, body: bytes) -> None:
        # Parsing holds the interpreter: 15 MB of `[1],` took 2 GB and stopped every other request for 7 seconds.
        # A body within the limits has at most one comma per character and per text.
        too_many = body.count(b",") > limits.MAX_TEXTS_CHARACTERS + limits.MAX_TEXTS
        if not too_many and len(body) > limits.MAX_BODY_BYTES:
            outside_texts = _JSON_STRING.sub(b"", body)
            too_many = sum(map(outside_texts.count, (b"[", b"{", b":"))) > 2 * limits.MAX_TEXTS
        if too_many:
            raise Problem(
                400,
                "bad-input",
                f"the body has too many values: send at most {limits.MAX_TEXTS:,} texts, with "
                f"{limits.MAX_TEXTS_CHARACTERS:,} characters or tokens together",
            )

    @model_validator(mode="after")
    def _fits(self) -> EmbeddingsRequest:
        if isinstance(self.input, str) or isinstance(self.input[0], int):
            characters = len(self.input)
        else:
            characters = sum(len(text) for text in self.input if not isinstance(text, int))
        if characters > limits.MAX_TEXTS_CHARACTERS:
            raise ValueError(
                f"input has {characters:,} characters or tokens, and {limits.MAX_TEXTS_CHARACTERS:,} is the limit: "
                "send less"
            )
        return self


class RerankDocument(BaseModel):
    """A document to score; members beside `text` come back with return_documents."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    text: str


class RerankRequest(_Body):
    """Documents to put in the order in which they answer a question, in Cohere's form."""

    model_config = _examples({"query": "capital of France", "documents": ["Paris is the capital.", "Lyon is a city."]})

    query: Question
    documents: Annotated[list[str | RerankDocument], Field(min_length=1, max_length=MAX_HITS)]
    model: str | None = Field(None, description="Ignored: the service has one reranker.")
    top_n: Annotated[int, Field(ge=1)] | None = None
    max_tokens_per_doc: int | None = Field(None, description="Ignored: texts are cut at the reranker's own limit.")
    priority: int | None = Field(None, description="Ignored.")
    return_documents: bool = False


Body = TypeVar("Body", bound=_Body)
Parsed = TypeVar("Parsed")

_PARSER = ThreadPoolExecutor(1, "likewise parser")
"""The one thread for long texts. Several would take the interpreter from the thread that answers."""


async def filter_of(where: Filter | None) -> FilterTree | None:
    """Return the filter that a client sends.

    Raises:
        FilterError: it does not parse, or is too large.
    """
    return await _parsed(len(where) if isinstance(where, str) else 0, lambda: filter_tree(where, FROM_CLIENTS))


async def _parsed(size: int, parse: Callable[[], Parsed]) -> Parsed:
    """Parse a text of this many bytes or characters: a long one in a thread, so that others are answered meanwhile."""
    if size <= limits.PARSED_AT_ONCE:
        return parse()
    return await asyncio.get_running_loop().run_in_executor(_PARSER, parse)


async def body_of(request: Request, kind: type[Body]) -> Body:
    """Return the validated body of a request.

    Raises:
        Problem: 400, with the first thing that is wrong.
    """
    body = await request.body()
    return await _parsed(len(body), lambda: _read(body, kind))


def _read(body: bytes, kind: type[Body]) -> Body:
    kind.refuse_too_many_values(body)
    try:
        refuse_repeated_members(body)
        return kind.model_validate_json(body)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_input=False)
        if isinstance(refused := first.get("ctx", {}).get("error"), BadInput):  # its message names the field
            raise refused from None
        raise Problem(400, "bad-input", _describe(error, kind)) from None


def refuse_repeated_members(body: bytes) -> None:
    """Raise Problem if an object has a member twice: the last one would be taken, such as another filter."""
    if (repeated := repeated_member(body)) is not None:
        raise Problem(400, "bad-input", f"the member {repeated!r} is given twice: give it once")


def repeated_member(text: str | bytes) -> str | None:
    """Return the name of a member that an object in a JSON text has twice; None without one, or if it is not JSON."""
    repeated: dict[str, None] = {}
    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=noting(repeated))
        return next((name[:80] for name in repeated), None)
    return None


def parameter(request: Request, name: str) -> str:
    """Return a parameter of a request's query string.

    Raises:
        Problem: 400, it is missing, empty or given twice.
    """
    if (value := optional_parameter(request, name)) is None:
        raise Problem(400, "bad-input", f"give one ?{name}=")
    return value


def optional_parameter(request: Request, name: str) -> str | None:
    """Return a parameter of a request's query string; None if it is missing.

    Raises:
        Problem: 400, it is empty or given twice.
    """
    values = request.query_params.getlist(name)
    if len(values) > 1 or values == [""]:
        raise Problem(400, "bad-input", f"give one ?{name}=")
    return values[0] if values else None


def refuse_unknown_parameters(request: Request, names: Collection[str]) -> None:
    """Raise Problem (400) if the query string has another parameter: without its misspelt filter, a list is of all."""
    for name in request.query_params:
        if name not in names:
            known = " or ".join(f"?{one}=" for one in names) or "none"
            raise Problem(400, "bad-input", f"there is no parameter {name[:100]!r} here, but {known}")


def _describe(error: ValidationError, kind: type[_Body]) -> str:
    """Return the place and the kind of the first mistake in a body. The value itself is not repeated."""
    every = error.errors(include_url=False, include_input=False)
    # Of the forms that a member may have, the form that fits but for its length says more than the first.
    first = next((one for one in every if one["type"] == "too_long"), every[0])
    place = ".".join(part for part in map(str, first["loc"]) if not part.endswith("]"))  # without list[str], a type
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "too_long":
        sizes = first["ctx"]
        message = f"has {sizes['actual_length']:,} items, and {sizes['max_length']:,} is the limit: send fewer"
    if first["type"] == "extra_forbidden":
        message = "there is no member of this name"
        meant = get_close_matches("where" if place == "filter" else place, kind.model_fields, cutoff=0.75)
        message += f"; near: {', '.join(meant)}" if meant else ""
    return f"{place}: {message}" if place else f"the body: {message}"
