"""The word index in a folder: derived from the catalog as segments are, and replaced as a whole.

words/NAME/documents and words/NAME/passages are two indexes of tantivy_index.py. The catalog's row names the index that
counts, with its checksums and the passage id up to which it is complete. Everything else in words/ is swept. Each
reader applies later additions and removals to an index of its own (reader.py).
"""

from __future__ import annotations

import json
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.columns import searched_columns
from indexer.errors import IndexDamaged, count_of, storage_error
from indexer.stores.local.catalog.views import View, Views
from indexer.stores.local.catalog.word_files import WordFiles
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.segments.files import sha256_of, stamp_of, sync
from indexer.stores.words.analysis import Analysis, stored_analysis

if TYPE_CHECKING:
    from indexer.stores.local.catalog.catalog import Catalog
    from indexer.stores.words.tantivy_index import Engine, IndexedText

CATCH_UP_PASSAGES = 4096
"""Minimum changed passages before a writer catches up while documents are added. Every reader would need half a second
to add this many by itself."""

MAX_DELETED_SHARE = 0.2
"""Maximum share of deleted passages. Above it, the word index is rebuilt at the end of a run."""


def read_record(view: View) -> WordFiles | None:
    """Return the record of the word index that the catalog names; None if there is no word index yet."""
    row = view.connection.execute("SELECT * FROM word_index").fetchone()
    return WordFiles(*row) if row else None


def analysis_of(view: View) -> Analysis:
    """Return the analysis that turns text into terms in this index."""
    return stored_analysis(view.state.settings.language)


def dead_ids(view: View) -> list[int]:
    """Return the ids of passages that are in the word index but no longer exist."""
    return [id_ for (id_,) in view.connection.execute("SELECT passage_id FROM dead_word")]


def paths(folder: Path, row: WordFiles) -> list[Path]:
    return [folder / "words" / row.name / file for file in json.loads(row.files)]


def verify(folder: Path, row: WordFiles, *, thorough: bool = False) -> None:
    """Compare the files with their record: always that they exist, their content if it may have changed.

    Args:
        thorough: compare the content in any case.

    Raises:
        IndexDamaged: a file is missing, or is not what was written.
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


def check(view: View, folder: Path) -> tuple[list[str], list[str]]:
    """Return the problems of the word index, and notes about it."""
    row = read_record(view)
    if row is None:
        return [], []
    try:
        verify(folder, row, thorough=True)
    except IndexDamaged as error:
        return [str(error)], []
    (lag,) = view.connection.execute("SELECT count(*) FROM passage WHERE id > ?", (row.last_id,)).fetchone()
    if row.analysis != str(analysis_of(view)):
        note = "the word index is of an earlier version and is not used; the next indexing run or compact renews it"
        return [], [note]
    behind = f"the word index lags {count_of(lag, 'passage')} behind"
    return [], [f"{behind}; readers add them, the next indexing run or compact writes them"] if lag else []


def texts_after(view: View, after: int, analysis: Analysis) -> Iterator[tuple[IndexedText, list[IndexedText]]]:
    """Yield every document whose passages have ids above `after`, under the id of its first passage, and its passages.

    Raises:
        IndexDamaged: a passage has no document.
    """
    from indexer.stores.words.tantivy_index import indexed_texts

    rows = view.connection.execute(
        "SELECT document_id, id, start, stop FROM passage WHERE id > ? ORDER BY id", (after,)
    )
    for document, grouped in groupby(rows, itemgetter(0)):
        spans = list(grouped)
        row = view.connection.execute(
            "SELECT d.title, d.format, d.metadata, t.text"
            " FROM document d JOIN document_text t ON t.document_id = d.id WHERE d.id = ?",
            (document,),
        ).fetchone()
        if row is None or not isinstance(row[3], str):
            raise view.damage("a passage has lost its document")
        title, format_, metadata, text = row
        columns = searched_columns(format_, metadata) if view.state.settings.columns_searched else []
        yield indexed_texts(document, title, columns, text, format_, [span[1:] for span in spans], analysis)


def catch_up(
    catalog: Catalog,
    views: Views,
    min_changes: int = CATCH_UP_PASSAGES,
    max_deleted_share: float | None = None,
    *,
    thorough: bool = False,
) -> None:
    """Bring the word index up to the catalog if enough passages have changed, and rebuild a damaged word index.

    Args:
        min_changes: minimum changed passages. With fewer, the word index is not written.
        max_deleted_share: maximum share of deleted passages. Above it, the word index is rebuilt from the catalog. 0
            also rebuilds a word index that would then have fewer pieces; None never rebuilds it for this reason.
        thorough: hash its files to learn whether they are damaged.

    Raises:
        StorageError: the disk refused; the earlier word index is still used.
    """
    with views.view() as view:
        current, base = read_record(view), _usable_record(views.folder, view, thorough)
        removed = dead_ids(view) if base is not None else []
        (changes,) = view.connection.execute(
            "SELECT count(*) FROM passage WHERE id > ?", (base.last_id if base is not None else 0,)
        ).fetchone()
        changes += len(removed)
        if base is not None and max_deleted_share is not None:
            deleted = base.removed + len(removed)
            fragmented = max_deleted_share == 0 and (base.appended or changes)
            if deleted > max_deleted_share * view.state.passages or fragmented:
                base, changes = None, max(changes, min_changes)
        if changes < min_changes and (base is not None or current is None):
            return
        record = _write(views.folder, view, analysis_of(view), base, removed)
    catalog.add_words(record)
    # A reader that has just begun may be about to open the earlier index. Compaction frees its space all the same.
    sweep(views, spared=current.name if current is not None and max_deleted_share != 0 else "")


def _usable_record(folder: Path, view: View, thorough: bool) -> WordFiles | None:
    row = read_record(view)
    if row is None or row.analysis != str(analysis_of(view)):
        return None
    try:
        verify(folder, row, thorough=thorough)
    except IndexDamaged:
        return None
    return row


def _write(folder: Path, view: View, analysis: Analysis, base: WordFiles | None, removed: list[int]) -> WordFiles:
    """Write an index under a new name: the whole catalog, or `base` with the changes since it was written.

    Args:
        removed: passages that are in `base` but no longer exist.
    """
    from indexer.stores.words.tantivy_index import UNITS, link_indexes, open_indexes

    name = secrets.token_hex(8)
    target, temporary = folder / "words" / name, folder / "words" / f"{name}.tmp"
    digests: dict[str, str] = {}
    try:
        for unit in UNITS:
            (temporary / unit).mkdir(parents=True)
        if base is not None:
            link_indexes(paths(folder, base), temporary)
            digests = {file: digest for file, digest in json.loads(base.files).items() if not file.endswith(".json")}
        indexes = open_indexes(temporary, analysis)
        last_id = fill(indexes, view, analysis, base.last_id if base is not None else 0, removed)
        files = sorted(path for path in temporary.glob("*/*") if path.suffix != ".lock")
        _let_others_read(files, like=temporary)
        for path in (*files, *(temporary / unit for unit in UNITS), temporary):
            sync(path)
        names = [str(path.relative_to(temporary)) for path in files]
        digests = {file: digests.get(file) or sha256_of([temporary / file]) for file in names}
        failpoint("words.written")
        temporary.rename(target)
        sync(target.parent)
        failpoint("words.renamed")
    except (OSError, RuntimeError, ValueError) as error:  # the engine raises ValueError for a full disk
        shutil.rmtree(temporary, ignore_errors=True)
        message = f"{target}: could not be written ({error}); free some space and run again"
        raise storage_error(message, error) from error
    deleted, appended = (base.removed + len(removed), base.appended + 1) if base is not None else (0, 0)
    new_stamp = stamp_of(target / file for file in digests)
    return WordFiles(name, str(analysis), last_id, deleted, appended, json.dumps(digests), new_stamp)


def _let_others_read(files: Sequence[Path], like: Path) -> None:
    """Give files the permissions of a new file. The engine makes some files that only their owner may read.

    Args:
        like: a folder that was made with the umask of this process, which can be learned only by changing it.
    """
    mode = like.stat().st_mode & 0o666
    for file in files:
        # Links to files of the earlier index may be another user's, who alone may change their permissions.
        if stat.S_IMODE(file.stat().st_mode) != mode:
            with suppress(PermissionError):
                file.chmod(mode)


def fill(indexes: Sequence[Engine], view: View, analysis: Analysis, after: int, removed: list[int]) -> int:
    """Bring the two indexes, of documents and of passages, up to a view.

    Args:
        after: the highest passage id in them so far.
        removed: passages that are in them but no longer exist.

    Returns:
        The highest passage id in them now.
    """
    from indexer.stores.words.tantivy_index import update_indexes

    added = update_indexes(indexes, removed, texts_after(view, after, analysis))
    return added[-1][1] if added else after


def sweep(views: Views, spared: str = "") -> None:
    """Remove everything in words/ that the catalog does not name. Readers keep what they have open until they close it.

    Args:
        spared: name of an index to leave for now.
    """
    with views.view() as view:
        row = read_record(view)
    for path in (views.folder / "words").glob("*"):
        if path.name != spared and (row is None or path.name != row.name):
            shutil.rmtree(path, ignore_errors=True)
    failpoint("words.swept")
