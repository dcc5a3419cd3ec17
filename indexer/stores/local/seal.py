"""Sealing: vectors move from the tail into segments, and segments into larger ones; unused files are removed.

Small exact segments are sealed while documents are added. Approximate ones take longer to build, so they are built
by `compact` and at the end of an indexing run, never inside an add. Use under the writer lock.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.settings import DEFAULT_RECALL
from indexer.stores.local.catalog import queries
from indexer.stores.local.catalog.rows import highest_id
from indexer.stores.local.catalog.views import View, Views
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.segments.faiss_segment import APPROXIMATE, EXACT, MIN_APPROXIMATE_ROWS, build
from indexer.stores.local.segments.files import SegmentFile

if TYPE_CHECKING:
    from indexer.stores.local.catalog.catalog import Catalog

SEAL_PASSAGES = 8192
"""Minimum passages in the tail before the tail is sealed: a scan of this many takes about a millisecond."""

MAX_MERGED_PASSAGES = 65_536
"""Maximum passages of a segment that is merged while documents are added: writing more would be a noticeable pause."""

APPROXIMATE_PASSAGES = 100_000
"""Minimum passages for an approximate segment: scanning this many takes 7 ms, an approximate search less than 1 ms."""

MAX_DEAD_SHARE = 0.2
"""Maximum share of dead passages. Above it, segments are rewritten at the end of a run."""

_BATCH_ROWS = 8192


def seal(catalog: Catalog, views: Views, min_passages: int = SEAL_PASSAGES) -> None:
    """Put the tail into an exact segment, together with segments that are not much larger; rebuild damaged segments.

    A segment is merged only if it is at most twice as large. So each vector is written a logarithmic number of times.

    Args:
        min_passages: a shorter tail is left as it is.
    """
    with views.view() as view:
        if view.state.damaged:
            _build(catalog, views.folder, view, 0, EXACT)
            return sweep(views)
        segments = queries.segments(view)
        passages = view.state.passages - sum(row.alive for row in segments)
        if passages < min_passages:
            return
        first_id = view.state.sealed + 1
        for row in reversed(segments):
            if row.recorded.kind != EXACT or row.alive > min(2 * passages, MAX_MERGED_PASSAGES - passages):
                break
            passages += row.alive
            first_id = row.first_id
        _build(catalog, views.folder, view, first_id, EXACT)
    sweep(views)


def settle(catalog: Catalog, views: Views) -> None:
    """Seal the tail at the end of an indexing run, and build an approximate segment if there are enough passages."""
    with views.view() as view:
        segments = queries.segments(view)
        approximate = sum(row.alive for row in segments if row.recorded.kind == APPROXIMATE)
        has_many_dead = any(row.alive < (1 - MAX_DEAD_SHARE) * row.recorded.count for row in segments)
        exact = view.state.passages - approximate
    # At least a tenth of the approximate ones: otherwise every run would rewrite a collection that grows.
    if exact >= max(APPROXIMATE_PASSAGES, approximate // 10) or (has_many_dead and approximate):
        rewrite(catalog, views, "auto")
    else:
        seal(catalog, views, min_passages=1)


def rewrite(catalog: Catalog, views: Views, kind: str, *, force: bool = False) -> None:
    """Put all living passages into one segment.

    Args:
        kind: "exact", "approximate" or "auto".
        force: write it even if there is such a segment already.

    Raises:
        BadInput: an unknown kind.
        StorageError: the disk refused.
    """
    with views.view() as view:
        passages = view.state.passages
        if kind == "auto":
            kind = APPROXIMATE if passages >= APPROXIMATE_PASSAGES else EXACT
        if passages < MIN_APPROXIMATE_ROWS:
            kind = EXACT
        segments = queries.segments(view)
        is_whole = len(segments) == 1 and segments[0].alive == segments[0].recorded.count == passages
        is_same = (
            is_whole
            and segments[0].recorded.kind == kind
            and json.loads(segments[0].recorded.parameters).get("recall", _recall(view)) == _recall(view)
        )
        if (force or not is_same) and (passages or segments):
            _build(catalog, views.folder, view, 0, kind)
    sweep(views)


def _recall(view: View) -> float:
    recall = view.state.settings.recall
    return DEFAULT_RECALL if recall is None else recall


def _build(catalog: Catalog, folder: Path, view: View, first_id: int, kind: str) -> None:
    """Seal every passage from `first_id` on into a new segment that replaces the segments from there on."""
    passages, documents = queries.live_ids(view, first_id)
    name, rows = secrets.token_hex(8), queries.vectors_from(view, first_id, _BATCH_ROWS)
    recorded = SegmentFile(name, EXACT, 0, 0, "", "")
    if len(passages):
        recall = _recall(view) if kind == APPROXIMATE else None
        recorded = build(folder / "segments", name, view.state.dimensions, passages, documents, rows, recall)
    catalog.add_segment(recorded, first_id, highest_id(view.connection, "passage"))


def sweep(views: Views) -> None:
    """Remove segment files that no row names. Readers that have one mapped keep it until they close it."""
    with views.view() as view:
        named = {row.recorded.file for row in queries.segments(view)}
    for path in (views.folder / "segments").glob("*"):
        if path.stem not in named:
            path.unlink(missing_ok=True)
    failpoint("seal.swept")
