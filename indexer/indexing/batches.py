"""Preparing documents for an index: validating them, comparing them with what is stored, and making batches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.recipe import Recipe
from indexer.errors import BadInput, RecipeMismatch
from indexer.exchange import Embedded
from indexer.ledger import Code, Reason
from indexer.records import OPTIONAL, Document, Section, Span, Vector, broken_at
from indexer.settings import Meaning
from indexer.stores.fields.flatten import scalars
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.port import EmbeddedDocument, Hashes
from indexer.stores.vectors import stored_rows, unit_rows

if TYPE_CHECKING:
    from indexer.sources.entry import Entry

Incoming = tuple[Document, Embedded | None]
"""A document, with its passages and vectors if it brings its own."""

Vectors = NDArray[np.floating] | Sequence[NDArray[np.floating]]
"""One row per document (n, dimensions), or for each document the rows of its passages (passages, dimensions)."""

Spans = Sequence[Sequence[tuple[int, int]]]
"""For each document the (start, end) of its passages, in code points of its text."""


_NAMED_URIS = 5


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that differs from what is stored, and what to do with it.

    Attributes:
        action: "embed" it; "keep" the passages and vectors that it brings; or "rewrite" only its row, because its
            passages have not changed.
        embedded: passages and vectors that it brings; None unless the action is "keep".
    """

    document: Document
    hashes: Hashes
    action: Literal["embed", "keep", "rewrite"]
    embedded: Embedded | None = None


def done(embedded: list[Embedded]) -> Future[list[Embedded]]:
    """Return the result of an embedding that has ended."""
    future = Future[list[Embedded]]()
    future.set_result(embedded)
    return future


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch that was compared with the index, and whose embedding is under way.

    Attributes:
        batch: the documents as they came.
        changed, unchanged: the result of `diff`.
        compared_with: hashes of the documents in the index at the time of comparison, by uri.
        notes: facts that the caller should know. The encoder adds its notes before the embedding ends.
        embedding: the passages of the documents to embed, in their order.
        is_elsewhere: whether workers embed them, whose results must be checked.
    """

    batch: Sequence[Incoming]
    changed: Sequence[ChangedDocument]
    unchanged: tuple[str, ...]
    compared_with: Mapping[str, Hashes]
    notes: Sequence[str]
    embedding: Future[list[Embedded]] = field(default_factory=lambda: done([]))
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """Documents compared with the index and embedded, ready to be committed.

    Attributes:
        work: new and changed documents; without spans if only the row is written.
        unchanged: uris of documents that are the same as stored.
        empty: uris of documents whose text has no token that the model reads.
        compared_with: hashes of the documents in the index at the time of comparison, by uri.
        notes: facts from the encoder that the caller should know.
        failed: why a document could not be embedded, by uri.
    """

    work: tuple[EmbeddedDocument, ...]
    unchanged: tuple[str, ...]
    empty: tuple[str, ...]
    compared_with: Mapping[str, Hashes]
    notes: tuple[str, ...] = ()
    failed: Mapping[str, Reason] = field(default_factory=dict)

    def states(self) -> dict[str, Literal["indexed", "updated", "unchanged", "skipped", "failed"]]:
        """Return the state of each uri for the ledger, once this is committed."""
        return {
            **{item.document.uri: "updated" if item.spans is None else "indexed" for item in self.work},
            **dict.fromkeys(self.unchanged, "unchanged"),
            **dict.fromkeys(self.empty, "skipped"),
            **dict.fromkeys(self.failed, "failed"),
        }


def read_documents(
    documents: Iterable[Document] | Document, vectors: Vectors | None, spans: Spans | None, dimensions: int
) -> tuple[list[Incoming], tuple[str, ...]]:
    """Return the arguments of `Index.add` as valid documents, and notes on them.

    Without vectors, the last document of a uri is kept, and a note names the uris that occur more than once.

    Raises:
        BadInput: as `with_own_vectors` does, or there are spans without vectors.
    """
    if vectors is not None:
        return with_own_vectors(documents, vectors, spans, dimensions), ()
    if spans is not None:
        raise BadInput("spans were given without vectors: give both, or neither to have documents cut by the model")
    listed = listed_documents(documents)
    incoming: list[Incoming] = [(document, None) for document in {each.uri: each for each in listed}.values()]
    if not (uris := _repeated(listed)):
        return incoming, ()
    more = f" and {len(uris) - _NAMED_URIS:,} more" if len(uris) > _NAMED_URIS else ""
    named = ", ".join(repr(uri) for uri in uris[:_NAMED_URIS])
    note = f"these uris came more than once in one call, and the last document of each was kept: {named}{more}"
    return incoming, (note,)


def _repeated(documents: Sequence[Document]) -> list[str]:
    """Return the uris that occur more than once."""
    return [uri for uri, count in Counter(document.uri for document in documents).items() if count > 1]


def with_own_vectors(
    documents: Iterable[Document] | Document, vectors: Vectors, spans: Spans | None, dimensions: int
) -> list[Incoming]:
    """Return valid documents with the vectors they bring.

    Args:
        vectors: one row per document, which becomes one passage; with `spans`, an array of rows per document.
        spans: the passages of each document, in the order of its rows.
        dimensions: width of a vector; 0 for the width of the first vector.

    Raises:
        BadInput: a document that cannot be stored, a uri that comes twice, or vectors or spans that do not fit.
    """
    listed = _distinct(documents, empty=True)
    if spans is None:
        rows = unit_rows(vectors, dimensions, [document.uri for document in listed])
        return [(document, _as_one_passage(document, row)) for document, row in zip(listed, rows, strict=True)]
    for name, value in (("vectors", vectors), ("spans", spans)):
        if not isinstance(value, Sequence | np.ndarray) or len(value) != len(listed):
            raise BadInput(
                f"{name} must have one item per document when spans are given: {len(listed)} documents, but "
                + (f"{len(value)} {name}" if isinstance(value, Sequence | np.ndarray) else type(value).__name__)
            )
    incoming: list[Incoming] = []
    for document, places, array in zip(listed, spans, vectors, strict=True):
        passages = _passages(document, places)
        names = [f"{document.uri}, passage {number}" for number in range(len(passages))]
        rows = unit_rows(array, dimensions, names)
        dimensions = rows.shape[1]
        incoming.append((document, Embedded(passages, rows)))
    return incoming


def with_embedded(
    documents: Iterable[Document] | Document, embedded: Sequence[Embedded], recipe: Recipe | None, dimensions: int
) -> list[Incoming]:
    """Return valid documents with the passages and vectors that an `Embedder` of the index's recipe made of them.

    Raises:
        BadInput: a document that cannot be stored, a uri that comes twice, or passages that do not fit.
        RecipeMismatch: the vectors were made by another recipe.
    """
    listed = _distinct(documents)
    if not isinstance(embedded, Sequence) or len(embedded) != len(listed):
        raise BadInput(f"embedded must have one item per document, {len(listed)} in all")
    return [
        (document, require_embedded(document, item, recipe, dimensions))
        for document, item in zip(listed, embedded, strict=True)
    ]


def require_embedded(document: Document, embedded: Embedded, recipe: Recipe | None, dimensions: int) -> Embedded:
    """Return the passages and vectors of a document, which may have been made on another machine.

    Raises:
        BadInput: they are not passages of this text with one vector each.
        RecipeMismatch: the vectors were made by another recipe.
    """
    if not isinstance(embedded, Embedded):
        raise BadInput(f"{document.uri}: {embedded!r:.80} is not what Embedder.embed returns")
    if recipe is None or embedded.recipe != recipe.identity:
        raise _recipe_error(document, "embed with Embedder(index.recipe, index.passage_settings)")
    if not embedded.spans:
        return embedded
    inside = (isinstance(span, Span) and 0 <= span.start < span.end <= len(document.text) for span in embedded.spans)
    if not all(inside):
        raise BadInput(f"{document.uri}: its passages are not Spans within its {len(document.text)} characters")
    rows = unit_rows(embedded.vectors, dimensions, [document.uri] * len(embedded.spans))
    # Dividing a unit row by its length again can change its last bit, and then its stored form.
    own = np.asarray(embedded.vectors)
    return replace(embedded, vectors=own if np.abs(rows - own).max() < 1e-6 else rows)


def vectors_of_record(
    record: Entry, recipe: Recipe | None, dimensions: int, recipe_advice: str, width_advice: str
) -> Embedded | None:
    """Return the passages and unit vectors that a record brings; None if it brings none.

    Args:
        record: a record with a document. It may have the vector of its whole text, or the passages of an export.
        recipe: the recipe of the index.
        dimensions: width of a vector; 0 for the width of the record's vectors.
        recipe_advice, width_advice: what to do about passages of another recipe, and about a vector of another width
            than those of the model.

    Raises:
        BadInput: a vector that cannot be stored.
        RecipeMismatch: the passages were embedded by another recipe.
    """
    document, vector, embedded = record.document, record.vector, record.embedded
    assert document is not None
    if embedded is not None:
        if embedded.recipe != (recipe.identity if recipe else ""):
            raise _recipe_error(document, recipe_advice)
        names = [document.uri] * len(embedded.spans)
        return replace(embedded, vectors=stored_rows(embedded.vectors, dimensions, names))
    if vector is None:
        return None
    if dimensions and len(vector) != dimensions:
        advice = f"; {width_advice}" if recipe is not None else ""
        raise BadInput(f"its vector has {len(vector)} dimensions and the index {dimensions}{advice}")
    return _as_one_passage(document, unit_rows(np.array([vector], np.float32), dimensions, [document.uri])[0])


def _as_one_passage(document: Document, row: Vector) -> Embedded:
    """Return the whole text of a document as its only passage."""
    return Embedded((Span(0, len(document.text)),), row[None, :])


def _recipe_error(document: Document, advice: str) -> RecipeMismatch:
    return RecipeMismatch(f"{document.uri}: its vectors were made by another recipe than the index's: {advice}")


def _distinct(documents: Iterable[Document] | Document, *, empty: bool = False) -> list[Document]:
    """Return valid documents of distinct uris; `empty` allows documents without text."""
    listed = listed_documents(documents, empty=empty)
    for uri in _repeated(listed):
        raise BadInput(f"{uri}: comes twice in one call, with two vectors: give each uri once")
    return listed


def listed_documents(documents: Iterable[Document] | Document, *, empty: bool = False) -> list[Document]:
    """Return valid documents; `empty` allows documents without text."""
    if not isinstance(documents, Document | Iterable):
        raise BadInput(f"the documents are not a list but {type(documents).__name__}")
    listed = [documents] if isinstance(documents, Document) else list(documents)
    for document in listed:
        validate(document, empty=empty)
    return listed


def _passages(document: Document, places: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    """Return the passages of a document at these offsets, with the heading and page of the section they begin in."""
    if not isinstance(places, Sequence | np.ndarray) or not len(places):
        raise BadInput(f"{document.uri}: has no passages: give at least one (start, end) per document")
    passages = []
    for place in places:
        is_pair = isinstance(place, Sequence) and len(place) == 2 and all(isinstance(one, Integral) for one in place)
        if not is_pair or not 0 <= place[0] < place[1] <= len(document.text):
            length = len(document.text)
            raise BadInput(f"{document.uri}: {place!r:.80} is not a (start, end) within its {length} characters")
        start, end = int(place[0]), int(place[1])
        section = next((section for section in reversed(document.sections) if section.start <= start), Section(0))
        passages.append(Span(start, end, heading=section.heading, page=section.page))
    return tuple(passages)


def diff(
    incoming: Sequence[Incoming], stored: Mapping[str, Hashes], meaning: Meaning
) -> tuple[list[ChangedDocument], tuple[str, ...]]:
    """Compare documents with what is stored: return the changed documents, and the uris of the unchanged.

    Args:
        stored: hashes of the documents that the index has, by uri.
        meaning: everything that the vectors depend on, except the document itself.
    """
    changed: list[ChangedDocument] = []
    unchanged: list[str] = []
    for document, embedded in incoming:
        hashes = Hashes(content_hash(document, meaning, _vector_content(document, embedded)), row_hash(document))
        before = stored.get(document.uri)
        same_content = before is not None and before.content == hashes.content
        if before == hashes:
            unchanged.append(document.uri)
        elif same_content:
            changed.append(ChangedDocument(document, hashes, "rewrite"))
        elif embedded is not None:
            changed.append(ChangedDocument(document, hashes, "keep", embedded))
        else:
            changed.append(ChangedDocument(document, hashes, "embed"))
    return changed, tuple(unchanged)


def _vector_content(document: Document, embedded: Embedded | None) -> bytes:
    """Return the bytes that the user's own vectors add to the content hash.

    These are the vectors and, unless the only passage is the whole text, the offsets of the passages.
    """
    if embedded is None or embedded.recipe:
        return b""
    rows = embedded.vectors.astype("<f2").tobytes()
    if len(embedded.spans) == 1 and (embedded.spans[0].start, embedded.spans[0].end) == (0, len(document.text)):
        return rows
    return rows + np.array([(span.start, span.end) for span in embedded.spans], "<i8").tobytes()


def finish(pending: Pending, recipe: Recipe | None, dimensions: int) -> Prepared:
    """Wait until the documents of a batch are embedded, for an index of this recipe. Errors are those of embedding.

    Raises:
        BadInput, RecipeMismatch: what workers returned cannot be stored.
    """
    results = pending.embedding.result()
    if pending.is_elsewhere:
        documents = [item.document for item in pending.changed if item.action == "embed"]
        if len(results) != len(documents):
            raise BadInput(f"the workers returned {len(results)} results for {len(documents)} documents")
        pairs = zip(documents, results, strict=True)
        results = [require_embedded(document, item, recipe, dimensions) for document, item in pairs]
    passages = iter(results)
    work: list[EmbeddedDocument] = []
    empty: list[str] = []
    failed: dict[str, Reason] = {}
    for item in pending.changed:
        if item.action == "rewrite":
            work.append(EmbeddedDocument(item.document, item.hashes))
            continue
        embedded = item.embedded or next(passages)
        if embedded.spans:
            work.append(EmbeddedDocument(item.document, item.hashes, embedded.spans, embedded.vectors))
        elif embedded.failure:
            failed[item.document.uri] = Code.ENDS_WORKERS(embedded.failure)
        elif embedded.too_long:
            failed[item.document.uri] = Code.TOO_LONG(f"{embedded.too_long:,}")
        else:
            empty.append(item.document.uri)
    notes = tuple(dict.fromkeys(pending.notes))
    return Prepared(tuple(work), pending.unchanged, tuple(empty), pending.compared_with, notes, failed)


def refuse_unembedded(prepared: Prepared, *, empty: bool = False) -> None:
    """Raise BadInput if a document could not be embedded; `empty` allows documents without text that the model
    reads."""
    for uri, reason in prepared.failed.items():
        raise BadInput(f"{uri}: {reason.text()}")
    if prepared.empty and not empty:
        raise BadInput(f"{prepared.empty[0]}: has no text that the model can read")


T = TypeVar("T")


def windowed(submitted: Iterable[T], window: int) -> Iterator[T]:
    """Yield items in their order, each after up to `window` later items were made, or all of them."""
    waiting: deque[T] = deque()
    for item in submitted:
        waiting.append(item)
        if len(waiting) > window:
            yield waiting.popleft()
    yield from waiting


def batches(documents: Iterable[Incoming], batch_characters: Callable[[], int]) -> Iterator[list[Incoming]]:
    """Yield documents in batches that reach a number of characters, which `batch_characters` returns each time."""
    batch: list[Incoming] = []
    characters = 0
    for item in documents:
        batch.append(item)
        characters += len(item[0].text) + 256
        if characters >= batch_characters():
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def validate(document: Document, *, empty: bool = False) -> None:
    """Raise BadInput for a document that cannot be stored without loss; `empty` allows it to have no text."""
    if not isinstance(document, Document):
        raise BadInput(f"{document!r:.80} is not a Document: give likewise a list of Document(uri, text, ...)")
    if not isinstance(document.uri, str) or not document.uri:
        raise BadInput(f"a document needs a uri that is a non-empty string, not {document.uri!r}")
    for name in ("uri", "title", "text", *OPTIONAL):
        value = getattr(document, name)
        if value is None and name in OPTIONAL:
            continue
        if not isinstance(value, str):
            raise BadInput(f"{document.uri}: its {name} is not a string but {type(value).__name__}")
        if "\0" in value:
            raise BadInput(f"{document.uri}: its {name} holds a NUL character at {value.index(chr(0))}")
        if (broken := broken_at(value)) is not None:
            raise BadInput(f"{document.uri!r}: its {name} is not valid Unicode at character {broken}")
    if not empty and not document.text.strip():
        raise BadInput(f"{document.uri}: has no text, so no search could find it: leave it out")
    if not isinstance(document.sections, Sequence):
        raise BadInput(f"{document.uri}: its sections are not a sequence but {type(document.sections).__name__}")
    for section in document.sections:
        wrong = not isinstance(section, Section) or not isinstance(section.heading, str)
        if wrong or not all(type(number) is int for number in (section.start, section.page or 0)):
            raise BadInput(f"{document.uri}: its section {section!r:.80} is not a Section(start, heading, page)")
    if not isinstance(document.metadata, Mapping):
        raise BadInput(f"{document.uri}: its metadata is not a mapping but {type(document.metadata).__name__}")
    scalars(document.uri, document.metadata)
