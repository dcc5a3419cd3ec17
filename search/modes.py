"""The three ways to rank: dense, words and hybrid. Each gives every unit the parts of its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Candidates, Conditions, Ranking, Unit
from indexer.stores.reading.snapshot import Snapshot
from search.fusion import CANDIDATES, CosineStatistics, Fused, Scores, fuse, mean_with_best, words_weight

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
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
        factors: what each score was multiplied with because of the document's age (n,); None without `newer`.
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
    factors: Scores | None = None

    def take(self, rows: NDArray[np.integer]) -> Ranked:
        """Return these rows (n,) alone, in this order."""
        return replace(
            self,
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


def rank_dense(
    snapshot: Snapshot,
    vector: Vector,
    k: int,
    where: Where | None,
    unit: Unit,
    exact: bool,
    conditions: Conditions = (),
    statistics: CosineStatistics | None = None,
) -> Ranked:
    """Return the k best units by cosine. With statistics, the scores are the z-scores of the cosines."""
    ranking = snapshot.dense(vector, k, where, unit, exact, conditions)
    ranked = _of_one_leg(ranking, "cosine", ranking.scores, None, float(ranking.scores.max(initial=-1.0)))
    if statistics is None:
        return ranked
    scores, (bound,) = (statistics.z_scores(vector, each) for each in (ranked.scores, np.array([ranked.bound])))
    return replace(ranked, scores=scores, contributions={"cosine": scores}, bound=float(bound))


def rank_words(
    snapshot: Snapshot, query: str, k: int, where: Where | None, unit: Unit, conditions: Conditions
) -> Ranked:
    """Return the k best units by BM25. Raises NoWords for a question without words, or with stop words only."""
    ranking = snapshot.words(query, k, where, unit, conditions)
    return _of_one_leg(ranking, "words", None, ranking.scores, -1.0)


def _of_one_leg(
    ranking: Ranking,
    name: str,
    cosines: NDArray[np.float32] | None,
    bm25: NDArray[np.float32] | None,
    nearest: float,
) -> Ranked:
    scores = ranking.scores.astype(np.float64)
    return Ranked(
        ranking.passages,
        ranking.documents,
        scores,
        cosines,
        bm25,
        {name: 1.0},
        {name: scores},
        nearest,
        float(scores[-1]) if 0 < len(scores) < ranking.matched else -np.inf,
        ranking.matched,
        ranking.exact,
    )


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
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

    def fuse(self, words_bias: float) -> Fused:
        """Return the hybrid scores of the candidates."""
        words = self.candidates.words
        weight = words_weight(self.z_scores, words, self.candidates.terms, words_bias + self.unread_bias)
        return fuse(self.z_scores, words, weight)


def score_candidates(
    snapshot: Snapshot,
    statistics: CosineStatistics,
    query: str,
    vector: Vector,
    k: int,
    where: Where | None,
    unit: Unit,
    exact: bool = False,
    conditions: Conditions = (),
) -> ScoredCandidates:
    """Return the candidates among which hybrid mode finds the k best units."""
    depth = max(2 * k, CANDIDATES)
    candidates = snapshot.candidates(vector, query, depth, where, unit, exact, conditions)
    bounds = (-np.inf, 0.0)
    if len(candidates.passages) < candidates.matched:
        # The `depth` best units by cosine are candidates, and the `depth` best by words. The blended cosine of a unit
        # is at most that of its best passage.
        last = np.partition(candidates.cosines, -depth)[-depth : -depth + 1]
        words = np.partition(candidates.words, -depth)[-depth]
        bounds = float(statistics.z_scores(vector, last)[0]), float(words)
    blended = mean_with_best(candidates.cosines, candidates.best_means)
    return ScoredCandidates(candidates, statistics.z_scores(vector, blended), bounds)


def rank_hybrid(scored: ScoredCandidates, words_bias: float) -> Ranked:
    """Return all candidates by fused score."""
    candidates, fused = scored.candidates, scored.fuse(words_bias)
    dense, words = scored.bounds
    ranked = Ranked(
        candidates.passages,
        candidates.documents,
        fused.scores,
        candidates.cosines,
        candidates.words,
        {"cosine": 1 - fused.weight, "words": fused.weight},
        {"cosine": fused.dense, "words": fused.words},
        float(candidates.cosines.max(initial=-1.0)),
        -np.inf if dense == -np.inf else (1 - fused.weight) * dense + fused.weight * words,
        candidates.matched,
        candidates.complete,
    )
    return ranked.take(np.lexsort((candidates.passages, -fused.scores)))
