"""The checks of `likewise check`, and the repair: everything derived from documents and vectors can be rebuilt."""

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

from indexer.errors import BadInput, IndexDamaged
from indexer.settings import Meaning
from indexer.stores.document_rows import damage_of
from indexer.stores.flatten import scalars, with_dates
from indexer.stores.local import queries
from indexer.stores.local.connections import DATES_SINCE
from indexer.stores.local.generation import loss, problem_of_file
from indexer.stores.local.segments import seal
from indexer.stores.local.segments.faiss_segment import FaissSegment
from indexer.stores.local.segments.files import stamp, verify
from indexer.stores.local.views import Part, View, Views
from indexer.stores.local.words import files as word_files
from indexer.stores.port import CheckReport
from indexer.stores.setting_rows import unreadable
from indexer.stores.vectors import checksum

if TYPE_CHECKING:
    from indexer.stores.local.catalog import Catalog

_SAMPLE_ROWS = 256
"""Rows of a segment that are compared with the catalog. Its file also has a checksum."""

_WRONG_TYPES = (AttributeError, TypeError, ValueError)
"""The errors of hashing or parsing a value of another type than its column has: SQLite stores any type anywhere."""


@dataclass(frozen=True, slots=True)
class _Findings:
    """The problems that were found, grouped by the repair that each needs.

    Attributes:
        loss: message about commits that are missing.
        catalog: messages about problems that cannot be repaired.
        damaged_documents: uris of documents to be embedded again.
        wrong_fields: uris of documents whose filter fields are to be rewritten.
        wrong_counts: messages about numbers of documents.
        segments: messages about segments to be rebuilt.
        words: messages about a word index to be rebuilt.
    """

    loss: list[str]
    catalog: list[str]
    damaged_documents: list[str]
    wrong_fields: list[str]
    wrong_counts: list[str]
    segments: list[str]
    words: list[str]
    notes: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        return (
            *self.loss,
            *self.catalog,
            *(str(damage_of(uri)) for uri in self.damaged_documents),
            *(f"{uri}: filters do not see its metadata as it is stored" for uri in self.wrong_fields),
            *self.wrong_counts,
            *self.segments,
            *self.words,
        )


def check(view: View, folder: Path, meaning: Meaning | None) -> CheckReport:
    """Verify SQLite, every row, every segment against its record and its rows, and the word index.

    Args:
        meaning: what the hashes of embedded content were made with; None leaves those out.
    """
    findings = _find(view, folder, meaning)
    return CheckReport(findings.problems, findings.notes)


def repair(catalog: Catalog, views: Views, meaning: Meaning | None) -> CheckReport:
    """Check, rebuild what is derived, and have damaged documents embedded again by the next run over their source.

    Returns:
        The problems that are left, and notes that also say what was repaired.
    """
    with views.view() as view:
        findings, lost = _find(view, views.folder, meaning), view.lost
    catalog.mark_damaged(findings.damaged_documents)
    catalog.rewrite_fields(findings.wrong_fields)
    if findings.loss:
        catalog.forget_loss()
    if findings.wrong_counts:
        catalog.recount()
    if findings.segments:
        seal.rewrite(catalog, views, "auto", force=True)
    if findings.segments or findings.words:
        word_files.catch_up(catalog, views, thorough=True)
    else:
        _restamp(catalog, views)
    damaged, fields = findings.damaged_documents, findings.wrong_fields
    repairs = {
        f"no longer reports {lost} missing commit(s); index the sources again if you have not yet": findings.loss,
        f"{len(damaged)} damaged document(s) will be embedded again when their source is indexed again": damaged,
        "counted the documents": findings.wrong_counts,
        f"wrote the filters' rows of {len(fields)} document(s) again": fields,
        f"rebuilt {len(findings.segments)} damaged segment(s)": findings.segments,
        "rebuilt the word index": findings.words,
    }
    if not any(repairs.values()):
        return CheckReport(findings.problems, findings.notes)
    with views.view() as view:
        remaining = _find(view, views.folder, meaning)
    done = (message for message, problems in repairs.items() if problems)
    return CheckReport(remaining.problems, (*done, *remaining.notes))


def _find(view: View, folder: Path, meaning: Meaning | None) -> _Findings:
    damaged = list(dict.fromkeys([*_passages(view), *_documents(view, meaning)]))
    word_problems, word_notes = word_files.check(view, folder)
    return _Findings(
        loss=[loss(folder, view.lost)] if view.lost else [],
        catalog=list(_catalog(view)),
        damaged_documents=damaged,
        wrong_fields=list(_fields(view)),
        wrong_counts=list(_counts(view)),
        segments=list(_segments(view, folder, compare=not damaged)),
        words=word_problems,
        notes=(*_notes(view, folder), *word_notes),
    )


def _catalog(view: View) -> Iterator[str]:
    """Yield the problems that SQLite's own check reports, and broken references."""
    for (line,) in view.connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"catalog.db: {line}"
    for table, rowid, parent, _ in view.connection.execute("PRAGMA foreign_key_check"):
        yield f"catalog.db: row {rowid} of {table} refers to no {parent}"


def _counts(view: View) -> Iterator[str]:
    (count,) = view.connection.execute("SELECT count(*) FROM document").fetchone()
    if count != view.state.documents:
        yield f"catalog.db: holds {count} documents and says {view.state.documents}"


def _passages(view: View) -> Iterator[str]:
    """Yield the uris of documents with a passage that does not match its checksum."""
    cursor = view.connection.execute(
        "SELECT p.document_id, p.start, p.end, p.checksum, p.vector, t.text, d.uri FROM passage p"
        " JOIN document_text t ON t.document_id = p.document_id JOIN document d ON d.id = p.document_id"
        " ORDER BY p.document_id"
    )
    for _, start, end, recorded, vector, text, uri in cursor:
        try:
            sound = checksum(text[start:end], vector) == recorded
        except _WRONG_TYPES:
            sound = False
        if not sound:
            yield uri


def _documents(view: View, meaning: Meaning | None) -> Iterator[str]:
    """Yield the uris of documents whose row does not match its hash; of embedded ones also title and text."""
    for row in queries.rows_of_documents(view):
        if not row.is_sound(meaning):
            yield row.uri


def _fields(view: View) -> Iterator[str]:
    """Yield the uris of documents whose filter fields differ from their metadata."""
    cursor = view.connection.execute(
        "SELECT v.document_id, f.name, f.type, v.value FROM field_value v JOIN field f ON f.id = v.field_id"
        " ORDER BY v.document_id"
    )
    groups = groupby(cursor, itemgetter(0))
    id_, rows = next(groups, (None, ()))
    keeps_dates = queries.format_version(view) >= DATES_SINCE
    documents = view.connection.execute("SELECT id, uri, metadata, modified FROM document ORDER BY id")
    for document_id, uri, metadata, modified in documents:
        while id_ is not None and id_ < document_id:  # rows of no document do no harm
            id_, rows = next(groups, (None, ()))
        stored = set()
        if id_ == document_id:
            stored = {row[1:] for row in rows}
            id_, rows = next(groups, (None, ()))
        # Metadata that is not a JSON object does not match the row's hash, and is reported for that.
        with suppress(BadInput, *_WRONG_TYPES):
            expected = scalars(uri, json.loads(metadata))
            if set(with_dates(expected, modified) if keeps_dates else expected) != stored:
                yield uri


def _segments(view: View, folder: Path, compare: bool) -> Iterator[str]:
    """Yield the problems of segments; `compare` their vectors with the catalog only where its rows are sound."""
    for part, row in zip(view.state.parts, queries.segments(view), strict=False):
        try:
            verify(folder / "segments", row.recorded, thorough=True)
        except IndexDamaged as error:
            yield str(error)
        else:
            yield from _compare_vectors(view, part) if compare else ()


def _compare_vectors(view: View, part: Part) -> list[str]:
    """Return the problem of a segment whose vectors differ from those in the catalog, in a sample of its rows."""
    if not isinstance(part.segment, FaissSegment):
        return []
    passages = part.positions.passages
    sample = np.setdiff1d(np.linspace(0, len(passages) - 1, _SAMPLE_ROWS).astype(np.int64), part.dead)
    exist, stored = queries.vectors_by_id(view, passages[sample])
    if exist.all() and np.array_equal(part.segment.rows(sample), stored):
        return []
    return [f"segment {part.file}: does not hold the vectors of its passages; likewise compact writes it again"]


def _notes(view: View, folder: Path) -> list[str]:
    """Return what is worth knowing but is not a problem: orphaned files, unreadable settings, an unfinished run."""
    named = {row.recorded.file for row in queries.segments(view)}
    orphans = sum(path.stem not in named for path in (folder / "segments").glob("*"))
    problem = problem_of_file(folder)
    notes = [f"the file generation {problem}, so commits that are missing would go unnoticed"] if problem else []
    notes += [f"{orphans} file(s) in segments/ belong to nothing; the next writer removes them"] if orphans else []
    rows = queries.setting_rows(view)
    notes += [
        f"the setting {name!r} cannot be read and is left out; the next run measures it again, or tune learns it"
        for name in unreadable(rows)
    ]
    if queries.run_is_unfinished(rows):
        notes.append("the last indexing run did not finish; run it again to continue")
    return notes


def _restamp(catalog: Catalog, views: Views) -> None:
    """Record new stamps of sound files that were moved or copied: they are no longer hashed at every opening."""
    folder = views.folder
    with views.view() as view:
        files = [row.recorded for row in queries.segments(view)]
        moved = {f.file: now for f in files if (now := stamp(folder / "segments", f.file)) != f.stamp}
        row = word_files.read_record(view)
    if moved:
        catalog.restamp(moved)
    if row is not None and word_files.stamp(folder, row) != row.stamp:
        catalog.restamp_words(word_files.stamp(folder, row))
