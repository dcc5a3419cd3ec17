"""Documents and passages as every engine stores them: the statements that read them, and whether a row is sound."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged, Message
from indexer.filters.tree import Where
from indexer.records import Document, Section, Span, Vector
from indexer.settings import Meaning
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.port import Hashes, Ids, Passage
from indexer.stores.reading.view import Rows, View
from indexer.stores.vectors import checksum, to_float32

_BATCH_ROWS = 2000

_PAGE_DOCUMENTS = 32
"""Documents that a snapshot reads at once: its reader may stop after any of them."""

MEMBERS = tuple(field.name for field in fields(Document) if field.name not in ("uri", "text", "sections"))
"""The members of a document that are columns of the same name. A `Passage` has them too."""

_MEMBERS = ", ".join(f"d.{name}" for name in MEMBERS)

_DOCUMENTS = (
    f"SELECT d.id, d.uri, d.tokens, d.content_hash, d.row_hash, {_MEMBERS}"
    ", {t}.text, {t}.sections, {t}.raw FROM {tables}.document d{texts}"
)

_PLACE = ("id", "document_id", "start", "end", "line", "heading", "page")
"""The members of a passage that do not belong to its document, in the order in which they are read."""

_PASSAGES = (
    "SELECT p.id, p.document_id, p.start, p.stop, p.line, p.heading, p.page, p.checksum, p.vector, d.uri, d.row_hash,"
    " substr({t}.text, p.start + 1, p.stop - p.start), {t}.raw, "
    + _MEMBERS
    + " FROM {tables}.passage p JOIN {tables}.document d ON d.id = p.document_id{texts} WHERE p.id = ANY(%s)"
)

WRONG_TYPES = (AttributeError, TypeError, ValueError)
"""The errors of hashing or parsing a value of another type than its column has: SQLite stores any type anywhere."""


class DocumentRow(NamedTuple):
    """A document as it is stored, with its recorded hashes; `document` is None if the row cannot be read."""

    id: int
    uri: str
    tokens: int
    content_hash: bytes
    row_hash: bytes
    document: Document | None

    def is_sound(self, meaning: Meaning | None) -> bool:
        """Return whether the row matches its hash and, if it was embedded with this meaning, title and text match
        theirs."""
        document = self.document
        try:
            if document is None or row_hash(document) != self.row_hash:
                return False
            return not (meaning and self.tokens) or content_hash(document, meaning) == self.content_hash
        except WRONG_TYPES:
            return False


def member_values(document: Document, encode: Callable[[Any], str]) -> list[Any]:
    """Return the values of MEMBERS as they are stored; `encode` writes metadata as JSON."""
    return [encode(value) if name == "metadata" else value for name in MEMBERS for value in (getattr(document, name),)]


def damage_of(uri: str) -> IndexDamaged:
    """Return the error that names a damaged document."""
    return IndexDamaged(
        Message(
            f"{uri}: its stored row, text or vector is damaged: repair the index, then index the source of this "
            "document again, or remove the document",
            " (likewise check --repair, likewise index without --rebuild, likewise remove)",
        )
    )


def documents_after(view: Rows, after: int, count: int, ids: Ids | None = None) -> list[tuple[int, Document]]:
    """Return the next `count` documents after an id, with their ids.

    There are fewer if the next one is damaged: the call that begins with it raises IndexDamaged.

    Args:
        ids: only these documents (n,), ascending; documents that were removed since are left out. None for all.
    """
    if ids is None:
        rows = view.rows(f"{_DOCUMENTS} WHERE d.id > %s ORDER BY d.id LIMIT %s", after, count)
    else:
        rest, rows = ids[np.searchsorted(ids, after, "right") :], []
        while len(rest) and not rows:
            rows = view.rows_of(f"{_DOCUMENTS} WHERE d.id = ANY(%s) ORDER BY d.id", rest[:count].tolist())
            rest = rest[count:]
    documents: list[tuple[int, Document]] = []
    try:
        documents.extend(_sound(view, rows))
    except IndexDamaged:
        if not documents:
            raise
    return documents


def unsound_documents(view: Rows, meaning: Meaning | None) -> Iterator[str]:
    """Yield the uris of documents whose row does not match its hash; of embedded ones also title and text."""
    rows = map(_row, view.stream(f"{_DOCUMENTS} ORDER BY d.id"))
    return (row.uri for row in rows if not row.is_sound(meaning))


def _row(row: Sequence[Any]) -> DocumentRow:
    id_, uri, tokens, content, recorded, *members, text, sections, raw = row
    document = None
    with suppress(TypeError, ValueError):
        marks = tuple(Section(*mark) for mark in json.loads(sections))
        text = text if raw is None else raw.decode()
        document = Document(uri=uri, text=text, sections=marks, **_members(members))
    return DocumentRow(id_, uri, tokens, content, recorded, document)


def _members(values: Sequence[Any]) -> dict[str, Any]:
    members = dict(zip(MEMBERS, values, strict=True))
    members["metadata"] = json.loads(members["metadata"])
    return members


def _sound(view: Rows, selected: Sequence[Any]) -> Iterator[tuple[int, Document]]:
    """Yield documents with their ids.

    Raises:
        IndexDamaged: a row does not match its hash, or a passage its checksum.
    """
    rows = [_row(row) for row in selected]
    passages: dict[int, list[Any]] = {row.id: [] for row in rows}
    of_documents = "SELECT document_id, start, stop, checksum, vector FROM {tables}.passage WHERE document_id = ANY(%s)"
    for document_id, *passage in view.rows_of(of_documents, list(passages)):
        passages[document_id].append(passage)
    for row in rows:
        document = row.document
        if document is None:
            raise damage_of(row.uri)
        try:
            sound = row_hash(document) == row.row_hash and all(
                checksum(document.text[start:stop], view.blob_of(vector)) == recorded
                for start, stop, recorded, vector in passages[row.id]
            )
        except WRONG_TYPES as error:
            raise damage_of(row.uri) from error
        if not sound:
            raise damage_of(row.uri)
        yield row.id, document


def vectors_by_id(view: Rows, ids: Ids) -> Vector:
    """Return the stored vectors of passages (n, dimensions), in the order of their ids (n,).

    Raises:
        IndexDamaged: there is no passage of an id.
    """
    stored = dict(view.rows_of("SELECT id, vector FROM {tables}.passage WHERE id = ANY(%s)", ids.tolist()))
    if len(stored) < len(set(ids.tolist())):
        raise view.damage("a passage has lost its vector")
    return to_float32(view.halves([stored[id_] for id_ in ids.tolist()]))


def spans_and_vectors(view: Rows, document_id: int) -> tuple[tuple[Span, ...], Vector]:
    """Return the passages of a document and their vectors (passages, dimensions).

    The first passage has the tokens of the whole document, the others have none: they are not stored per passage.
    """
    rows = view.rows(
        "SELECT p.start, p.stop, p.heading, p.page, p.vector, d.tokens FROM {tables}.passage p"
        " JOIN {tables}.document d ON d.id = p.document_id WHERE p.document_id = %s ORDER BY p.id",
        document_id,
    )
    spans = tuple(
        Span(start, stop, tokens=0 if number else tokens, heading=heading, page=page)
        for number, (start, stop, heading, page, _, tokens) in enumerate(rows)
    )
    return spans, to_float32(view.halves([row[4] for row in rows]))


def stored_rows(view: Rows) -> tuple[Ids, Ids, NDArray[np.float16]]:
    """Return id (n,), document (n,) and vector as stored (n, dimensions) of every passage, by id."""
    ids, owners, vectors = list[int](), list[int](), bytearray()
    passages = view.stream("SELECT id, document_id, vector FROM {tables}.passage ORDER BY id")
    width = view.halves([]).shape[1]
    while batch := list(islice(passages, _BATCH_ROWS)):
        ids += [row[0] for row in batch]
        owners += [row[1] for row in batch]
        vectors += view.halves([row[2] for row in batch]).tobytes()
    return np.array(ids, np.int64), np.array(owners, np.int64), np.frombuffer(vectors, np.float16).reshape(-1, width)


class DocumentReader:
    """The part of a snapshot that reads documents, passages and vectors."""

    _view: View

    def hashes(self, uris: Iterable[str] | None = None) -> dict[str, Hashes]:
        """Return the hashes of the given uris; unknown uris are omitted. Without uris, return all hashes."""
        select = "SELECT uri, content_hash, row_hash FROM {tables}.document"
        if uris is None:
            rows = self._view.rows(f"{select} ORDER BY id")
        else:
            rows = self._view.rows_of(f"{select} WHERE {{key}} = ANY(%s)", [self._view.key_of(uri) for uri in uris])
        return {uri: Hashes(content, row) for uri, content, row in rows}

    def origins(self, uris: Iterable[str]) -> dict[str, bytes]:
        """Return `EmbeddedDocument.origin` of the given documents. Documents whose content has changed since are
        omitted."""
        return dict(
            self._view.rows_of(
                "SELECT d.uri, o.origin FROM {tables}.origin o JOIN {tables}.document d ON d.id = o.document_id"
                " WHERE d.{key} = ANY(%s) AND o.content_hash = d.content_hash",
                [self._view.key_of(uri) for uri in uris],
            )
        )

    def get(self, uri: str) -> Document | None:
        """Return a document; None for an unknown uri."""
        rows = self._view.rows(f"{_DOCUMENTS} WHERE d.{{key}} = %s", self._view.key_of(uri))
        return next((document for _, document in _sound(self._view, rows)), None)

    def documents_after(self, after: int, where: Where | None = None) -> Iterator[tuple[int, Document]]:
        """Yield the documents that a filter leaves with their ids, in the order they were added.

        Args:
            after: an id: only documents with a larger one. 0 for all.
            where: a filter; None for all documents.
        """
        ids = None if where is None else self._view.select(where).ids()
        while page := documents_after(self._view, after, _PAGE_DOCUMENTS, ids):
            yield from page
            after = page[-1][0]

    def passages_by_id(self, ids: Sequence[int]) -> list[Passage]:
        """Return passages in the order of their ids given here, after verifying their checksums.

        Raises:
            IndexDamaged: a passage does not match its checksum, there is no passage with an id, or the passages were
                ranked by other vectors.
        """
        by_id: dict[int, Passage] = {}
        stored: dict[int, Any] = {}
        for row in self._view.rows_of(_PASSAGES, ids):
            recorded, vector, uri, recorded_row, text, raw, *members = row[len(_PLACE) :]
            try:
                place = dict(zip(_PLACE, row, strict=False))
                text = text if raw is None else raw.decode()[place["start"] : place["end"]]
                passage = Passage(uri=uri, text=text, **place, **_members(members))
                if checksum(text, self._view.blob_of(vector)) != recorded or row_hash(passage) != recorded_row:
                    raise damage_of(uri)
            except WRONG_TYPES as error:
                raise damage_of(uri) from error
            by_id[passage.id], stored[passage.id] = passage, vector
        if len(by_id) < len(set(ids)):
            raise self._view.damage("a passage has lost its document")
        self._view.require_ranked_by(np.fromiter(stored, np.int64), list(stored.values()))
        return [by_id[id_] for id_ in ids]

    def passages_of(self, uri: str) -> list[Passage] | None:
        """Return a document's passages in the order of `vectors_of`; None for an unknown uri.

        Raises:
            IndexDamaged: a passage does not match its checksum.
        """
        ids = self._of_passages("id", uri)
        return None if ids is None else self.passages_by_id(ids)

    def vectors_of(self, uri: str) -> Vector | None:
        """Return the stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""
        vectors = self._of_passages("vector", uri)
        return None if vectors is None else to_float32(self._view.halves(vectors))

    def _of_passages(self, column: str, uri: str) -> list[Any] | None:
        """Return a column of the passages of a document, in their order; None for an unknown uri."""
        rows = self._view.rows(
            f"SELECT p.{column} FROM {{tables}}.document d LEFT JOIN {{tables}}.passage p ON p.document_id = d.id"
            " WHERE d.{key} = %s ORDER BY p.id",
            self._view.key_of(uri),
        )
        return [value for (value,) in rows if value is not None] if rows else None
