"""Tuning hybrid search: the words bias learned from judged questions, and tested on questions that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from indexer.errors import BadInput
from likewise.evaluation.measures import Qrels, evaluate
from search.answering import Answering
from search.query.query import Query
from search.ranking.modes import ScoredCandidates, rank_hybrid, score_candidates

WORDS_BIASES = tuple(round(step * 0.25, 2) for step in range(-16, 17))
"""The values to try: natural logarithms of the odds of words, from 1 : 55 to 55 : 1."""

FOLDS = 5
MIN_QUESTIONS = 10
"""Minimum judged questions to learn from."""

_MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was learned from judged questions.

    Attributes:
        words_bias: the best words bias for all questions together. Among equally good values, the nearest to `before`.
        before: the words bias of the index so far.
        score_before: nDCG@10 with `before`.
        score_held_out: nDCG@10 if each fold is ranked with the words bias that is best for the other folds.
        questions: how many questions were judged.
    """

    words_bias: float
    before: float
    score_before: float
    score_held_out: float
    questions: int

    @property
    def gains(self) -> bool:
        return self.score_held_out > self.score_before


def scored_candidates(
    answering: Answering, texts: Sequence[str]
) -> tuple[list[ScoredCandidates], list[list[str]], list[str]]:
    """Return the scored candidates of hybrid mode for each question, the uris of these candidates, and notes.

    These are the notes that searches for these questions would have in `Hits.notes`, each once.
    """
    questions = [Query(text, mode="hybrid") for text in texts]
    candidates, uris = [], []
    with answering.snapshot() as snapshot:
        vectors, notes = answering.questions.encode(snapshot, texts)
        for query, vector in zip(questions, vectors, strict=True):
            scored = score_candidates(answering.plan(snapshot, query, vector), snapshot, query.k)
            candidates.append(scored)
            ids = scored.candidates.passages.tolist()
            uris.append([passage.uri for passage in snapshot.passages_by_id(ids)])
        every = [*chain.from_iterable(notes), *snapshot.notes]
    return candidates, uris, list(dict.fromkeys(every))


def tune(questions: Sequence[tuple[str, ScoredCandidates, Sequence[str]]], qrels: Qrels, before: float) -> Tuned:
    """Find the words bias with the highest nDCG@10.

    Args:
        questions: id, scored candidates and the candidates' uris of each judged question.
        before: the words bias of the index so far.

    Raises:
        BadInput: there are fewer than MIN_QUESTIONS questions.
    """
    if len(questions) < MIN_QUESTIONS:
        raise BadInput(f"{len(questions)} judged questions are too few to learn from: give at least {MIN_QUESTIONS}")
    grid = sorted({*WORDS_BIASES, before}, key=lambda bias: abs(bias - before))
    values = np.array([_per_question(questions, qrels, bias) for bias in grid])  # (biases, questions)
    folds = np.arange(len(questions)) % FOLDS
    held_out = np.empty(len(questions))
    for fold in range(FOLDS):
        chosen = int(values[:, folds != fold].mean(axis=1).argmax())
        held_out[folds == fold] = values[chosen, folds == fold]
    best = int(values.mean(axis=1).argmax())
    return Tuned(grid[best], before, float(values[0].mean()), float(held_out.mean()), len(questions))


def _per_question(
    questions: Sequence[tuple[str, ScoredCandidates, Sequence[str]]], qrels: Qrels, words_bias: float
) -> list[float]:
    """Return nDCG@10 of each question."""
    run = {}
    for query, scored, uris in questions:
        uri_of = dict(zip(scored.candidates.passages.tolist(), uris, strict=True))
        ranked = rank_hybrid(scored, words_bias)
        best = zip(ranked.passages[:10].tolist(), ranked.scores[:10].tolist(), strict=True)
        run[query] = [(uri_of[passage], score) for passage, score in best]
    per_query = evaluate(run, qrels, [_MEASURE]).per_query
    return [per_query[query][_MEASURE] for query, _, _ in questions]
