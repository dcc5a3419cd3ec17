"""The word index in a folder: derived from the catalog as segments are, and replaced as a whole.

words/NAME/documents and words/NAME/passages are two indexes of tantivy_index.py. The catalog's row names the one that
counts, with its checksum and the passage id up to which it has caught up; whatever else lies in words/ is swept. What
came or went since then, readers add for themselves (reader.py).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import IndexDamaged, StorageError
from indexer.stores.analysis import Analysis, stored_analysis
from indexer.stores.local.failpoint import failpoint
from indexer.stores.local.segments.files import sha256_of, stamp_of, sync
from indexer.stores.local.views import Snapshots, View
from indexer.stores.local.words.record import WordFiles

if TYPE_CHECKING:
    from indexer.stores.local.catalog import Catalog
    from indexer.stores.local.words.tantivy_index import Engine, Unit

UNITS = ("documents", "passages")

CATCH_UP_AT = 4096
"""Changed passages that a writer adds while documents come in: every reader would take half a second for them."""

WORN = 0.2
"""Share of deleted passages from which it is made anew at the end of a run."""


def recorded(view: View) -> WordFiles | None:
    """The word index that the catalog names; None where there is none yet."""
    try:
        row = view.connection.execute("SELECT * FROM word_index").fetchone()
    except sqlite3.OperationalError:  # an index that no writer has met since there are word indexes
        return None
    return WordFiles(*row) if row else None


def language(view: View) -> Analysis:
    """How text becomes terms in this index."""
    return stored_analysis(view.state.settings.language)


def dead(view: View) -> list[int]:
    """Passages that exist no more, of those in the word index."""
    return [id_ for (id_,) in view.connection.execute("SELECT passage_id FROM dead_word")]


def paths(folder: Path, row: WordFiles) -> list[Path]:
    return [folder / "words" / row.name / file for file in json.loads(row.files)]


def verify(folder: Path, row: WordFiles, *, thorough: bool = False) -> None:
    """Compare the files with their record: always that they are there, their content when it may have changed.

    Raises:
        IndexDamaged: one is missing, or not what was written.
    """
    try:
        if thorough or stamp(folder, row) != row.stamp:
            for path, digest in zip(paths(folder, row), json.loads(row.files).values(), strict=True):
                if sha256_of([path]) != digest:
                    raise IndexDamaged(f"word index {path}: does not match its checksum")
    except OSError as error:
        raise IndexDamaged(f"word index {error.filename}: cannot be read ({error.strerror})") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise IndexDamaged(f"word index {row.name}: its record in catalog.db is damaged") from error


def stamp(folder: Path, row: WordFiles) -> str:
    return stamp_of(paths(folder, row))


def state(view: View, folder: Path) -> tuple[list[str], list[str]]:
    """What is wrong with the word index, and what is worth knowing of it."""
    row = recorded(view)
    if row is None:
        return [], []
    try:
        verify(folder, row, thorough=True)
    except IndexDamaged as error:
        return [str(error)], []
    (new,) = view.connection.execute("SELECT count(*) FROM passage WHERE id > ?", (row.last_id,)).fetchone()
    if row.analysis != str(language(view)):
        return [], ["the word index is of an earlier version and lies idle; the next indexing run or compact renews it"]
    lagging = (
        f"the word index lags {new} passage(s) behind; readers add them, the next indexing run or compact writes them"
    )
    return [], [lagging] if new else []


def units(view: View, after: int, analysis: Analysis) -> Iterator[tuple[Unit, list[Unit]]]:
    """Every document whose passages come after an id, by the id of its first, and its passages.

    Documents and passages are found by their title too.
    """
    from indexer.stores.local.words.tantivy_index import Unit

    rows = view.connection.execute("SELECT document_id, id, start, end FROM passage WHERE id > ? ORDER BY id", (after,))
    for document, spans in groupby(rows, itemgetter(0)):
        found = view.connection.execute(
            "SELECT d.title, t.text FROM document d JOIN document_text t ON t.document_id = d.id WHERE d.id = ?",
            (document,),
        ).fetchone()
        if found is None or not isinstance(found[1], str):
            raise IndexDamaged("catalog.db: a passage has lost its document; likewise check says which")
        title, text = found
        whole = analysis.words(f"{title} {text}")
        passages = [
            Unit(id_, document, whole if end - start == len(text) else analysis.words(f"{title} {text[start:end]}"))
            for _, id_, start, end in spans
        ]
        yield Unit(passages[0].id, document, whole), passages


def catch_up(
    catalog: Catalog,
    snapshots: Snapshots,
    least: int = CATCH_UP_AT,
    worn: float | None = None,
    *,
    thorough: bool = False,
) -> None:
    """Bring the word index up to the catalog where `least` passages have changed; write a damaged one anew.

    Args:
        worn: the share of deleted passages from which it is written anew; 0 leaves it in as few pieces as can be.
        thorough: hash it, to tell whether it is damaged.

    Raises:
        StorageError: the disk refused; what was there is still used.
    """
    with snapshots.view() as view:
        named, row = recorded(view), _usable(snapshots.folder, view, thorough)
        gone = dead(view) if row is not None else []
        (changed,) = view.connection.execute(
            "SELECT count(*) FROM passage WHERE id > ?", (row.last_id if row is not None else 0,)
        ).fetchone()
        changed += len(gone)
        if row is not None and worn is not None:
            removed = row.removed + len(gone)
            if removed > worn * view.state.passages or (worn == 0 and (row.appended or changed)):
                row, changed = None, max(changed, least)
        if changed < least and (row is not None or named is None):
            return
        written = _write(snapshots.folder, view, language(view), row, gone)
    catalog.add_words(written)
    # A reader that has just begun may be about to open the one before; compaction gives its space back all the same.
    sweep(snapshots, spared=named.name if named is not None and worn != 0 else "")


def _usable(folder: Path, view: View, thorough: bool) -> WordFiles | None:
    row = recorded(view)
    if row is None or row.analysis != str(language(view)):
        return None
    try:
        verify(folder, row, thorough=thorough)
    except IndexDamaged:
        return None
    return row


def _write(folder: Path, view: View, analysis: Analysis, row: WordFiles | None, gone: list[int]) -> WordFiles:
    """A new index under a new name: all of the catalog, or what `row` has with what has changed since."""
    from indexer.stores.local.words.tantivy_index import opened

    name = secrets.token_hex(8)
    target, temporary = folder / "words" / name, folder / "words" / f"{name}.tmp"
    known: dict[str, str] = {}
    try:
        for unit in UNITS:
            (temporary / unit).mkdir(parents=True)
        if row is not None:
            # The engine never changes a file of terms: links will do, and only the lists of files are copied.
            for path, (file, digest) in zip(paths(folder, row), json.loads(row.files).items(), strict=True):
                if path.suffix == ".json":
                    shutil.copy(path, temporary / file)
                else:
                    _linked_or_copied(path, temporary / file)
                    known[file] = digest
        indexes = [opened(temporary / unit, analysis) for unit in UNITS]
        last = fill(indexes, view, analysis, row.last_id if row is not None else 0, gone)
        found = sorted(path for path in temporary.glob("*/*") if path.suffix != ".lock")
        for path in (*found, *(temporary / unit for unit in UNITS), temporary):
            sync(path)
        names = [str(path.relative_to(temporary)) for path in found]
        files = {file: known.get(file) or sha256_of([temporary / file]) for file in names}
        failpoint("words.written")
        temporary.rename(target)
        sync(target.parent)
        failpoint("words.renamed")
    except (OSError, RuntimeError, ValueError) as error:  # the engine raises ValueError for a full disk
        shutil.rmtree(temporary, ignore_errors=True)
        raise StorageError(f"{target}: could not be written ({error}); free some space and run again") from error
    removed, appended = (row.removed + len(gone), row.appended + 1) if row is not None else (0, 0)
    seen = stamp_of(target / file for file in files)
    return WordFiles(name, str(analysis), last, removed, appended, json.dumps(files), seen)


def _linked_or_copied(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # some file systems know no links; a full one refuses the copy too
        shutil.copyfile(path, target)


def fill(indexes: Sequence[Engine], view: View, analysis: Analysis, after: int, gone: list[int]) -> int:
    """Bring the two indexes, of documents and of passages, up to a view; the highest passage id in them.

    Args:
        after: the highest that was.
        gone: passages in them that exist no more.
    """
    from indexer.stores.local.words.tantivy_index import Writing

    writings = [Writing(index) for index in indexes]
    for writing in writings:
        writing.remove(gone)
    for document, passages in units(view, after, analysis):
        writings[0].add(document)
        for passage in passages:
            writings[1].add(passage)
        after = passages[-1].id
    for writing in writings:
        writing.commit()
    return after


def sweep(snapshots: Snapshots, spared: str = "") -> None:
    """Unlink what the catalog does not name. Readers that have it open keep it until they let go."""
    with snapshots.view() as view:
        row = recorded(view)
    for path in (snapshots.folder / "words").glob("*"):
        if path.name != spared and (row is None or path.name != row.name):
            shutil.rmtree(path, ignore_errors=True)
    failpoint("words.swept")
