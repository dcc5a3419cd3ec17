"""Documents as JSON records that leave one index and enter another: `likewise export` writes what `index -` reads.

A record names its form with the member "likewise". With vectors it carries its passages, each with its own vector,
and says by which recipe they were made: then nothing is embedded again. docs/format.md shows one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from indexer.records import Document, Section, Span, Vector

FORM = 1


@dataclass(frozen=True, slots=True)
class Embedded:
    """Passages that come with their vectors.

    Attributes:
        vectors: (passages, dimensions).
        recipe: identity of the recipe they were made by; empty for vectors of the user's own.
    """

    spans: tuple[Span, ...]
    vectors: Vector
    recipe: str = ""


def to_record(document: Document, embedded: Embedded | None) -> dict[str, Any]:
    """A JSON object; vectors have the five digits that tell every float16 from its neighbours."""
    record: dict[str, Any] = {
        "likewise": FORM,
        "id": document.uri,
        **{name: value for name, value in asdict(document).items() if name not in ("uri", "sections")},
        "sections": [[section.start, section.heading, section.page] for section in document.sections],
    }
    if embedded is not None:
        record["recipe"] = embedded.recipe
        record["passages"] = [
            {
                **{name: value for name, value in asdict(span).items() if name != "prefix"},
                "vector": [float(f"{value:.5g}") for value in row],
            }
            for span, row in zip(embedded.spans, embedded.vectors.tolist(), strict=True)
        ]
    return record


def from_record(record: Mapping[str, Any]) -> tuple[Document, Embedded | None]:
    """What `to_record` was given.

    Raises:
        ValueError: the record is not of this form; says which member is wrong.
    """
    try:
        if record["likewise"] != FORM:
            raise ValueError(f"has form {record['likewise']!r} and this likewise reads form {FORM}: upgrade likewise")
        sections = tuple(_typed(Section(*section)) for section in record.get("sections", ()))
        if not isinstance(record["id"], str):
            raise TypeError("its id is no text")
        named = {name: record.get(name) for name in ("path", "format", "modified")}
        title, metadata = record.get("title", ""), record.get("metadata", {})
        document = Document(record["id"], record["text"], title, metadata, **named, sections=sections)
        if "passages" not in record:
            return document, None
        passages = [dict(passage) for passage in record["passages"]]
        vectors = np.array([passage.pop("vector") for passage in passages], np.float32)
        spans = tuple(_typed(Span(**passage)) for passage in passages)
        if vectors.ndim != 2 or any(not 0 <= s.start <= s.end <= len(document.text) for s in spans):
            raise ValueError("its passages do not fit its text, or have no vectors of one length")
        return document, Embedded(spans, vectors, record.get("recipe", ""))
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"is no record of likewise export: {error}") from error


_Place = TypeVar("_Place", Section, Span)


def _typed(place: _Place) -> _Place:
    """The section or passage; TypeError where a member is of another type than it is stored as."""
    for name, value in asdict(place).items():
        wanted = {"heading": (str,), "prefix": (str,), "page": (int, type(None))}.get(name, (int,))
        outside = isinstance(value, int) and not -(2**63) <= value < 2**63  # what SQLite holds
        if not isinstance(value, wanted) or isinstance(value, bool) or outside:
            raise TypeError(f"{name} is {value!r}")
    return place
