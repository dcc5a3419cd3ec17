"""The passages on which an index is measured, chosen by their content.

An updated index has its passages in another order than a new index with the same documents, so random samples of the
two differ. Samples that are chosen by content are equal, and so are measurements on them. Nothing here writes a store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from indexer.records import Vector
from indexer.stores.port import Passage
from indexer.stores.reading.snapshot import Snapshot

DRAWN_PASSAGES = 10_000
"""Maximum passages that a store is asked for. If an index has no more passages, the measurement depends only on its
content. If it has more, an updated and a new index draw different passages; docs/fusion.md shows how much this
changes."""

SAMPLE_PASSAGES = 2000
"""Maximum passages that are compared with each other and with questions."""


def sample_by_content(snapshot: Snapshot) -> tuple[list[Passage], Vector]:
    """Return up to SAMPLE_PASSAGES passages in the order of their keys, and their vectors (passages, dimensions)."""
    drawn = snapshot.sample(DRAWN_PASSAGES)
    passages = snapshot.passages_by_id(drawn.passages.tolist())
    chosen = by_key(passages)[:SAMPLE_PASSAGES]
    return [passages[number] for number in chosen], drawn.vectors[np.array(chosen, np.int64)]


def by_key(passages: Sequence[Passage]) -> list[int]:
    """Return the positions of passages in the order of their keys; equal passages stay in their order."""
    keys = [key(passage) for passage in passages]
    return sorted(range(len(passages)), key=keys.__getitem__)


def key(passage: Passage) -> int:
    """Return a number of 64 bits that depends on the title, the heading and the text of a passage, as if at random."""
    text = f"{passage.title}\0{passage.heading}\0{passage.text}"
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
