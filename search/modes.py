"""The three ways to rank: dense, words and hybrid. Each gives every unit the parts of its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Candidates, Snapshot, Unit
from search.fusion import CANDIDATES, CosineStatistics, Fused, Scores, fuse, mean_with_best, words_weight

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best units for one question.

    Attributes:
        passages: id of the passage to show of each unit (n,).
        scores: ranking scores, best first.
        cosines: cosines of the passages; None in words mode.
        nearest: the highest cosine of all candidates, at any rank; -1 in words mode.
        whys: the parts of each score.
        matched, exact: as in `Hits`.
    """

    passages: Ids
    scores: tuple[float, ...]
    cosines: tuple[float, ...] | None
    nearest: float
    whys: tuple[Mapping[str, Any], ...]
    matched: int
    exact: bool


def rank_dense(snapshot: Snapshot, vector: Vector, k: int, where: Where | None, unit: Unit, exact: bool) -> Ranked:
    """Return the k best units by cosine."""
    ranking = snapshot.dense(vector, k, where, unit, exact)
    scores = tuple(ranking.scores.tolist())
    whys = tuple(_why(score, None, {"cosine": 1.0}, {"cosine": score}) for score in scores)
    return Ranked(ranking.passages, scores, scores, max(scores, default=-1.0), whys, ranking.matched, ranking.exact)


def rank_words(snapshot: Snapshot, query: str, k: int, where: Where | None, unit: Unit) -> Ranked:
    """Return the k best units by BM25. Raises NoWords for a question without words, or with stop words only."""
    ranking = snapshot.words(query, k, where, unit)
    scores = tuple(ranking.scores.tolist())
    whys = tuple(_why(None, score, {"words": 1.0}, {"words": score}) for score in scores)
    return Ranked(ranking.passages, scores, None, -1.0, whys, ranking.matched, ranking.exact)


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates of one question with the z-scores of their cosines.

    Attributes:
        z_scores: z-scores of the blended cosines (candidates,).
    """

    candidates: Candidates
    z_scores: Scores

    def fuse(self, words_bias: float) -> Fused:
        """Return the hybrid scores of the candidates."""
        words = self.candidates.words
        return fuse(self.z_scores, words, words_weight(self.z_scores, words, self.candidates.terms, words_bias))


def score_candidates(
    snapshot: Snapshot,
    statistics: CosineStatistics,
    query: str,
    vector: Vector,
    k: int,
    where: Where | None,
    unit: Unit,
    exact: bool = False,
) -> ScoredCandidates:
    """Return the candidates among which hybrid mode finds the k best units."""
    candidates = snapshot.candidates(vector, query, max(2 * k, CANDIDATES), where, unit, exact)
    return ScoredCandidates(
        candidates, statistics.z_scores(vector, mean_with_best(candidates.cosines, candidates.best_means))
    )


def rank_hybrid(scored: ScoredCandidates, words_bias: float, k: int) -> Ranked:
    """Return the k best candidates by fused score; equal scores in the order the passages were added."""
    candidates, fused = scored.candidates, scored.fuse(words_bias)
    order = np.lexsort((candidates.passages, -fused.scores))[:k]
    weights = {"cosine": 1 - fused.weight, "words": fused.weight}
    whys = tuple(
        _why(
            float(candidates.cosines[row]),
            float(candidates.words[row]),
            weights,
            {"cosine": float(fused.dense[row]), "words": float(fused.words[row])},
        )
        for row in order
    )
    return Ranked(
        candidates.passages[order],
        tuple(fused.scores[order].tolist()),
        tuple(candidates.cosines[order].tolist()),
        float(candidates.cosines.max(initial=-1.0)),
        whys,
        candidates.matched,
        candidates.complete,
    )


def _why(
    cosine: float | None, bm25: float | None, weights: Mapping[str, float], contributions: Mapping[str, float]
) -> Mapping[str, Any]:
    return {"cosine": cosine, "bm25": bm25, "weights": dict(weights), "contributions": dict(contributions)}
