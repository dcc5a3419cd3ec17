"""The three ways to rank: dense, words and hybrid. Each gives every unit the parts of its score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.stores.port import Candidates
from indexer.stores.reading.snapshot import Snapshot
from search.ranking.fusion import CANDIDATES, Scores, fuse, mean_with_best, words_weight
from search.ranking.plan import Plan

Ids = NDArray[np.int64]


class Ranked(NamedTuple):
    """The best units for one question, best first; equal scores in the order the passages were added.

    Attributes:
        passages, documents: id of the passage to show of each unit, and of its document (n,).
        scores: ranking scores (n,).
        cosines: cosines of the passages (n,); None in words mode.
        bm25: BM25 scores of the units (n,); None in dense mode.
        weights: the weight of each part of the scores.
        contributions: the parts of the scores (n,), by name.
        nearest: the highest cosine of all candidates, at any rank; -1 in words mode.
        bound: no unit that is left out has a higher score; -inf if none is left out.
        matched, exact: as in `Hits`.
        terms: number of different terms of the question that hybrid mode asked for; None in other modes.
        factors: what each score was multiplied with because of the document's age (n,); None without `newer`.
        notes: sentences that the caller should read.
    """

    passages: Ids
    documents: Ids
    scores: Scores
    cosines: NDArray[np.float32] | None
    bm25: NDArray[np.float32] | None
    weights: Mapping[str, float]
    contributions: Mapping[str, Scores]
    nearest: float
    bound: float
    matched: int
    exact: bool
    terms: int | None = None
    factors: Scores | None = None
    notes: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.integer]) -> Ranked:
        """Return these rows (n,) alone, in this order."""
        return self._replace(
            passages=self.passages[rows],
            documents=self.documents[rows],
            scores=self.scores[rows],
            cosines=None if self.cosines is None else self.cosines[rows],
            bm25=None if self.bm25 is None else self.bm25[rows],
            contributions={name: part[rows] for name, part in self.contributions.items()},
            factors=None if self.factors is None else self.factors[rows],
        )

    def why(self, row: int) -> Mapping[str, Any]:
        """Return the parts of the score of one row."""
        factor = 1.0 if self.factors is None else float(self.factors[row])
        reasons: dict[str, Any] = {
            "cosine": None if self.cosines is None else float(self.cosines[row]),
            "bm25": None if self.bm25 is None else float(self.bm25[row]),
            "weights": {name: weight * factor for name, weight in self.weights.items()},
            "contributions": {name: float(part[row]) * factor for name, part in self.contributions.items()},
        }
        return reasons if self.factors is None else reasons | {"newer": factor}


def rank_units(plan: Plan, snapshot: Snapshot, depth: int) -> Ranked:
    """Return at least the `depth` best units by the plan's mode, or all if there are fewer.

    Raises:
        NoWords: in words mode, the question has no words, or stop words only.
    """
    query, is_dense = plan.query, plan.mode == "dense"
    if plan.mode == "hybrid":
        return rank_hybrid(score_candidates(plan, snapshot, depth), plan.words_bias)
    if is_dense:
        assert plan.vector is not None
        ranking = snapshot.dense(plan.vector, depth, plan.where, query.unit, bool(query.exact), query.conditions)
    else:
        ranking = snapshot.words(query.asked, depth, plan.where, query.unit, query.conditions)
    name, scores, nearest = "cosine" if is_dense else "words", ranking.scores.astype(np.float64), -1.0
    if is_dense:
        nearest = float(scores.max(initial=-1.0))
        if plan.statistics is not None:
            assert plan.vector is not None
            scores = plan.statistics.z_scores(plan.vector, scores)
    return Ranked(
        ranking.passages,
        ranking.documents,
        scores,
        ranking.scores if is_dense else None,
        None if is_dense else ranking.scores,
        {name: 1.0},
        {name: scores},
        nearest,
        float(scores[-1]) if 0 < len(scores) < ranking.matched else -np.inf,
        ranking.matched,
        ranking.exact,
    )


class ScoredCandidates(NamedTuple):
    """The candidates of one question with the z-scores of their cosines.

    Attributes:
        z_scores: z-scores of the blended cosines (candidates,).
        bounds: highest z-score and highest BM25 score that a unit which is not a candidate may have.
        unread_bias: how much more words weigh because the model does not read the question.
    """

    candidates: Candidates
    z_scores: Scores
    bounds: tuple[float, float] = (-np.inf, 0.0)
    unread_bias: float = 0.0


def score_candidates(plan: Plan, snapshot: Snapshot, k: int) -> ScoredCandidates:
    """Return the candidates among which hybrid mode finds the k best units."""
    query, vector, statistics = plan.query, plan.vector, plan.statistics
    assert vector is not None
    assert statistics is not None
    depth = max(2 * k, CANDIDATES)
    candidates = snapshot.candidates(
        vector, query.asked, depth, plan.where, query.unit, bool(query.exact), query.conditions
    )
    bounds = (-np.inf, 0.0)
    if len(candidates.passages) < candidates.matched:
        # The `depth` best units by cosine are candidates, and the `depth` best by words. The blended cosine of a unit
        # is at most that of its best passage.
        last = np.partition(candidates.cosines, -depth)[-depth : -depth + 1]
        words = np.partition(candidates.words, -depth)[-depth]
        bounds = float(statistics.z_scores(vector, last)[0]), float(words)
    blended = mean_with_best(candidates.cosines, candidates.best_means)
    return ScoredCandidates(candidates, statistics.z_scores(vector, blended), bounds, plan.unread_bias)


def rank_hybrid(scored: ScoredCandidates, words_bias: float) -> Ranked:
    """Return all candidates by fused score."""
    candidates, (dense, words) = scored.candidates, scored.bounds
    bias = words_bias + scored.unread_bias
    weight = words_weight(scored.z_scores, candidates.words, candidates.terms, bias)
    fused = fuse(scored.z_scores, candidates.words, weight)
    ranked = Ranked(
        candidates.passages,
        candidates.documents,
        fused.scores,
        candidates.cosines,
        candidates.words,
        {"cosine": 1 - weight, "words": weight},
        {"cosine": fused.dense, "words": fused.words},
        float(candidates.cosines.max(initial=-1.0)),
        -np.inf if dense == -np.inf else (1 - weight) * dense + weight * words,
        candidates.matched,
        candidates.complete,
        candidates.terms,
    )
    return ranked.take(np.lexsort((candidates.passages, -fused.scores)))
