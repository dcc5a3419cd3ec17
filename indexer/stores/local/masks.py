"""Which rows a question may return: a filter turned into masks over the positions of every part of a snapshot.

Worked out when a filter is first used and kept for the snapshot: bits for FAISS, positions where they are few.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexer.stores.local.segments.files import Positions

Flags = NDArray[np.bool_]

FEW = 20_000
"""Allowed rows that are scored one by one: so many take some milliseconds, and nothing is approximate about them."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Allowed positions of one part.

    Attributes:
        count: how many there are.
        bits: one bit a position, little-endian; empty where `positions` are given.
        positions: all of them, ascending, where they are at most FEW.
        per_list: how many there are in each inverted list of an approximate segment.
    """

    count: int
    bits: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    positions: NDArray[np.int64] | None = None
    per_list: NDArray[np.int64] | None = None

    def has(self, position: int) -> bool:
        if self.positions is not None:
            return position in self.positions
        return bool(self.bits[position >> 3] >> (position & 7) & 1)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The rows that may be returned: how many documents and passages, and a mask a part (None: all of it)."""

    documents: int
    passages: int
    masks: tuple[Mask | None, ...]


def mask(positions: Positions, dead: NDArray[np.int64], documents: Flags | None) -> Mask | None:
    """The mask of one part.

    Args:
        dead: positions (m,) whose passage exists no more.
        documents: one flag a document id, or None for all.
    """
    if documents is None and not len(dead):
        return None
    flags = np.ones(len(positions.passages), np.bool_) if documents is None else documents[positions.documents]
    flags[dead] = False
    count = int(np.count_nonzero(flags))
    if count <= FEW:
        return Mask(count, positions=np.flatnonzero(flags))
    lists = None if positions.lists is None else np.bincount(positions.lists[flags])
    return Mask(count, np.packbits(flags, bitorder="little"), per_list=lists)
