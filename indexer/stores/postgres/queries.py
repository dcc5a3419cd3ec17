"""The statements that read documents and passages inside a view."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.filters.tree import Where
from indexer.records import Document, Section, Span, Vector
from indexer.stores.document_rows import DocumentRow, damage_of, until_damage
from indexer.stores.hashes import row_hash
from indexer.stores.port import Hashes, Ids, Passage
from indexer.stores.postgres.schema import key_of
from indexer.stores.postgres.views import View
from indexer.stores.vectors import checksum, to_float32

_BATCH_ROWS = 2000


# vectors


_HEADER_BYTES = 4
"""A halfvec in binary is its width and a zero, 16 bits each, and its components, all of them big-endian."""


def halves(values: Sequence[bytes], dimensions: int) -> NDArray[np.float16]:
    """Return vectors as the server sends them as rows (n, dimensions), bit for bit.

    Raises:
        IndexDamaged: a vector has another width.
    """
    size = _HEADER_BYTES + 2 * dimensions
    if any(len(value) != size for value in values):
        raise IndexDamaged("a passage has a vector of another width; likewise check says which")
    words = np.frombuffer(b"".join(values), ">f2").reshape(len(values), size // 2)
    return words[:, _HEADER_BYTES // 2 :].astype(np.float16)


def to_binary(blobs: Sequence[bytes]) -> list[bytes]:
    """Return vectors, float16 and little-endian, as the server reads them in binary."""
    header = len(blobs[0]) // 2 if blobs else 0
    start = header.to_bytes(2, "big") + b"\0\0"
    return [start + np.frombuffer(blob, "<u2").astype(">u2").tobytes() for blob in blobs]


def rows_as_vectors(values: Sequence[bytes], dimensions: int) -> Vector:
    return to_float32(halves(values, dimensions))


def blob_of(value: bytes) -> bytes:
    """Return a vector as its checksum was made of it: float16, little-endian."""
    return np.frombuffer(value, ">u2", offset=_HEADER_BYTES).astype("<u2").tobytes()


def passages_of(view: View, documents: Ids) -> tuple[Ids, Ids, Vector]:
    """Return id (n,), document (n,) and vector (n, dimensions) of every passage of these documents, by id."""
    rows = view.rows(
        "SELECT id, document_id, vector FROM {tables}.passage WHERE document_id = ANY(%s) ORDER BY id",
        documents.tolist(),
    )
    ids = np.array([row[0] for row in rows], np.int64)
    owners = np.array([row[1] for row in rows], np.int64)
    return ids, owners, rows_as_vectors([row[2] for row in rows], view.state.settings.dimensions)


def vectors_by_id(view: View, ids: Ids) -> Vector:
    """Return the stored vectors of passages (n, dimensions), in the order of their ids (n,)."""
    found: dict[int, Any] = {}
    for start in range(0, len(ids), _BATCH_ROWS):
        batch = ids[start : start + _BATCH_ROWS].tolist()
        found.update(view.rows("SELECT id, vector FROM {tables}.passage WHERE id = ANY(%s)", batch))
    if len(found) < len(set(ids.tolist())):
        raise IndexDamaged("a passage has lost its vector; likewise check says which")
    return rows_as_vectors([found[id_] for id_ in ids.tolist()], view.state.settings.dimensions)


def live_ids(view: View) -> Ids:
    """Return the id of every passage (n,), ascending."""
    ((packed,),) = view.rows("SELECT string_agg(int8send(id), ''::bytea) FROM {tables}.passage")
    return np.sort(np.frombuffer(packed or b"", ">i8").astype(np.int64))


def stored_rows(view: View) -> tuple[Ids, Ids, NDArray[np.float16]]:
    """Return id (n,), document (n,) and vector as stored (n, dimensions) of every passage, by id."""
    dimensions = view.state.settings.dimensions
    ids, owners, rows = [], [], [np.empty((0, dimensions), np.float16)]
    passages = view.stream("SELECT id, document_id, vector FROM {tables}.passage ORDER BY id", size=_BATCH_ROWS)
    while batch := list(islice(passages, _BATCH_ROWS)):
        ids += [row[0] for row in batch]
        owners += [row[1] for row in batch]
        rows.append(halves([row[2] for row in batch], dimensions))
    return np.array(ids, np.int64), np.array(owners, np.int64), np.concatenate(rows)


def document_vectors(view: View, uri: str) -> Vector | None:
    """Return the stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""
    rows = view.rows(
        "SELECT p.vector FROM {tables}.document d LEFT JOIN {tables}.passage p ON p.document_id = d.id"
        " WHERE d.key = %s ORDER BY p.id",
        key_of(uri),
    )
    if not rows:
        return None
    return rows_as_vectors([vector for (vector,) in rows if vector is not None], view.state.settings.dimensions)


def spans_and_vectors(view: View, document_id: int) -> tuple[tuple[Span, ...], Vector]:
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
    return spans, rows_as_vectors([row[4] for row in rows], view.state.settings.dimensions)


# documents and passages


def passages(view: View, ids: Sequence[int]) -> list[Passage]:
    """Return passages by their ids, in the order asked for.

    Raises:
        IndexDamaged: the text or vector of a row does not match its checksum, or there is no passage of an id.
    """
    by_id: dict[int, Passage] = {}
    rows = view.rows(
        "SELECT p.id, p.document_id, d.uri, d.title, substr(d.text, p.start + 1, p.stop - p.start),"
        " p.start, p.stop, p.line, p.heading, p.page, d.path, d.format, d.modified, d.metadata, d.raw, d.row_hash,"
        " p.checksum, p.vector FROM {tables}.passage p JOIN {tables}.document d ON d.id = p.document_id"
        " WHERE p.id = ANY(%s)",
        list(ids),
    )
    for row in rows:
        *values, metadata, raw, recorded_hash, recorded_checksum, vector = row
        try:
            if raw is not None:
                values[4] = raw.decode()[values[5] : values[6]]
            passage = Passage(*values, json.loads(metadata))  # type: ignore[call-arg]  # 13 columns
            if checksum(passage.text, blob_of(vector)) != recorded_checksum or row_hash(passage) != recorded_hash:
                raise damage_of(passage.uri)
            by_id[passage.id] = passage
        except (AttributeError, TypeError, ValueError) as error:
            raise damage_of(values[2]) from error
    if len(by_id) < len(set(ids)):
        raise IndexDamaged("a passage has lost its document; likewise check says which")
    return [by_id[id_] for id_ in ids]


def get(view: View, uri: str) -> Document | None:
    return next((document for _, document in _documents(view, "d.key = %s", (key_of(uri),), 1)), None)


def uris(view: View, where: Where | None) -> list[str]:
    """Return the uris of the documents that a filter leaves, in the order they were added."""
    if where is None:
        return [uri for (uri,) in view.rows("SELECT uri FROM {tables}.document ORDER BY id")]
    condition = view.compile(where)
    select = f"SELECT d.uri FROM {{tables}}.document d WHERE {condition.text} ORDER BY d.id"
    return [uri for (uri,) in view.rows(select, *condition.parameters)]


def matches(view: View, uri: str, where: Where) -> bool:
    """Return whether a filter leaves this document; False where there is none."""
    if not view.rows("SELECT FROM {tables}.document WHERE key = %s", key_of(uri)):
        return False
    condition = view.compile(where)
    select = f"SELECT FROM {{tables}}.document d WHERE d.key = %s AND {condition.text}"
    return bool(view.rows(select, key_of(uri), *condition.parameters))


def hashes(view: View, uris: Sequence[str] | None) -> dict[str, Hashes]:
    """Return the hashes of those of the uris that are documents, or of all documents."""
    select = "SELECT uri, content_hash, row_hash FROM {tables}.document"
    if uris is None:
        rows = view.rows(f"{select} ORDER BY id")
    else:
        rows = view.rows(f"{select} WHERE key = ANY(%s)", [key_of(uri) for uri in uris])
    return {uri: Hashes(content, row) for uri, content, row in rows}


def origins(view: View, uris: Sequence[str]) -> dict[str, bytes]:
    """Return the hash that each of these documents has in the index it was taken from, where it still holds."""
    return dict(
        view.rows(
            "SELECT d.uri, o.origin FROM {tables}.origin o JOIN {tables}.document d ON d.id = o.document_id"
            " WHERE d.key = ANY(%s) AND o.content_hash = d.content_hash",
            [key_of(uri) for uri in uris],
        )
    )


def documents_after(view: View, after: int, count: int) -> list[tuple[int, Document]]:
    """Return the next `count` documents after an id, with their ids.

    There are fewer if the next one is damaged: the call that begins with it raises IndexDamaged.
    """
    return until_damage(_documents(view, "d.id > %s", (after,), count))


def documents_of(view: View, ids: Ids) -> list[Document]:
    """Return the documents of these few ids; ids that are no longer documents are left out."""
    return [document for _, document in _documents(view, "d.id = ANY(%s)", (ids.tolist(),), len(ids))]


def rows_of_documents(view: View, condition: str = "true", parameters: Sequence[Any] = ()) -> Iterator[DocumentRow]:
    """Yield rows in order of their ids."""
    for row in view.stream(
        "SELECT d.id, d.uri, d.tokens, d.content_hash, d.row_hash, d.title, d.path, d.format, d.modified,"
        f" d.metadata, d.text, d.raw, d.sections FROM {{tables}}.document d WHERE {condition} ORDER BY d.id",
        *parameters,
        size=256,
    ):
        id_, uri, tokens, content, recorded, title, path, format_, modified, metadata, text, raw, sections = row
        document = None
        with suppress(TypeError, ValueError):
            marks = tuple(Section(*mark) for mark in json.loads(sections))
            text = text if raw is None else raw.decode()
            document = Document(uri, text, title, json.loads(metadata), path, format_, modified, marks)
        yield DocumentRow(id_, uri, tokens, content, recorded, document)


def _documents(view: View, condition: str, parameters: Sequence[Any], limit: int) -> Iterator[tuple[int, Document]]:
    """Yield documents with their ids, in order of the ids.

    Raises:
        IndexDamaged: a row does not match its hash, or a passage its checksum.
    """
    chosen = f"d.id IN (SELECT d.id FROM {{tables}}.document d WHERE {condition} ORDER BY d.id LIMIT {int(limit)})"
    rows = list(rows_of_documents(view, chosen, parameters))
    sums: dict[int, list[Any]] = {row.id: [] for row in rows}
    for document_id, *passage in view.rows(
        "SELECT document_id, start, stop, checksum, vector FROM {tables}.passage WHERE document_id = ANY(%s)",
        list(sums),
    ):
        sums[document_id].append(passage)
    for row in rows:
        document = row.document
        if document is None:
            raise damage_of(row.uri)
        try:
            sound = row_hash(document) == row.row_hash and all(
                checksum(document.text[start:stop], blob_of(vector)) == recorded
                for start, stop, recorded, vector in sums[row.id]
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise damage_of(row.uri) from error
        if not sound:
            raise damage_of(row.uri)
        yield row.id, document


def frozen_content(view: View, name: str) -> bytes | None:
    rows = view.rows("SELECT content FROM {tables}.frozen WHERE name = %s", name)
    return bytes(rows[0][0]) if rows else None


def size(view: View) -> int:
    """Return the bytes of all tables of the index and of their indexes."""
    ((total,),) = view.rows(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
        view.state.row.tables,
    )
    return int(total)
