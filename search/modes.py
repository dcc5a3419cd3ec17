"""The three ways to rank: by meaning, by words, and by both. Each says of every hit how its score came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Candidates, Snapshot, Unit
from search.fusion import CANDIDATES, Background, Fused, Scores, blended, fuse, words_weight

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best units of one question.

    Attributes:
        passages: the passage to show of each (n,).
        scores: what they are ranked by, best first.
        cosines: of the passages; None where they were not needed.
        nearest: the highest cosine of all, whichever rank it comes to; -1 where none was needed.
        whys: of each, what its score is made of.
        matched, exact: as in `Hits`.
    """

    passages: Ids
    scores: tuple[float, ...]
    cosines: tuple[float, ...] | None
    nearest: float
    whys: tuple[Mapping[str, Any], ...]
    matched: int
    exact: bool


def by_meaning(snapshot: Snapshot, vector: Vector, k: int, where: Where | None, unit: Unit, exact: bool) -> Ranked:
    """Cosine."""
    found = snapshot.dense(vector, k, where, unit, exact)
    scores = tuple(found.scores.tolist())
    whys = tuple(_why(score, None, {"cosine": 1.0}, {"cosine": score}) for score in scores)
    return Ranked(found.passages, scores, scores, max(scores, default=-1.0), whys, found.matched, found.exact)


def by_words(snapshot: Snapshot, query: str, k: int, where: Where | None, unit: Unit) -> Ranked:
    """BM25. Raises NoWords for a question of stop words alone."""
    found = snapshot.words(query, k, where, unit)
    scores = tuple(found.scores.tolist())
    whys = tuple(_why(None, score, {"words": 1.0}, {"words": score}) for score in scores)
    return Ranked(found.passages, scores, None, -1.0, whys, found.matched, found.exact)


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates of one question, with what their cosines are worth in this collection.

    Attributes:
        standing: cosines in deviations above the question's mean (candidates,); of a document half its best passage,
            half its best passages together.
    """

    candidates: Candidates
    standing: Scores

    def fused(self, lean: float) -> Fused:
        words, terms = self.candidates.words, self.candidates.terms
        return fuse(self.standing, words, words_weight(self.standing, words, terms, lean))


def candidates(
    snapshot: Snapshot,
    background: Background,
    query: str,
    vector: Vector,
    k: int,
    where: Where | None,
    unit: Unit,
    exact: bool = False,
) -> ScoredCandidates:
    """What hybrid mode chooses k units from."""
    found = snapshot.candidates(vector, query, max(2 * k, CANDIDATES), where, unit, exact)
    return ScoredCandidates(found, background.standing(vector, blended(found.cosines, found.best_means)))


def by_both(scored: ScoredCandidates, lean: float, k: int) -> Ranked:
    """The convex combination of fusion.py; equal scores in the order the passages were added."""
    found, fused = scored.candidates, scored.fused(lean)
    order = np.lexsort((found.passages, -fused.scores))[:k]
    weights = {"cosine": 1 - fused.weight, "words": fused.weight}
    whys = tuple(
        _why(
            float(found.cosines[at]),
            float(found.words[at]),
            weights,
            {"cosine": float(fused.dense[at]), "words": float(fused.words[at])},
        )
        for at in order
    )
    scores = tuple(fused.scores[order].tolist())
    cosines = tuple(found.cosines[order].tolist())
    nearest = float(found.cosines.max(initial=-1.0))
    return Ranked(found.passages[order], scores, cosines, nearest, whys, found.matched, found.complete)


def _why(
    cosine: float | None, bm25: float | None, weights: Mapping[str, float], contributions: Mapping[str, float]
) -> Mapping[str, Any]:
    return {"cosine": cosine, "bm25": bm25, "weights": dict(weights), "contributions": dict(contributions)}
