"""The rows that a question may return: a filter as masks over the positions of every part of a snapshot.

Masks are computed when a filter is first used, and kept for the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexer.stores.local.segments.files import Positions
from indexer.stores.port import Ids

Flags = NDArray[np.bool_]

MAX_EXACT_ROWS = 20_000
"""Maximum allowed rows for an exact search: each of them is scored."""

_ROWS_PER_LISTED_ROW = 400
"""If fewer than one in this many rows is allowed, the allowed rows are gathered. FAISS would test every row in 2.4 ns
each; numpy converts an allowed row in 1 microsecond (2 shared cores, Xeon; 200,000 rows)."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Allowed positions of one part.

    Attributes:
        count: how many there are.
        bits: one bit per position, little-endian.
        positions: all allowed positions in ascending order, if so few are allowed that they are gathered.
        per_list: number of allowed positions in each inverted list of an approximate segment; None up to
            MAX_EXACT_ROWS.
    """

    count: int
    bits: NDArray[np.uint8]
    positions: NDArray[np.int64] | None = None
    per_list: NDArray[np.int64] | None = None

    def has(self, position: int) -> bool:
        return bool(self.bits[position >> 3] >> (position & 7) & 1)


@dataclass(eq=False)
class AllowedRows:
    """The rows that may be returned.

    Attributes:
        documents: how many documents they belong to.
        flags: one flag per document id; None allows every document.
        parts: for each part of the snapshot, its positions and the positions of its dead passages (m,).
        of_passages: returns one flag per passage id (n,), for ids in ascending order; None allows every passage.
    """

    documents: int
    flags: Flags | None
    parts: tuple[tuple[Positions, NDArray[np.int64]], ...]
    of_passages: Callable[[Ids], Flags] | None = None
    # No cached_property: until Python 3.12 it has one lock for all filters, which a forked child may find taken.
    _masks: tuple[Mask | None, ...] | None = field(default=None, init=False)

    @property
    def masks(self) -> tuple[Mask | None, ...]:
        """One mask per part; None allows the whole part."""
        if (masks := self._masks) is None:
            masks = self._masks = tuple(
                make_mask(positions, dead, self.flags, self.of_passages) for positions, dead in self.parts
            )
        return masks

    @property
    def passages(self) -> int:
        """Number of rows."""
        return sum(
            len(positions.passages) if mask is None else mask.count
            for (positions, _), mask in zip(self.parts, self.masks, strict=True)
        )


def make_mask(
    positions: Positions,
    dead: NDArray[np.int64],
    documents: Flags | None,
    of_passages: Callable[[Ids], Flags] | None = None,
) -> Mask | None:
    """Return the mask of one part; None if the whole part is allowed.

    Args:
        dead: positions (m,) whose passage no longer exists.
        documents: one flag per document id, or None for all documents.
        of_passages: see `AllowedRows`.
    """
    if documents is None and of_passages is None and not len(dead):
        return None
    flags = np.ones(len(positions.passages), np.bool_) if documents is None else documents[positions.documents]
    if of_passages is not None:
        flags &= of_passages(positions.passages)
    flags[dead] = False
    count = int(np.count_nonzero(flags))
    listed = np.flatnonzero(flags) if count * _ROWS_PER_LISTED_ROW <= len(flags) else None
    per_list = None
    if positions.lists is not None and count > MAX_EXACT_ROWS:
        per_list = np.bincount(positions.lists[flags])
    return Mask(count, np.packbits(flags, bitorder="little"), listed, per_list)
