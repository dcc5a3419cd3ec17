"""The checks of `likewise check`, and the repair: everything derived from documents and vectors can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from indexer.errors import IndexDamaged, count_of
from indexer.settings import Meaning
from indexer.stores.local import seal
from indexer.stores.local.catalog import queries
from indexer.stores.local.catalog.generation import loss, problem_of_file
from indexer.stores.local.catalog.views import Part, View, Views
from indexer.stores.local.disk.drafts import notes_on_abandoned
from indexer.stores.local.segments.faiss_segment import FaissSegment
from indexer.stores.local.segments.files import stamp, verify
from indexer.stores.local.words import files as word_files
from indexer.stores.port import CheckReport
from indexer.stores.reading.checks import Findings, setting_notes, wrong_documents
from indexer.stores.reading.document_rows import vectors_by_id

if TYPE_CHECKING:
    from indexer.stores.local.catalog.catalog import Catalog

_SAMPLE_ROWS = 256
"""Number of rows of a segment that are compared with the catalog. The whole file has a checksum too."""


def repair(catalog: Catalog, views: Views, meaning: Meaning | None) -> CheckReport:
    """Check, rebuild what is derived, and make the next run over their source embed damaged documents again.

    Returns:
        The problems that are left, and notes that also say what was repaired.
    """
    with views.view() as view:
        findings, lost = find(view, views.folder, meaning), view.lost
    catalog.mark_damaged(findings.damaged)
    catalog.rewrite_fields(findings.wrong_fields)
    losses, counts = findings.first["loss"], findings.last["counts"]
    segments, words = findings.last["segments"], findings.last["words"]
    if losses:
        catalog.forget_loss()
    if counts:
        catalog.recount()
    if segments:
        seal.rewrite(catalog, views, "auto", force=True)
    if segments or words:
        word_files.catch_up(catalog, views, thorough=True)
    else:
        _restamp(catalog, views)

    def again() -> Findings:
        with views.view() as view:
            return find(view, views.folder, meaning)

    repairs = {
        f"no longer reports {count_of(lost, 'missing commit')}; index the sources again if you have not yet": losses,
        "counted the documents": counts,
        f"rebuilt {count_of(len(segments), 'damaged segment')}": segments,
        "rebuilt the word index": words,
    }
    return findings.repaired(repairs, again)


def find(view: View, folder: Path, meaning: Meaning | None) -> Findings:
    """Verify SQLite, every row, every segment against its record and its rows, and the word index.

    Args:
        meaning: what the hashes of embedded content were made with; None leaves those out.
    """
    damaged, wrong_fields = wrong_documents(view, meaning)
    word_problems, word_notes = word_files.check(view, folder)
    return Findings(
        damaged=damaged,
        wrong_fields=wrong_fields,
        first={"loss": [loss(folder, view.lost)] if view.lost else [], "catalog": list(_catalog(view))},
        last={
            "counts": list(_counts(view)),
            "segments": list(_segments(view, folder, compare=not damaged)),
            "words": word_problems,
        },
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
        yield f"catalog.db: holds {count_of(count, 'document')} and says {view.state.documents}"


def _segments(view: View, folder: Path, compare: bool) -> Iterator[str]:
    """Yield the problems of segments; `compare` their vectors with the catalog only if its rows are sound."""
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
    with suppress(IndexDamaged):  # a passage may be missing
        if np.array_equal(part.segment.rows(sample), vectors_by_id(view, passages[sample])):
            return []
    return [f"segment {part.file}: does not hold the vectors of its passages; likewise compact writes it again"]


def _notes(view: View, folder: Path) -> list[str]:
    """Return facts that are not problems: orphaned files, unreadable settings, an unfinished run."""
    named = {row.recorded.file for row in queries.segments(view)}
    orphans = sum(path.stem not in named for path in (folder / "segments").glob("*"))
    problem = problem_of_file(folder)
    notes = [f"the file generation {problem}, so commits that are missing would go unnoticed"] if problem else []
    if orphans:
        notes.append(
            f"{count_of(orphans, 'file')} in segments/ without an owner; the next writer removes what is unused"
        )
    notes += notes_on_abandoned(folder.resolve())
    rows = dict(view.connection.execute("SELECT name, value FROM setting"))
    return notes + setting_notes(rows, unfinished_run=queries.run_is_unfinished(rows))


def _restamp(catalog: Catalog, views: Views) -> None:
    """Record new stamps of sound files that were moved or copied, so that they are not hashed at every opening."""
    folder = views.folder
    with views.view() as view:
        files = [row.recorded for row in queries.segments(view)]
        moved = {f.file: now for f in files if (now := stamp(folder / "segments", f.file)) != f.stamp}
        row = word_files.read_record(view)
    if moved:
        catalog.restamp(moved)
    if row is not None and word_files.stamp(folder, row) != row.stamp:
        catalog.restamp_words(word_files.stamp(folder, row))
