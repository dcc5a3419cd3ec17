"""The three ways to rank: by meaning, by words, and by both. Each says of every hit how its score came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.store import Store, Unit
from search.fusion import CANDIDATES, Background, Fused, Scores, document_cosines, fuse, words_weight

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


def by_meaning(store: Store, vector: Vector, k: int, where: Where | None, unit: Unit, exact: bool) -> Ranked:
    found = store.dense(vector, k, where, unit, exact)
    scores = tuple(found.scores.tolist())
    whys = tuple(_why(score, None, {"cosine": 1.0}, {"cosine": score}) for score in scores)
    return Ranked(found.passages, scores, scores, max(scores, default=-1.0), whys, found.matched, found.exact)


def by_words(store: Store, query: str, k: int, where: Where | None, unit: Unit) -> Ranked:
    """BM25. Raises BadInput for a question of stop words alone."""
    found = store.words(query, k, where, unit)
    scores = tuple(found.scores.tolist())
    whys = tuple(_why(None, score, {"words": 1.0}, {"words": score}) for score in scores)
    return Ranked(found.passages, scores, None, -1.0, whys, found.matched, found.exact)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both legs propose for one question, each with its scores by both (candidates,).

    Attributes:
        passages: the passage to show: of a document the nearest.
        cosines: of these passages.
        standing: cosines in deviations above the question's mean; of a document its best passages together.
        words: BM25 of the unit.
        terms: different terms that the question asks for.
        matched: units that the filter leaves.
        complete: every one of them is a candidate.
    """

    passages: Ids
    cosines: NDArray[np.float32]
    standing: Scores
    words: NDArray[np.float32]
    terms: int
    matched: int
    complete: bool

    def fused(self, lean: float) -> Fused:
        return fuse(self.standing, self.words, words_weight(self.standing, self.words, self.terms, lean))


def candidates(
    store: Store,
    background: Background,
    query: str,
    vector: Vector,
    k: int,
    where: Where | None,
    unit: Unit,
    exact: bool = False,
) -> Candidates:
    """The best of each leg, with the scores that one lacks of the other's computed, not guessed."""
    depth = max(2 * k, CANDIDATES)
    terms = store.terms(query)
    near = store.dense(vector, depth, where, unit, exact)
    if unit == "passage":
        asked = store.words(query, depth, where, unit) if terms else None
        passages = np.union1d(near.passages, asked.passages if asked else ())
        cosines = store.dense_scores(vector, passages)
        standing = background.standing(vector, cosines)
        words = _words(store, query, passages, unit, (asked.passages, asked.scores) if asked else None)
    else:
        said = store.word_documents(query, depth, where) if terms else None
        documents = np.union1d(near.documents, said.documents if said else ())
        ids, owners, all_cosines = store.passages_of(vector, documents, near)
        documents, blended = document_cosines(all_cosines, owners)
        order = np.lexsort((ids, -all_cosines, owners))
        best = order[np.unique(owners[order], return_index=True)[1]]
        passages, cosines = ids[best], all_cosines[best]
        standing = background.standing(vector, blended)
        words = _words(store, query, documents, unit, (said.documents, said.scores) if said else None)
    complete = near.exact and len(passages) == near.matched
    return Candidates(passages, cosines, standing, words, len(terms), near.matched, complete)


def _words(
    store: Store, query: str, units: Ids, unit: Unit, found: tuple[Ids, NDArray[np.float32]] | None
) -> NDArray[np.float32]:
    """BM25 of units (n,), ascending: of those that words `found` as it is known, of the rest computed."""
    scores = np.zeros(len(units), np.float32)
    if found is None:
        return scores
    there = np.isin(units, found[0])
    order = np.argsort(found[0])
    scores[there] = found[1][order]
    scores[~there] = store.words_scores(query, units[~there], unit)
    return scores


def by_both(found: Candidates, lean: float, k: int) -> Ranked:
    """The convex combination of fusion.py; equal scores in the order the passages were added."""
    fused = found.fused(lean)
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
