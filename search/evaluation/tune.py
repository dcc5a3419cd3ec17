"""How far hybrid should lean to words, learnt from judged questions and tested on questions that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexer.errors import BadInput
from search.evaluation.measures import Qrels, evaluate
from search.modes import ScoredCandidates, by_both

GRID = tuple(round(step * 0.25, 2) for step in range(-16, 17))
"""Leans to try: natural logarithms of the odds of words, from one in 55 to 55 to one."""

FOLDS = 5
LEAST = 10
"""Judged questions below which nothing is learnt."""

_MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Tuned:
    """What judged questions said.

    Attributes:
        lean: the best for all questions together; of equal ones that nearest to `before`.
        before: the lean the index had.
        score_before: nDCG@10 with it.
        score_held_out: nDCG@10 where each fold is asked with the lean chosen on the other folds.
        questions: how many were judged.
    """

    lean: float
    before: float
    score_before: float
    score_held_out: float
    questions: int

    @property
    def gains(self) -> bool:
        return self.score_held_out > self.score_before


def tune(found: Sequence[tuple[str, ScoredCandidates, Sequence[str]]], qrels: Qrels, before: float) -> Tuned:
    """Choose by nDCG@10.

    Args:
        found: of each judged question its id, its scored candidates and their uris.

    Raises:
        BadInput: too few questions.
    """
    if len(found) < LEAST:
        raise BadInput(f"{len(found)} judged questions teach nothing: give at least {LEAST}")
    grid = sorted({*GRID, before}, key=lambda lean: abs(lean - before))
    values = np.array([_per_question(found, qrels, lean) for lean in grid])  # (leans, questions)
    folds = np.arange(len(found)) % FOLDS
    held_out = np.empty(len(found))
    for fold in range(FOLDS):
        chosen = int(values[:, folds != fold].mean(axis=1).argmax())
        held_out[folds == fold] = values[chosen, folds == fold]
    best = int(values.mean(axis=1).argmax())
    return Tuned(grid[best], before, float(values[0].mean()), float(held_out.mean()), len(found))


def _per_question(
    found: Sequence[tuple[str, ScoredCandidates, Sequence[str]]], qrels: Qrels, lean: float
) -> list[float]:
    run = {}
    for query, scored, uris in found:
        named = dict(zip(scored.candidates.passages.tolist(), uris, strict=True))
        ranked = by_both(scored, lean, 10)
        run[query] = [
            (named[passage], score) for passage, score in zip(ranked.passages.tolist(), ranked.scores, strict=True)
        ]
    per_query = evaluate(run, qrels, [_MEASURE]).per_query
    return [per_query[query][_MEASURE] for query, _, _ in found]
