"""What `likewise check` verifies, and what it can rebuild: everything that is derived from documents and vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from indexer.errors import IndexDamaged
from indexer.settings import Meaning
from indexer.stores.flatten import scalars
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.local import queries
from indexer.stores.local.segments import seal
from indexer.stores.local.segments.faiss_segment import FaissSegment
from indexer.stores.local.segments.files import stamp, verify
from indexer.stores.local.views import Part, Snapshots, View
from indexer.stores.local.words import files as word_files
from indexer.stores.port import CheckReport
from indexer.stores.setting_rows import unreadable
from indexer.stores.vectors import checksum

if TYPE_CHECKING:
    from indexer.stores.local.catalog import Catalog

_SAMPLE = 256
"""Rows of a segment that are compared with the catalog; its file has a checksum besides."""


@dataclass(frozen=True, slots=True)
class _Findings:
    """What is wrong, by what has to be done about it: each a list of messages, or of uris."""

    catalog: list[str]
    broken: list[str]
    unfiltered: list[str]
    miscounted: list[str]
    segments: list[str]
    words: list[str]
    notes: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return (
            *self.catalog,
            *(str(queries.damaged(uri)) for uri in self.broken),
            *(f"{uri}: filters do not see its metadata as it is stored" for uri in self.unfiltered),
            *self.miscounted,
            *self.segments,
            *self.words,
        )


def check(view: View, folder: Path, meaning: Meaning | None) -> CheckReport:
    """Verify SQLite, every row, every segment against its record and its rows, and the word index."""
    found = _findings(view, folder, meaning)
    return CheckReport(found.problems, found.notes)


def repair(catalog: Catalog, snapshots: Snapshots, meaning: Meaning | None) -> CheckReport:
    """Check, rebuild what is derived, and have damaged documents embedded again by the next run over their source."""
    with snapshots.view() as view:
        found = _findings(view, snapshots.folder, meaning)
    catalog.distrust(found.broken)
    catalog.refilter(found.unfiltered)
    if found.miscounted:
        catalog.recount()
    if found.segments:
        seal.rewrite(catalog, snapshots, "auto", force=True)
    if found.segments or found.words:
        word_files.catch_up(catalog, snapshots, thorough=True)
    else:
        _restamp(catalog, snapshots)
    repaired = {
        f"{len(found.broken)} damaged document(s) will be embedded anew when their source is indexed again": (
            found.broken
        ),
        "counted the documents": found.miscounted,
        f"wrote the filters' rows of {len(found.unfiltered)} document(s) anew": found.unfiltered,
        f"rebuilt {len(found.segments)} damaged segment(s)": found.segments,
        "rebuilt the word index": found.words,
    }
    if not any(repaired.values()):
        return CheckReport(found.problems, found.notes)
    with snapshots.view() as view:
        after = _findings(view, snapshots.folder, meaning)
    return CheckReport(after.problems, (*(message for message, what in repaired.items() if what), *after.notes))


def _findings(view: View, folder: Path, meaning: Meaning | None) -> _Findings:
    broken = list(dict.fromkeys([*_passages(view), *_documents(view, meaning)]))
    wrong, lag = word_files.state(view, folder)
    return _Findings(
        catalog=list(_catalog(view)),
        broken=broken,
        unfiltered=list(_fields(view)),
        miscounted=list(_documents_counted(view)),
        segments=list(_segments(view, folder, sound=not broken)),
        words=wrong,
        notes=(*_notes(view, folder), *lag),
    )


def _catalog(view: View) -> Iterator[str]:
    """SQLite's own check, and broken references."""
    for (line,) in view.connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"catalog.db: {line}"
    for table, rowid, parent, _ in view.connection.execute("PRAGMA foreign_key_check"):
        yield f"catalog.db: row {rowid} of {table} refers to no {parent}"


def _documents_counted(view: View) -> Iterator[str]:
    (count,) = view.connection.execute("SELECT count(*) FROM document").fetchone()
    if count != view.state.documents:
        yield f"catalog.db: holds {count} documents and says {view.state.documents}"


def _passages(view: View) -> Iterator[str]:
    """Uris of the documents of which a passage fails its checksum."""
    cursor = view.connection.execute(
        "SELECT p.document_id, p.start, p.end, p.checksum, p.vector, t.text, d.uri FROM passage p"
        " JOIN document_text t ON t.document_id = p.document_id JOIN document d ON d.id = p.document_id"
        " ORDER BY p.document_id"
    )
    return (row[6] for row in cursor if checksum(row[5][row[1] : row[2]], row[4]) != row[3])


def _documents(view: View, meaning: Meaning | None) -> Iterator[str]:
    """Uris of the documents whose row is not what was written; title and text of those that were embedded."""
    for row in queries.rows_of_documents(view):
        document = row.document
        if document is None or row_hash(document) != row.row_hash:
            yield row.uri
            continue
        if meaning and row.tokens and content_hash(document, meaning) != row.content_hash:
            yield row.uri


def _fields(view: View) -> Iterator[str]:
    """Uris of the documents that filters see otherwise than their metadata says."""
    cursor = view.connection.execute(
        "SELECT v.document_id, f.name, f.type, v.value FROM field_value v JOIN field f ON f.id = v.field_id"
        " ORDER BY v.document_id"
    )
    groups = groupby(cursor, itemgetter(0))
    id_, rows = next(groups, (None, ()))
    for document_id, uri, metadata in view.connection.execute("SELECT id, uri, metadata FROM document ORDER BY id"):
        while id_ is not None and id_ < document_id:  # of no document, and so in nobody's way
            id_, rows = next(groups, (None, ()))
        seen = set()
        if id_ == document_id:
            seen = {row[1:] for row in rows}
            id_, rows = next(groups, (None, ()))
        with suppress(ValueError):  # metadata that is no JSON fails its row's hash
            if set(scalars(uri, json.loads(metadata))) != seen:
                yield uri


def _segments(view: View, folder: Path, sound: bool) -> Iterator[str]:
    """Segments that are damaged, or where the catalog is `sound` hold something else than its rows."""
    for part, row in zip(view.state.parts, queries.segments(view), strict=False):
        try:
            verify(folder / "segments", row.recorded, thorough=True)
        except IndexDamaged as error:
            yield str(error)
        else:
            yield from _strangers(view, part) if sound else ()


def _strangers(view: View, part: Part) -> list[str]:
    """What a segment holds that the catalog does not: a sample of its rows is compared with their BLOBs."""
    if not isinstance(part.segment, FaissSegment):
        return []
    passages = part.positions.passages
    at = np.setdiff1d(np.linspace(0, len(passages) - 1, _SAMPLE).astype(np.int64), part.dead)
    exist, stored = queries.rows(view, passages[at])
    if exist.all() and np.array_equal(part.segment.rows(at), stored):
        return []
    return [f"segment {part.file}: does not hold the vectors of its passages; likewise compact writes it anew"]


def _notes(view: View, folder: Path) -> list[str]:
    """What is worth knowing and not wrong: orphaned files, an unfinished run."""
    named = {row.recorded.file for row in queries.segments(view)}
    orphans = sum(path.stem not in named for path in (folder / "segments").glob("*"))
    found = [f"{orphans} file(s) in segments/ belong to nothing; the next writer removes them"] if orphans else []
    rows = queries.setting_rows(view)
    found += [
        f"the setting {name!r} cannot be read and is left out; the next run measures it again, or tune learns it"
        for name in unreadable(rows)
    ]
    if queries.run_is_unfinished(rows):
        found.append("the last indexing run did not finish; run it again to continue")
    return found


def _restamp(catalog: Catalog, snapshots: Snapshots) -> None:
    """Nothing to rebuild: files that were moved or copied need not be hashed at every opening again."""
    folder = snapshots.folder
    with snapshots.view() as view:
        files = [row.recorded for row in queries.segments(view)]
        moved = {f.file: now for f in files if (now := stamp(folder / "segments", f.file)) != f.stamp}
        row = word_files.recorded(view)
    if moved:
        catalog.restamp(moved)
    if row is not None and word_files.stamp(folder, row) != row.stamp:
        catalog.restamp_words(word_files.stamp(folder, row))
