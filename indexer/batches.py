"""Documents on their way into an index: refused where they cannot be stored, put in batches, and embedded or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput
from indexer.exchange import Embedded
from indexer.records import Document, Section, Span
from indexer.settings import Meaning
from indexer.stores.flatten import scalars
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.port import EmbeddedDocument, Hashes
from indexer.stores.vectors import unit_rows

Given = tuple[Document, Embedded | None]
"""A document, perhaps with vectors of its own."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Documents compared with the index and embedded, ready to be committed.

    Attributes:
        work: new and changed documents; without spans where the metadata alone changed.
        unchanged: uris that are the same as stored.
        empty: uris whose text holds no token the model reads.
        known: what it was compared with, the hashes of those that were in the index, by uri.
    """

    work: tuple[EmbeddedDocument, ...]
    unchanged: tuple[str, ...]
    empty: tuple[str, ...]
    known: Mapping[str, Hashes]

    def states(self) -> dict[str, Literal["indexed", "updated", "unchanged", "skipped"]]:
        """What the ledger says of each uri once this is committed."""
        return {
            **{item.document.uri: "updated" if item.spans is None else "indexed" for item in self.work},
            **dict.fromkeys(self.unchanged, "unchanged"),
            **dict.fromkeys(self.empty, "skipped"),
        }


def given(documents: Iterable[Document], vectors: NDArray[np.floating] | None, dimensions: int) -> list[Given]:
    """Documents with the vectors they bring, each as one passage; of one uri the last.

    Raises:
        BadInput: a document that cannot be stored, or vectors of another shape.
    """
    if not isinstance(documents, Document | Iterable):
        raise BadInput(f"the documents are no list but {type(documents).__name__}")
    documents = [documents] if isinstance(documents, Document) else list(documents)
    for document in documents:
        validate(document, empty=vectors is not None)
    if vectors is None:
        return [(document, None) for document in {document.uri: document for document in documents}.values()]
    rows = unit_rows(vectors, dimensions, [document.uri for document in documents])
    return list(
        {
            document.uri: (document, Embedded((Span(0, len(document.text)),), row[None, :]))
            for document, row in zip(documents, rows, strict=True)
        }.values()
    )


def compared(
    documents: Sequence[Given], known: Mapping[str, Hashes], meaning: Meaning
) -> tuple[list[EmbeddedDocument], tuple[str, ...]]:
    """What is new or changed, without spans where only the row is and with none where it is to be embedded; the rest.

    Args:
        known: hashes of the documents that the index has, by uri.
        meaning: what vectors depend on besides the document.
    """
    work: list[EmbeddedDocument] = []
    unchanged: list[str] = []
    for document, own in documents:
        brought = own.vectors.astype("<f2").tobytes() if own is not None and not own.recipe else b""
        now = Hashes(content_hash(document, meaning, brought), row_hash(document))
        before = known.get(document.uri)
        same_content = before is not None and before.content == now.content
        if before == now:
            unchanged.append(document.uri)
        elif same_content:
            work.append(EmbeddedDocument(document, now))
        elif own is not None:
            work.append(EmbeddedDocument(document, now, own.spans, own.vectors))
        else:
            work.append(EmbeddedDocument(document, now, ()))
    return work, tuple(unchanged)


def readable(prepared: Prepared) -> Prepared:
    """Raise BadInput where a document has nothing that the model reads."""
    if prepared.empty:
        raise BadInput(f"{prepared.empty[0]}: has no text that the model can read")
    return prepared


def batches(documents: Iterable[Given], together: Callable[[], int]) -> Iterator[list[Given]]:
    """Documents in batches of as many characters as `together` says at the time."""
    batch: list[Given] = []
    characters = 0
    for item in documents:
        batch.append(item)
        characters += len(item[0].text) + 256
        if characters >= together():
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def validate(document: Document, *, empty: bool = False) -> None:
    """Raise BadInput for a document that cannot be stored without loss; `empty` lets one have no text."""
    if not isinstance(document, Document):
        raise BadInput(f"{document!r:.80} is no Document: give likewise a list of Document(uri, text, ...)")
    if not isinstance(document.uri, str) or not document.uri:
        raise BadInput(f"a document needs a uri that is a non-empty string, not {document.uri!r}")
    optional = {"path": document.path, "format": document.format, "modified": document.modified}
    strings = {"uri": document.uri, "title": document.title, "text": document.text}
    for name, value in (strings | {name: value for name, value in optional.items() if value is not None}).items():
        if not isinstance(value, str):
            raise BadInput(f"{document.uri}: its {name} is no string but {type(value).__name__}")
        if "\0" in value:
            raise BadInput(f"{document.uri}: its {name} holds a NUL character at {value.index(chr(0))}")
        if (broken := broken_at(value)) is not None:
            raise BadInput(f"{document.uri!r}: its {name} is no valid Unicode at character {broken}")
    if not empty and not document.text.strip():
        raise BadInput(f"{document.uri}: has no text, so that nothing could find it: leave it out")
    if not isinstance(document.sections, Sequence):
        raise BadInput(f"{document.uri}: its sections are no sequence but {type(document.sections).__name__}")
    for section in document.sections:
        wrong = not isinstance(section, Section) or not isinstance(section.heading, str)
        if wrong or not all(type(at) is int for at in (section.start, section.page or 0)):
            raise BadInput(f"{document.uri}: its section {section!r:.80} is no Section(start, heading, page)")
    if not isinstance(document.metadata, Mapping):
        raise BadInput(f"{document.uri}: its metadata is no mapping but {type(document.metadata).__name__}")
    scalars(document.uri, document.metadata)


def broken_at(text: str) -> int | None:
    """Where a text holds half a character (a lone surrogate), which no catalog and no model can take."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None
