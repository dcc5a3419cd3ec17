"""The statements over the catalog that only SQLite needs: passages in order of their ids, and segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from indexer.errors import IndexDamaged
from indexer.records import Vector
from indexer.stores.local.catalog.views import View
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.port import Ids
from indexer.stores.vectors import from_blobs


def run_is_unfinished(rows: Mapping[str, str]) -> bool:
    """Return whether the last indexing run did not finish.

    Args:
        rows: the settings by name.

    Raises:
        IndexDamaged: the setting is missing or cannot be read.
    """
    if not {"run", "finished_run"} <= rows.keys():
        raise IndexDamaged(
            "catalog.db: has lost the number of its last run; restore a backup, or remove the index and index again"
        )
    return rows["run"] != rows["finished_run"]


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


# info


class SegmentRow(NamedTuple):
    """A segment of the catalog: it holds the passages from `first_id` to `last_id`; `alive` of them still exist."""

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
