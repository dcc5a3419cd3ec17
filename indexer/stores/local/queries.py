"""Every statement that reads the catalog inside a view: hits, documents, filters, what `info` says."""

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
from indexer.stores.hashes import row_hash
from indexer.stores.local.filter_sql import compile_where
from indexer.stores.local.masks import Allowed, mask
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.local.views import Flags, Ids, View
from indexer.stores.port import Hashes, Passage
from indexer.stores.vectors import checksum, from_blobs

_BATCH_ROWS = 2048
_MANY = 500
"""Values bound in one statement: SQLite takes more, but plans no faster."""


T = TypeVar("T")


def _batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[at : at + _MANY] for at in range(0, len(values), _MANY))


def run_is_unfinished(rows: Mapping[str, str]) -> bool:
    """Whether the last indexing run has not come to its end, by the rows of the settings.

    Raises:
        IndexDamaged: they do not say.
    """
    if not {"run", "finished_run"} <= rows.keys():
        raise IndexDamaged("catalog.db: has lost the number of its last run; restore a backup, or index again")
    return rows["run"] != rows["finished_run"]


def setting_rows(view: View) -> dict[str, str]:
    return dict(view.connection.execute("SELECT name, value FROM setting"))


def frozen(view: View, name: str) -> bytes | None:
    found = view.connection.execute("SELECT content FROM frozen WHERE name = ?", (name,)).fetchone()
    return found[0] if found else None


def format_version(view: View) -> int:
    (version,) = view.connection.execute("PRAGMA user_version").fetchone()
    return int(version)


# vectors


def rows(view: View, ids: Ids) -> tuple[Flags, Vector]:
    """Which of the passages exist (n,), and the stored vectors of those that do (existing, dimensions)."""
    found: dict[int, bytes] = {}
    for some in _batches(ids.tolist()):
        marks = ",".join("?" * len(some))
        found.update(view.connection.execute(f"SELECT id, vector FROM passage WHERE id IN ({marks})", some))
    exist = np.array([id_ in found for id_ in ids.tolist()], np.bool_)
    return exist, from_blobs([found[id_] for id_ in ids[exist].tolist()], view.state.dimensions)


def vectors(view: View, first_id: int, batch: int) -> Iterator[Vector]:
    """Every stored vector from a passage id on, in order of the ids, in batches."""
    cursor = view.connection.execute("SELECT vector FROM passage WHERE id >= ? ORDER BY id", (first_id,))
    while some := cursor.fetchmany(batch):
        yield from_blobs([blob for (blob,) in some], view.state.dimensions)


def live_ids(view: View, first_id: int) -> tuple[Ids, Ids]:
    """Passage ids from one on, ascending, and the documents they belong to."""
    cursor = view.connection.execute("SELECT id, document_id FROM passage WHERE id >= ? ORDER BY id", (first_id,))
    flat = np.fromiter((value for row in cursor for value in row), np.int64)
    return flat[::2].copy(), flat[1::2].copy()


def stored_rows(view: View) -> tuple[Ids, Ids, NDArray[np.float16]]:
    """Of every passage its id (n,), its document (n,) and its vector as stored (n, dimensions)."""
    passages, documents = live_ids(view, 0)
    rows = np.empty((len(passages), view.state.dimensions), np.float16)
    filled = 0
    for batch in vectors(view, 0, _BATCH_ROWS):
        rows[filled : filled + len(batch)] = batch
        filled += len(batch)
    return passages, documents, rows


def highest_id(view: View) -> int:
    """The highest passage id ever given."""
    row = view.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'passage'").fetchone()
    return int(row[0]) if row else 0


def document_vectors(view: View, uri: str) -> Vector | None:
    """The stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""
    found = view.connection.execute(
        "SELECT vector FROM passage WHERE document_id = (SELECT id FROM document WHERE uri = ?) ORDER BY id",
        (uri,),
    ).fetchall()
    return from_blobs([blob for (blob,) in found], view.state.dimensions) if found else None


def spans(view: View, document_id: int) -> tuple[tuple[Span, ...], Vector]:
    """The passages of a document and their vectors; the tokens of all are counted to the first."""
    found = view.connection.execute(
        "SELECT start, end, heading, page, vector FROM passage WHERE document_id = ? ORDER BY id", (document_id,)
    ).fetchall()
    (tokens,) = view.connection.execute("SELECT tokens FROM document WHERE id = ?", (document_id,)).fetchone()
    own = tuple(
        Span(start, end, tokens=0 if number else tokens, heading=heading, page=page)
        for number, (start, end, heading, page, _) in enumerate(found)
    )
    return own, from_blobs([row[4] for row in found], view.state.dimensions)


# filters


_KEPT_FILTERS = 32


def allowed(view: View, where: Where | None) -> Allowed:
    """What a filter leaves of this snapshot; worked out once and kept."""
    state = view.state
    key = "" if where is None else render(where)  # as keys, `draft = 1` and `draft = true` would be one
    if (known := state.allowed.get(key)) is not None:
        return known
    flags = None if where is None else document_flags(view, where)
    masks = tuple(mask(part.positions, part.dead, flags) for part in state.parts)
    found = Allowed(
        documents=state.documents if flags is None else int(np.count_nonzero(flags)),
        passages=sum(
            len(part.positions.passages) if own is None else own.count
            for part, own in zip(state.parts, masks, strict=True)
        ),
        masks=masks,
    )
    if len(state.allowed) >= _KEPT_FILTERS:
        state.allowed.clear()
    state.allowed[key] = found
    return found


def passes(view: View, uri: str, where: Where) -> bool:
    """Whether a filter leaves this document; False where there is none."""
    row = view.connection.execute(
        "SELECT min(id) FROM passage WHERE document_id = (SELECT id FROM document WHERE uri = ?)", (uri,)
    ).fetchone()
    if row[0] is None:
        return False
    for part, own in zip(view.state.parts, allowed(view, where).masks, strict=True):
        at = int(np.searchsorted(part.positions.passages, row[0]))
        if at < len(part.positions.passages) and part.positions.passages[at] == row[0]:
            return own is None or own.has(at)
    return False


def document_flags(view: View, where: Where) -> Flags:
    """One flag a document id, true where the filter is.

    Its parts are looked up one by one and joined here: SQLite would look up every document in each.
    """
    match where:
        case And(parts):
            return _joined(np.logical_and, view, parts)
        case Or(parts):
            return _joined(np.logical_or, view, parts)
        case Not(part):
            return _flags(view, "SELECT id FROM document", ()) & ~document_flags(view, part)
    condition = compile_where(where, view.state.fields)
    return _flags(view, condition.select, condition.parameters)


def _joined(how: np.ufunc, view: View, parts: Sequence[Where]) -> Flags:
    flags = document_flags(view, parts[0])
    for part in parts[1:]:
        how(flags, document_flags(view, part), out=flags)
    return flags


def _flags(view: View, select: str, parameters: Sequence[Scalar]) -> Flags:
    flags = np.zeros(view.state.last_document + 1, np.bool_)
    flags[np.fromiter((row[0] for row in view.connection.execute(select, parameters)), np.int64)] = True
    return flags


# documents and passages


def passages(view: View, ids: Sequence[int]) -> list[Passage]:
    """Passages by id, in the order asked for.

    Raises:
        IndexDamaged: a row whose text or vector does not match its checksum.
    """
    found: dict[int, Passage] = {}
    for some in _batches(ids):
        for row in view.connection.execute(
            "SELECT p.id, p.document_id, d.uri, d.title, substr(t.text, p.start + 1, p.end - p.start),"
            " p.start, p.end, p.line, p.heading, p.page, d.path, d.format, d.modified, d.metadata, d.row_hash,"
            " p.checksum, p.vector"
            " FROM passage p JOIN document d ON d.id = p.document_id JOIN document_text t ON t.document_id = d.id"
            f" WHERE p.id IN ({','.join('?' * len(some))})",
            some,
        ):
            *values, metadata, row_recorded, recorded, vector = row
            try:
                passage = Passage(*values, json.loads(metadata))  # type: ignore[call-arg]  # 13 columns
                if checksum(values[4], vector) != recorded or row_hash(passage) != row_recorded:
                    raise damaged(values[2])
                found[values[0]] = passage
            except (AttributeError, TypeError, ValueError) as error:
                raise damaged(values[2]) from error
    if len(found) < len(set(ids)):
        raise IndexDamaged("catalog.db: a passage has lost its document; likewise check says which")
    return [found[id_] for id_ in ids]


def damaged(uri: str) -> IndexDamaged:
    return IndexDamaged(
        f"{uri}: its stored row, text or vector is damaged; likewise check --repair, then index its "
        "source again (without --rebuild), or likewise remove it"
    )


def get(view: View, uri: str) -> Document | None:
    return next((document for _, document in _numbered(view, "d.uri = ?", (uri,), 1)), None)


def hashes(view: View, uris: Sequence[str] | None) -> dict[str, Hashes]:
    """Hashes of those of the uris that are documents, or of all documents."""
    select = "SELECT uri, content_hash, row_hash FROM document"
    if uris is None:
        rows = view.connection.execute(f"{select} ORDER BY id").fetchall()
    else:
        rows = [
            row
            for some in _batches(uris)
            for row in view.connection.execute(f"{select} WHERE uri IN ({','.join('?' * len(some))})", some)
        ]
    return {uri: Hashes(content, row) for uri, content, row in rows}


def documents_after(view: View, after: int, many: int) -> list[tuple[int, Document]]:
    """The next `many` documents after an id, with their ids; fewer up to a damaged one, which the next call names."""
    found = []
    try:
        for numbered in _numbered(view, "d.id > ?", (after,), many):
            found.append(numbered)
    except IndexDamaged:
        if not found:
            raise
    return found


def documents_of(view: View, ids: Ids) -> list[Document]:
    """Those of these few ids that are documents still."""
    some = ids.tolist()
    return [document for _, document in _numbered(view, f"d.id IN ({','.join('?' * len(some))})", some, len(some))]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document as it is stored, with what was recorded of it; `document` is None where it cannot be read."""

    id: int
    uri: str
    tokens: int
    content_hash: bytes
    row_hash: bytes
    document: Document | None


def rows_of_documents(
    view: View, condition: str = "true", parameters: Sequence[Any] = (), many: int = -1
) -> Iterator[DocumentRow]:
    """Rows in order of their ids, at most `many` unless that is negative."""
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
        f" WHERE {condition} ORDER BY d.id LIMIT {many}",
        parameters,
    ):
        document = None
        with suppress(TypeError, ValueError):
            marks = tuple(Section(*mark) for mark in json.loads(sections))
            document = Document(uri, text, title, json.loads(metadata), path, format_, modified, marks)
        yield DocumentRow(id_, uri, tokens, content, row, document)


def _numbered(view: View, condition: str, parameters: Sequence[Any], many: int) -> Iterator[tuple[int, Document]]:
    """Documents with their ids, in order of those.

    Raises:
        IndexDamaged: a row that does not match its hash. What nobody embedded has no hash of its text.
    """
    for row in list(rows_of_documents(view, condition, parameters, many)):
        document = row.document
        if document is None:
            raise damaged(row.uri)
        try:
            sound = row_hash(document) == row.row_hash and _passages_sound(view, row.id, document.text)
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(row.uri) from error
        if not sound:
            raise damaged(row.uri)
        yield row.id, document


def _passages_sound(view: View, document_id: int, text: str) -> bool:
    found = view.connection.execute(
        "SELECT start, end, checksum, vector FROM passage WHERE document_id = ?", (document_id,)
    )
    return all(checksum(text[start:end], vector) == recorded for start, end, recorded, vector in found)


# info


@dataclass(frozen=True, slots=True)
class SegmentRow:
    recorded: SegmentFile
    first_id: int
    last_id: int
    alive: int


def segments(view: View) -> list[SegmentRow]:
    """The manifest in order of the ids, with how many passages of each are alive."""
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
