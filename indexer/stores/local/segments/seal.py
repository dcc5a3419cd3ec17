"""When vectors move from the tail into segments, and segments into larger ones; what belongs to nothing goes.

Small exact segments are sealed while documents are added. Approximate ones take longer to build: that is done by
`compact` and at the end of an indexing run, never inside an add. Use under the writer lock.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import BadInput
from indexer.settings import DEFAULT_RECALL
from indexer.stores.local import queries
from indexer.stores.local.failpoint import failpoint
from indexer.stores.local.segments.faiss_segment import (
    APPROXIMATE,
    EXACT,
    LEAST_APPROXIMATE,
    build_approximate,
    build_exact,
)
from indexer.stores.local.segments.files import SegmentFile
from indexer.stores.local.views import Snapshots, View

if TYPE_CHECKING:
    from indexer.stores.local.catalog import Catalog

SEAL_AT = 8192
"""Passages outside any segment that make sealing them worth it: a scan of so many costs about a millisecond."""

MERGE_TO = 65_536
"""Passages of a segment up to which adding merges: writing more would be felt as a pause."""

APPROXIMATE_AT = 100_000
"""Passages from which a scan of them all (7 ms) is slow beside an approximate index (under 1 ms)."""

WORN = 0.2
"""Share of dead passages from which a segment is written anew at the end of a run."""

_BATCH = 8192


def seal(catalog: Catalog, snapshots: Snapshots, least: int = SEAL_AT) -> None:
    """Put a tail of `least` passages into an exact segment, together with segments not much larger.

    Merging only those of up to twice its size writes each vector a logarithmic number of times.
    """
    with snapshots.view() as view:
        if view.state.damaged:
            _build(catalog, snapshots.folder, view, 0, EXACT)
            return sweep(snapshots)
        sealed = queries.segments(view)
        together = view.state.passages - sum(row.alive for row in sealed)
        if together < least:
            return
        first = view.state.sealed + 1
        for row in reversed(sealed):
            if row.recorded.kind != EXACT or row.alive > min(2 * together, MERGE_TO - together):
                break
            together += row.alive
            first = row.first_id
        _build(catalog, snapshots.folder, view, first, EXACT)
    sweep(snapshots)


def settle(catalog: Catalog, snapshots: Snapshots) -> None:
    """The end of an indexing run: seal what is left, and build an approximate segment where one is worth it."""
    with snapshots.view() as view:
        sealed = queries.segments(view)
        fast = sum(row.alive for row in sealed if row.recorded.kind == APPROXIMATE)
        worn = any(row.alive < (1 - WORN) * row.recorded.count for row in sealed)
        slow = view.state.passages - fast
    # A tenth of what is there: so that a collection which grows is not written anew by every run.
    if slow >= max(APPROXIMATE_AT, fast // 10) or (worn and fast):
        rewrite(catalog, snapshots, "auto")
    else:
        seal(catalog, snapshots, least=1)


def require_kind(kind: str) -> None:
    """Raise BadInput unless segments of this kind can be asked for."""
    if kind not in ("auto", EXACT, APPROXIMATE):
        raise BadInput(f"compact: kind {kind!r} is unknown, use auto, {EXACT} or {APPROXIMATE}")


def rewrite(catalog: Catalog, snapshots: Snapshots, kind: str, *, force: bool = False) -> None:
    """Put everything that is alive into one segment of a kind; nothing to do where that is so, unless forced."""
    require_kind(kind)
    with snapshots.view() as view:
        passages = view.state.passages
        if kind == "auto":
            kind = APPROXIMATE if passages >= APPROXIMATE_AT else EXACT
        if passages < LEAST_APPROXIMATE:
            kind = EXACT
        sealed = queries.segments(view)
        whole = len(sealed) == 1 and sealed[0].alive == sealed[0].recorded.count == passages
        same = (
            whole
            and sealed[0].recorded.kind == kind
            and json.loads(sealed[0].recorded.parameters).get("recall", _recall(view)) == _recall(view)
        )
        if (force or not same) and (passages or sealed):
            _build(catalog, snapshots.folder, view, 0, kind)
    sweep(snapshots)


def _recall(view: View) -> float:
    recall = view.state.settings.recall
    return DEFAULT_RECALL if recall is None else recall


def _build(catalog: Catalog, folder: Path, view: View, first_id: int, kind: str) -> None:
    """Seal every passage from `first_id` on into a new segment that takes the place of those there."""
    passages, documents = queries.live_ids(view, first_id)
    name, segments = secrets.token_hex(8), folder / "segments"
    rows = queries.vectors(view, first_id, _BATCH)
    what = (segments, name, view.state.dimensions, passages, documents, rows)
    if not len(passages):
        recorded = SegmentFile(name, EXACT, 0, 0, "", "")
    elif kind == APPROXIMATE:
        recorded = build_approximate(*what, recall=_recall(view))
    else:
        recorded = build_exact(*what)
    catalog.add_segment(recorded, first_id, queries.highest_id(view))


def sweep(snapshots: Snapshots) -> None:
    """Unlink segment files that no row names. Readers that have one mapped keep it until they let go."""
    with snapshots.view() as view:
        named = {row.recorded.file for row in queries.segments(view)}
    for path in (snapshots.folder / "segments").glob("*"):
        if path.stem not in named:
            path.unlink(missing_ok=True)
    failpoint("seal.swept")
