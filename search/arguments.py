"""What a search may be asked for: wrong arguments are refused by name before anything is computed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Literal, get_args

from indexer.batches import broken_at
from indexer.errors import BadInput
from search.rerank import DEPTH

Mode = Literal["dense", "words", "hybrid"]


def checked(
    k: int,
    mode: str,
    rerank_depth: int = DEPTH,
    min_score: float | None = None,
    min_percentile: float | None = None,
) -> int:
    """k, once everything is as it should be; else BadInput that names the argument."""
    for name, value in (("k", k), ("rerank_depth", rerank_depth)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise BadInput(f"{name} is {value!r}: ask for a whole number of hits, 1 or more")
    if mode not in get_args(Mode):
        raise BadInput(f"mode {mode!r} is none of {', '.join(get_args(Mode))}")
    for name, least in (("min_score", min_score), ("min_percentile", min_percentile)):
        if least is not None and (not isinstance(least, Real) or isinstance(least, bool)):
            raise BadInput(f"{name} is {least!r}: give a number")
    if min_score is not None and math.isnan(min_score):
        raise BadInput("min_score is no number: no score is above it or below")
    if min_percentile is not None and not 0 <= min_percentile <= 100:
        raise BadInput(f"min_percentile is {min_percentile}: give a number from 0 to 100")
    return int(k)


def check_text(query: str) -> None:
    """A question that can be asked."""
    if not isinstance(query, str):
        raise BadInput(f"the question is no string but {type(query).__name__}")
    if (broken := broken_at(query)) is not None:
        raise BadInput(f"the question is no valid Unicode at character {broken}")
    if not query.strip():
        raise BadInput("the question is empty: ask with at least one word")
