"""The passages before and after a hit in its document."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from search.hits.hits import Hit
    from search.searcher import Searcher


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Neighbouring passages of a hit, in the order of the document, without overlaps between them."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def surroundings_of(searcher: Searcher, hit: Hit, count: int) -> Surroundings:
    """Return up to `count` passages before a hit and as many after it."""
    spans = sorted((passage.start, passage.end) for passage in searcher.passages(hit.uri))
    text = searcher.get(hit.uri).text
    if (hit.start, hit.end) not in spans:  # the document was changed after the question was answered
        return Surroundings((), ())
    rank = spans.index((hit.start, hit.end))
    # Neighbours share tokens: each is shown from the end of the previous neighbour, and up to the beginning of the hit.
    before = [text[start : min(end, following)] for (start, end), (following, _) in pairwise(spans[: rank + 1])]
    after = [text[max(start, preceding) : end] for (_, preceding), (start, end) in pairwise(spans[rank:])]
    return Surroundings(tuple(before[-count:] if count else ()), tuple(after[:count]))
