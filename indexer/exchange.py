"""Documents as JSON records: `likewise export` writes them and `likewise index INDEX -` reads them.

The member "likewise" is the version of the form. A record may contain its passages with their vectors and the recipe
that made them; then nothing is embedded again. docs/format.md has an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from indexer.records import OPTIONAL, Document, Section, Span, Vector

FORM = 1


@dataclass(frozen=True, slots=True)
class Embedded:
    """Passages that come with their vectors.

    Attributes:
        vectors: (passages, dimensions).
        recipe: identity of the recipe that made them; empty for the user's own vectors.
        failure: how the workers ended that tried to embed it; there are no passages then. Empty for others.
        too_long: characters of a passage that the model finds too long; there are no passages then. 0 for others.
    """

    spans: tuple[Span, ...]
    vectors: Vector
    recipe: str = ""
    failure: str = ""
    too_long: int = 0


def to_record(document: Document, embedded: Embedded | None) -> dict[str, Any]:
    """Return a JSON object. Numbers of vectors have five digits, which is enough to restore every float16."""
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
    """Return the document and its passages from what `to_record` has returned.

    Raises:
        ValueError: the record does not have this form. The error names the wrong member.
    """
    try:
        if record["likewise"] != FORM:
            raise ValueError(f"has form {record['likewise']!r} and this likewise reads form {FORM}: upgrade likewise")
        sections = tuple(_check_types(Section(*section)) for section in record.get("sections", ()))
        if not isinstance(record["id"], str):
            raise TypeError("its id is not a string")
        optional = {name: record.get(name) for name in OPTIONAL}
        title, metadata = record.get("title", ""), record.get("metadata", {})
        document = Document(record["id"], record["text"], title, metadata, **optional, sections=sections)
        if "passages" not in record:
            return document, None
        passages = [dict(passage) for passage in record["passages"]]
        vectors = np.array([passage.pop("vector") for passage in passages], np.float32)
        spans = tuple(_check_types(Span(**passage)) for passage in passages)
        if vectors.ndim != 2 or any(not 0 <= span.start <= span.end <= len(document.text) for span in spans):
            raise ValueError("its passages do not fit its text, or have no vectors of one length")
        return document, Embedded(spans, vectors, record.get("recipe", ""))
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"is not a record of likewise export: {error}") from error


_Part = TypeVar("_Part", Section, Span)


def _check_types(part: _Part) -> _Part:
    """Return the section or passage. Raises TypeError if a member has another type than the store's column."""
    for name, value in asdict(part).items():
        types = {"heading": (str,), "prefix": (str,), "page": (int, type(None))}.get(name, (int,))
        too_large = isinstance(value, int) and not -(2**63) <= value < 2**63  # SQLite has 64-bit integers
        if not isinstance(value, types) or isinstance(value, bool) or too_large:
            raise TypeError(f"{name} is {value!r}")
    return part
