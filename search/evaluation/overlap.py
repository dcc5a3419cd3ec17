"""The similarity of two rankings: rank-biased overlap (Webber, Moffat and Zobel 2010)."""

from __future__ import annotations

from collections.abc import Sequence

PERSISTENCE = 0.9
"""Probability that a reader continues to the next hit. The first ten hits then have 86 % of the weight."""


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """Return the extrapolated RBO of two rankings without repeats: 1 for equal ones, 0 for nothing in common.

    It assumes that the agreement at the end of the longer ranking continues (equation 32 of the paper, which also
    covers rankings of unequal length).

    Args:
        first, second: ids, best first.
        p: weight of each depth relative to the one above it, between 0 and 1.
    """
    short, long = sorted((first, second), key=len)
    if not long:
        return 1.0
    if not short:
        return 0.0
    s, depth = len(short), len(long)
    overlaps = [0]
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    for rank in range(depth):
        seen_long.add(long[rank])
        if rank < s:
            seen_short.add(short[rank])
        overlaps.append(len(seen_short & seen_long))
    x_s, x_l = overlaps[s], overlaps[depth]
    agreement = sum(overlaps[d] / d * p**d for d in range(1, depth + 1))
    uneven = sum(x_s * (d - s) / (s * d) * p**d for d in range(s + 1, depth + 1))
    return (1 - p) / p * (agreement + uneven) + ((x_l - x_s) / depth + x_s / s) * p**depth
