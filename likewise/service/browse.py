"""The door of the service: what its clients read of an index without a question."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from indexer.filters.tree import Where
from indexer.stores.port import Passage, Sort
from indexer.stores.reading.snapshot import Snapshot
from likewise.service.middles import middles
from search.hits.hits import Hit, Hits

LOOKED_AT = 4
"""Look at so many times more documents than are asked for, so that those whose file is gone are not the first."""

SAMPLED_PASSAGES = 1000
"""Number of passages among which central ones are looked for."""


def beginnings(snapshot: Snapshot, where: Where | None, k: int, sort: Sort) -> Hits:
    """Return documents without a question, as `Searcher.beginnings`."""
    sources = snapshot.settings.sources
    sizes, matched = snapshot.first_passages(k if sort == "title" else k * LOOKED_AT, where, sort)
    hits = [
        replace(Hit.from_passage(each, 0.0, None, sources=sources), family_size=sizes[each.id] - 1)
        for each in snapshot.passages_by_id([*sizes])
    ]
    if sort == "newest":
        hits.sort(key=lambda hit: hit.gone)
    return Hits(tuple(hits[:k]), matched, True)


def central_passages(snapshot: Snapshot, count: int) -> list[Passage]:
    """Return passages from the middles of the main topics, the first from the largest."""
    sample = snapshot.sample(SAMPLED_PASSAGES)
    chosen = [sample.passages[row] for row in middles(sample.vectors, count)]
    return list(snapshot.passages_by_id([int(id_) for id_ in chosen]))


def folders(snapshot: Snapshot, where: Where | None) -> dict[str, int]:
    """Return how many of the documents that a filter leaves are below each folder, as `Searcher.folders`."""
    every = snapshot.paths()
    paths = every if where is None else snapshot.paths(where)
    # The common folder of all paths is that of the first and the last in their order.
    first, last = (min(every), max(every)) if every else ("", "")
    apart = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    depth = first[:apart].rfind("/")
    below = Counter(path[: path.find("/", depth + 1)] for path in paths if path.find("/", depth + 1) > 0)
    return dict(below.most_common())
