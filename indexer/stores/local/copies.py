"""The copy of a store while it is read and written."""

from __future__ import annotations

import errno
import secrets
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from indexer.errors import IndexDamaged
from indexer.stores.local.catalog import moves, queries
from indexer.stores.local.catalog.generation import loss
from indexer.stores.local.catalog.views import Views
from indexer.stores.local.catalog.word_files import WordFiles
from indexer.stores.local.segments.files import SegmentFile, paths, stamp, stamp_of, verify
from indexer.stores.local.words import files as word_files

_MAX_TRIES = 10


def copy_store(views: Views, target: Path) -> tuple[str, ...]:
    """Copy the catalog as of one commit, with the files it names, into the folder of an empty index.

    Segments are copied, not linked: a link changes the times of the original, which would then be hashed at every
    opening. The copy has a history of its own, because from now on both give the same ids to different documents.

    Returns:
        One note per segment, and one for the word index, that is damaged or missing in the copy; and one if the
        original has lost commits, which the copy reports too.

    Raises:
        OSError: the copy cannot be written.
    """
    missing: list[Path] = []
    for _ in range(_MAX_TRIES):
        with views.view() as view, closing(sqlite3.connect(target / "catalog.db")) as copy:
            try:
                view.connection.backup(copy)
                with copy:  # the copy leaves its files where they are
                    if view.connection.move is not None:
                        moves.carry(copy, view.connection.move)
                    copy.execute("UPDATE setting SET value = ? WHERE name = 'home'", (moves.home_of(target),))
            except sqlite3.OperationalError as error:  # an error of the copy: damage of the original is another class
                raise OSError(errno.EIO, str(error)) from error
            lost = view.lost
            segments, words = [row.recorded for row in queries.segments(view)], word_files.read_record(view)
        files = [path for row in segments for path in paths(views.folder / "segments", row.file)]
        files += [] if words is None else word_files.paths(views.folder, words)
        earlier, missing = missing, [path for path in files if not _copy(path, target / path.relative_to(views.folder))]
        # Files that are missing twice are lost. Otherwise a writer may have replaced them since the view began.
        if not missing or missing == earlier:
            break
    named = {target / path.relative_to(views.folder) for path in files}
    for path in [*target.glob("segments/*"), *target.glob("words/*/*/*")]:
        if path not in named:
            path.unlink()
    for name in ("encoder", "derived"):
        if (views.folder / name).is_dir():
            shutil.copytree(views.folder / name, target / name)
    from indexer.stores.local.catalog.catalog import Catalog  # only writers need it

    catalog = Catalog(target / "catalog.db")
    catalog.set("history", secrets.token_hex(8))
    if lost:
        catalog.set("lost", str(lost))
    notes = {row: note for row in (*segments, words) if row is not None and (note := _damage(target, row))}
    catalog.restamp({row.file: stamp(target / "segments", row.file) for row in segments if row not in notes})
    if words is not None and words not in notes:
        catalog.restamp_words(stamp_of(word_files.paths(target, words)))
    catalog.close()
    return (*([loss(views.folder, lost)] if lost else ()), *notes.values())


def _copy(source: Path, target: Path) -> bool:
    """Copy a file that is not copied yet; return False if it does not exist."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            return False
    return True


def _damage(target: Path, row: SegmentFile | WordFiles) -> str:
    """Return a note if a copied file differs from the recorded file. It keeps its old stamp, so that readers hash it
    too."""
    try:
        if isinstance(row, SegmentFile):
            verify(target / "segments", row, thorough=True)
        else:
            word_files.verify(target, row, thorough=True)
    except IndexDamaged as error:
        return f"{error}; the next writer to the copy rebuilds it"
    return ""
