"""Ranking: `rank` follows the plan of a question over a snapshot of one index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from indexer.stores.port import Passage, Ranking
from indexer.stores.reading.snapshot import Snapshot
from search.hits.hits import existing_first
from search.query.newer import Weights
from search.ranking.families import FOLDED_DEPTH, MAX_FOLDED, families, note_on_stop
from search.ranking.modes import Ranked, rank_units
from search.ranking.plan import Plan

MAX_DEPTH = 10_000
"""Minimum units among which the newest are looked for before a ranking gives up being exact. With a half-life much
shorter than the ages of the documents, all of them would be ranked."""


def rank(
    plan: Plan, snapshot: Snapshot, k: int, check: Callable[[], None] = lambda: None
) -> tuple[Ranked, list[list[Passage]]]:
    """Return the k best units, and for each its passage, followed by the passages of its family in their order.

    The search widens until there are enough families, and until no unit that was left out could be one of the best.
    If newer documents come first, it stops at MAX_DEPTH unless the question is exact. The ranking is then not exact.
    For families it stops at MAX_FOLDED, and a note says so.

    Args:
        check: raises an error if the question must end.

    Raises:
        NoWords: in words mode, the question has no word to search by.
        FilterError: the filter does not fit the fields of the index.
    """
    fold = plan.query.fold
    wanted = depth = k * FOLDED_DEPTH if fold else k
    most = max(wanted, MAX_FOLDED)
    while True:
        ranked = rank_units(plan, snapshot, depth if plan.left_out is None else depth + plan.left_out.matched)
        if plan.left_out is not None:
            ranked = _without(ranked, plan.left_out)
        if plan.weights is not None:
            ranked = _newest_first(ranked, plan.weights)
            is_certain = len(ranked.scores) >= wanted and ranked.scores[wanted - 1] > ranked.bound
            if np.isfinite(ranked.bound) and not is_certain:
                if depth < MAX_DEPTH or plan.query.exact:
                    depth *= 4
                    continue
                ranked = ranked._replace(exact=False)
        if len(ranked.passages) > wanted:
            ranked = ranked.take(np.arange(wanted))
        passages = snapshot.passages_by_id(ranked.passages.tolist())
        order = existing_first(passages, ranked.scores.tolist(), snapshot.settings.sources)
        ranked, passages = ranked.take(np.array(order, np.int64)), [passages[row] for row in order]
        if not fold:
            return ranked, [[passage] for passage in passages]
        founded, compared = families([(each.text, each.format) for each in passages], k, check)
        is_done = compared == len(passages) and (len(founded) == k or compared >= ranked.matched)
        if is_done or compared < len(passages) or wanted == most:
            best = ranked.take(np.array([rows[0] for rows in founded], np.int64))
            best = best if is_done else best._replace(notes=(note_on_stop(compared),))
            return best, [[passages[row] for row in rows] for rows in founded]
        wanted = depth = min(4 * wanted, most)


def _without(ranked: Ranked, left_out: Ranking) -> Ranked:
    """Return a ranking without the units of these documents."""
    others = ranked.take(np.flatnonzero(~np.isin(ranked.documents, left_out.documents)))
    nearest = -1.0 if others.cosines is None else float(others.cosines.max(initial=-1.0))
    return others._replace(matched=ranked.matched - left_out.matched, nearest=nearest)


def _newest_first(ranked: Ranked, weights: Weights) -> Ranked:
    """Return a ranking in which every score above 0 is multiplied with the weight of its document."""
    factors = np.where(ranked.scores > 0, weights.of(ranked.documents), 1.0)
    bound = ranked.bound * weights.largest if ranked.bound > 0 else ranked.bound
    weighted = ranked._replace(scores=ranked.scores * factors, factors=factors, bound=bound)
    return weighted.take(np.lexsort((ranked.passages, -weighted.scores)))
