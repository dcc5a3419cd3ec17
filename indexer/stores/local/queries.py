"""Every statement that reads the catalog inside a view: vectors, filters, documents, passages, numbers for `info`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.filters.tree import And, Not, Or, Scalar, Where, render
from indexer.records import Document, Section, Span, Vector
from indexer.stores.document_rows import DocumentRow, damage_of, until_damage
from indexer.stores.filter_sql import compile_where
from indexer.stores.hashes import row_hash
from indexer.stores.local.filter_sql import SqliteDialect, select_ids
from indexer.stores.local.masks import AllowedRows, Flags, make_mask
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.local.views import View
from indexer.stores.port import Hashes, Ids, Passage
from indexer.stores.vectors import checksum, from_blobs

_BATCH_ROWS = 2048

_BOUND_VALUES = 500
"""Values bound in one statement: SQLite takes more, but is not faster with them."""

T = TypeVar("T")


def _batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + _BOUND_VALUES] for start in range(0, len(values), _BOUND_VALUES))


def run_is_unfinished(rows: Mapping[str, str]) -> bool:
    """Return whether the last indexing run did not finish.

    Args:
        rows: the settings by name.

    Raises:
        IndexDamaged: the settings do not say.
    """
    if not {"run", "finished_run"} <= rows.keys():
        raise IndexDamaged("catalog.db: has lost the number of its last run; restore a backup, or index again")
    return rows["run"] != rows["finished_run"]


def setting_rows(view: View) -> dict[str, str]:
    return dict(view.connection.execute("SELECT name, value FROM setting"))


def frozen_content(view: View, name: str) -> bytes | None:
    row = view.connection.execute("SELECT content FROM frozen WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def format_version(view: View) -> int:
    (version,) = view.connection.execute("PRAGMA user_version").fetchone()
    return int(version)


# vectors


def vectors_by_id(view: View, ids: Ids) -> tuple[Flags, Vector]:
    """Return which of the passages exist (n,), and the stored vectors of those that do (existing, dimensions)."""
    blobs: dict[int, bytes] = {}
    for batch in _batches(ids.tolist()):
        marks = ",".join("?" * len(batch))
        blobs.update(view.connection.execute(f"SELECT id, vector FROM passage WHERE id IN ({marks})", batch))
    exist = np.array([id_ in blobs for id_ in ids.tolist()], np.bool_)
    return exist, from_blobs([blobs[id_] for id_ in ids[exist].tolist()], view.state.dimensions)


def vectors_from(view: View, first_id: int, batch_rows: int) -> Iterator[Vector]:
    """Yield every stored vector from a passage id on, in order of the ids, in batches (rows, dimensions)."""
    cursor = view.connection.execute("SELECT vector FROM passage WHERE id >= ? ORDER BY id", (first_id,))
    while batch := cursor.fetchmany(batch_rows):
        yield from_blobs([blob for (blob,) in batch], view.state.dimensions)


def live_ids(view: View, first_id: int) -> tuple[Ids, Ids]:
    """Return the passage ids from one on (n,), ascending, and the documents they belong to (n,)."""
    cursor = view.connection.execute("SELECT id, document_id FROM passage WHERE id >= ? ORDER BY id", (first_id,))
    flat = np.fromiter((value for row in cursor for value in row), np.int64)
    return flat[::2].copy(), flat[1::2].copy()


def stored_rows(view: View) -> tuple[Ids, Ids, NDArray[np.float16]]:
    """Return id (n,), document (n,) and vector as stored (n, dimensions) of every passage."""
    passages, documents = live_ids(view, 0)
    rows = np.empty((len(passages), view.state.dimensions), np.float16)
    filled = 0
    for batch in vectors_from(view, 0, _BATCH_ROWS):
        rows[filled : filled + len(batch)] = batch
        filled += len(batch)
    return passages, documents, rows


def highest_id(view: View) -> int:
    """Return the highest passage id that was ever given."""
    row = view.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'passage'").fetchone()
    return int(row[0]) if row else 0


def document_vectors(view: View, uri: str) -> Vector | None:
    """Return the stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""
    rows = view.connection.execute(
        "SELECT vector FROM passage WHERE document_id = (SELECT id FROM document WHERE uri = ?) ORDER BY id",
        (uri,),
    ).fetchall()
    return from_blobs([blob for (blob,) in rows], view.state.dimensions) if rows else None


def spans_and_vectors(view: View, document_id: int) -> tuple[tuple[Span, ...], Vector]:
    """Return the passages of a document and their vectors (passages, dimensions).

    The first passage has the tokens of the whole document, the others have none: they are not stored per passage.
    """
    rows = view.connection.execute(
        "SELECT start, end, heading, page, vector FROM passage WHERE document_id = ? ORDER BY id", (document_id,)
    ).fetchall()
    (tokens,) = view.connection.execute("SELECT tokens FROM document WHERE id = ?", (document_id,)).fetchone()
    spans = tuple(
        Span(start, end, tokens=0 if number else tokens, heading=heading, page=page)
        for number, (start, end, heading, page, _) in enumerate(rows)
    )
    return spans, from_blobs([row[4] for row in rows], view.state.dimensions)


# filters


_MAX_CACHED_FILTERS = 32


def allowed_rows(view: View, where: Where | None) -> AllowedRows:
    """Return the rows that a filter leaves, computed at its first use and kept with the state."""
    state = view.state
    key = "" if where is None else render(where)  # trees as keys would not tell `draft = 1` from `draft = true`
    if (cached := state.allowed.get(key)) is not None:
        return cached
    flags = None if where is None else document_flags(view, where)
    masks = tuple(make_mask(part.positions, part.dead, flags) for part in state.parts)
    allowed = AllowedRows(
        documents=state.documents if flags is None else int(np.count_nonzero(flags)),
        passages=sum(
            len(part.positions.passages) if mask is None else mask.count
            for part, mask in zip(state.parts, masks, strict=True)
        ),
        masks=masks,
    )
    if len(state.allowed) >= _MAX_CACHED_FILTERS:
        state.allowed.clear()
    state.allowed[key] = allowed
    return allowed


def matches(view: View, uri: str, where: Where) -> bool:
    """Return whether a filter leaves this document; False where there is none."""
    row = view.connection.execute(
        "SELECT min(id) FROM passage WHERE document_id = (SELECT id FROM document WHERE uri = ?)", (uri,)
    ).fetchone()
    if row[0] is None:
        return False
    for part, mask in zip(view.state.parts, allowed_rows(view, where).masks, strict=True):
        position = int(np.searchsorted(part.positions.passages, row[0]))
        if position < len(part.positions.passages) and part.positions.passages[position] == row[0]:
            return mask is None or mask.has(position)
    return False


def document_flags(view: View, where: Where) -> Flags:
    """Return one flag per document id, true where the filter holds.

    The parts of a filter are looked up one by one and combined here: SQLite would look up every document in each part.
    """
    match where:
        case And(parts):
            return _combine(np.logical_and, view, parts)
        case Or(parts):
            return _combine(np.logical_or, view, parts)
        case Not(part):
            return _flags(view, "SELECT id FROM document", ()) & ~document_flags(view, part)
    condition = compile_where(where, view.state.fields, SqliteDialect())
    return _flags(view, select_ids(condition), condition.parameters)


def uris(view: View, where: Where | None) -> list[str]:
    """Return the uris of the documents that a filter leaves, in the order they were added."""
    flags = None if where is None else document_flags(view, where)
    rows = view.connection.execute("SELECT id, uri FROM document ORDER BY id")
    return [uri for id_, uri in rows if flags is None or flags[id_]]


def _combine(operation: np.ufunc, view: View, parts: Sequence[Where]) -> Flags:
    flags = document_flags(view, parts[0])
    for part in parts[1:]:
        operation(flags, document_flags(view, part), out=flags)
    return flags


def _flags(view: View, select: str, parameters: Sequence[Scalar]) -> Flags:
    flags = np.zeros(view.state.last_document + 1, np.bool_)
    flags[np.fromiter((row[0] for row in view.connection.execute(select, parameters)), np.int64)] = True
    return flags


# documents and passages


def passages(view: View, ids: Sequence[int]) -> list[Passage]:
    """Return passages by their ids, in the order asked for.

    Raises:
        IndexDamaged: the text or vector of a row does not match its checksum, there is no passage of an id, or the
            part that ranked it holds another vector.
    """
    by_id: dict[int, Passage] = {}
    blobs: dict[int, bytes] = {}
    for batch in _batches(ids):
        for row in view.connection.execute(
            "SELECT p.id, p.document_id, d.uri, d.title, substr(t.text, p.start + 1, p.end - p.start),"
            " p.start, p.end, p.line, p.heading, p.page, d.path, d.format, d.modified, d.metadata, d.row_hash,"
            " p.checksum, p.vector"
            " FROM passage p JOIN document d ON d.id = p.document_id JOIN document_text t ON t.document_id = d.id"
            f" WHERE p.id IN ({','.join('?' * len(batch))})",
            batch,
        ):
            *values, metadata, recorded_hash, recorded_checksum, vector = row
            try:
                passage = Passage(*values, json.loads(metadata))  # type: ignore[call-arg]  # 13 columns
                if checksum(values[4], vector) != recorded_checksum or row_hash(passage) != recorded_hash:
                    raise damage_of(values[2])
                by_id[passage.id], blobs[passage.id] = passage, vector
            except (AttributeError, TypeError, ValueError) as error:
                raise damage_of(values[2]) from error
    if len(by_id) < len(set(ids)):
        raise IndexDamaged("catalog.db: a passage has lost its document; likewise check says which")
    ranked = view.state.vectors_of(np.fromiter(blobs, np.int64))
    if not np.array_equal(ranked, from_blobs(list(blobs.values()), view.state.dimensions)):
        raise IndexDamaged("catalog.db: does not agree with its segments; likewise check says what is damaged")
    return [by_id[id_] for id_ in ids]


def get(view: View, uri: str) -> Document | None:
    return next((document for _, document in _documents(view, "d.uri = ?", (uri,), 1)), None)


def hashes(view: View, uris: Sequence[str] | None) -> dict[str, Hashes]:
    """Return the hashes of those of the uris that are documents, or of all documents."""
    select = "SELECT uri, content_hash, row_hash FROM document"
    if uris is None:
        rows = view.connection.execute(f"{select} ORDER BY id").fetchall()
    else:
        rows = [
            row
            for batch in _batches(uris)
            for row in view.connection.execute(f"{select} WHERE uri IN ({','.join('?' * len(batch))})", batch)
        ]
    return {uri: Hashes(content, row) for uri, content, row in rows}


def origins(view: View, uris: Sequence[str]) -> dict[str, bytes]:
    """Return the hash that each of these documents has in the index it was taken from, where it still holds."""
    select = "SELECT d.uri, o.origin FROM origin o JOIN document d ON d.id = o.document_id"
    if view.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'origin'").fetchone() is None:
        return {}  # no writer has opened this index since there is the table
    return {
        uri: origin
        for batch in _batches(uris)
        for uri, origin in view.connection.execute(
            f"{select} WHERE d.uri IN ({','.join('?' * len(batch))}) AND o.content_hash = d.content_hash", batch
        )
    }


def documents_after(view: View, after: int, count: int) -> list[tuple[int, Document]]:
    """Return the next `count` documents after an id, with their ids.

    There are fewer if the next one is damaged: the call that begins with it raises IndexDamaged.
    """
    return until_damage(_documents(view, "d.id > ?", (after,), count))


def documents_of(view: View, ids: Ids) -> list[Document]:
    """Return the documents of these few ids; ids that are no longer documents are left out."""
    values = ids.tolist()
    condition = f"d.id IN ({','.join('?' * len(values))})"
    return [document for _, document in _documents(view, condition, values, len(values))]


def rows_of_documents(
    view: View, condition: str = "true", parameters: Sequence[Any] = (), limit: int = -1
) -> Iterator[DocumentRow]:
    """Yield rows in order of their ids, at most `limit` of them unless that is negative."""
    for (
        id_,
        uri,
        tokens,
        content,
        row,
        title,
        path,
        format_,
        modified,
        metadata,
        text,
        sections,
    ) in view.connection.execute(
        "SELECT d.id, d.uri, d.tokens, d.content_hash, d.row_hash, d.title, d.path, d.format, d.modified,"
        " d.metadata, t.text, t.sections FROM document d JOIN document_text t ON t.document_id = d.id"
        f" WHERE {condition} ORDER BY d.id LIMIT {limit}",
        parameters,
    ):
        document = None
        with suppress(TypeError, ValueError):
            marks = tuple(Section(*mark) for mark in json.loads(sections))
            document = Document(uri, text, title, json.loads(metadata), path, format_, modified, marks)
        yield DocumentRow(id_, uri, tokens, content, row, document)


def _documents(view: View, condition: str, parameters: Sequence[Any], limit: int) -> Iterator[tuple[int, Document]]:
    """Yield documents with their ids, in order of the ids.

    Raises:
        IndexDamaged: a row does not match its hash, or a passage its checksum.
    """
    for row in list(rows_of_documents(view, condition, parameters, limit)):
        document = row.document
        if document is None:
            raise damage_of(row.uri)
        try:
            sound = row_hash(document) == row.row_hash and _has_sound_passages(view, row.id, document.text)
        except (AttributeError, TypeError, ValueError) as error:
            raise damage_of(row.uri) from error
        if not sound:
            raise damage_of(row.uri)
        yield row.id, document


def _has_sound_passages(view: View, document_id: int, text: str) -> bool:
    rows = view.connection.execute(
        "SELECT start, end, checksum, vector FROM passage WHERE document_id = ?", (document_id,)
    )
    return all(checksum(text[start:end], vector) == recorded for start, end, recorded, vector in rows)


# info


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment of the catalog: it holds the passages from `first_id` to `last_id`, of which `alive` still exist."""

    recorded: SegmentFile
    first_id: int
    last_id: int
    alive: int


def segments(view: View) -> list[SegmentRow]:
    """Return the segments in order of the passage ids they hold."""
    return [
        SegmentRow(SegmentFile(*recorded), first_id, last_id, recorded[2] - dead)
        for *recorded, first_id, last_id, dead in view.connection.execute(
            "SELECT file, kind, count, size, sha256, stamp, parameters, first_id, last_id,"
            " (SELECT count(*) FROM dead WHERE passage_id BETWEEN first_id AND last_id) FROM segment ORDER BY first_id"
        )
    ]


def tokens(view: View) -> int:
    (total,) = view.connection.execute("SELECT coalesce(sum(tokens), 0) FROM document").fetchone()
    return int(total)
