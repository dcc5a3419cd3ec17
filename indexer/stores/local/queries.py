"""The statements over the catalog that only SQLite needs: segments, filters as flags, and numbers for `info`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexer.errors import IndexDamaged
from indexer.filters.tree import And, Not, Or, Scalar, Where, render
from indexer.records import Vector
from indexer.stores.filter_sql import compile_where
from indexer.stores.local.filter_sql import SqliteDialect, select_ids
from indexer.stores.local.masks import AllowedRows, Flags, make_mask
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.local.views import View
from indexer.stores.port import Ids
from indexer.stores.vectors import from_blobs


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


def format_version(view: View) -> int:
    (version,) = view.connection.execute("PRAGMA user_version").fetchone()
    return int(version)


# vectors


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


def highest_id(view: View) -> int:
    """Return the highest passage id that was ever given."""
    row = view.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'passage'").fetchone()
    return int(row[0]) if row else 0


def has_origins(view: View) -> bool:
    """Return whether there is a table of origins: no writer may have opened this index since there is one."""
    return bool(view.rows("SELECT 1 FROM sqlite_master WHERE name = 'origin'"))


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
