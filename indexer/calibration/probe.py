"""Measuring without judgments how well words and vectors find things in one index, with pseudo-questions.

A sentence is taken out of a passage and becomes the question; the rest of the passage is its answer (the inverse cloze
task, Lee et al. 2019). BM25 and cosine both rank the answer among the other passages, and the mean reciprocal ranks
show which works better in this collection. search/ranking/fusion.py turns them into a weight. Nothing here reads or
writes a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.calibration.bm25 import Bm25
from indexer.calibration.sample import key
from indexer.encoders import Encoder
from indexer.encoders.recipes.port import of_role
from indexer.passages.cut import visible_text
from indexer.passages.sentences import sentence_ends
from indexer.records import Vector
from indexer.settings import MIN_PSEUDO_QUESTIONS, Probed
from indexer.stores.port import Passage

MAX_PSEUDO_QUESTIONS = 200
"""Maximum pseudo-questions of one measurement. Embedding one with its answer takes about 10 ms."""


@dataclass(frozen=True, slots=True)
class AskedPseudoQuestions:
    """Pseudo-questions with their cosines.

    Attributes:
        asked: the pseudo-questions, at least MIN_PSEUDO_QUESTIONS.
        questions: their vectors (questions, dimensions).
        answers: cosine of each with its answer (questions,).
        passages: cosines with all passages of the sample (questions, passages).
        rivals: which passages compete with the answer (questions, passages).
    """

    asked: Sequence[PseudoQuestion]
    questions: Vector
    answers: NDArray[np.floating]
    passages: NDArray[np.floating]
    rivals: NDArray[np.bool_]

    @property
    def nearest(self) -> NDArray[np.floating]:
        """The highest cosine of each, with its answer or a passage that competes (questions,)."""
        nearest: NDArray[np.floating] = np.maximum(self.answers, np.where(self.rivals, self.passages, -1.0).max(axis=1))
        return nearest


def ask(passages: Sequence[Passage], vectors: Vector, encoder: Encoder) -> AskedPseudoQuestions | None:
    """Ask pseudo-questions of a sample of an index.

    Args:
        passages: the sample, such as the result of `sample_by_content`. The questions come from its first passages, and
            all of its passages compete with the answers.
        vectors: vectors of these passages: unit rows (passages, dimensions).
        encoder: embeds questions and answers.

    Returns:
        None if fewer than MIN_PSEUDO_QUESTIONS questions can be made.
    """
    drawn = list(pseudo_questions(passages))
    questions_read = of_role(encoder, "query").offsets([one.question for one in drawn])
    answers_read = encoder.offsets([one.answer for one in drawn])
    # Some texts hold no token that the model knows.
    asked = [one for one, *spans in zip(drawn, questions_read, answers_read, strict=True) if all(map(len, spans))]
    if len(asked) < MIN_PSEUDO_QUESTIONS:
        return None
    questions = encoder.encode([one.question for one in asked], role="query", truncate=True)
    answers = encoder.encode([one.answer for one in asked], role="document", truncate=True)
    documents = np.array([passage.document_id for passage in passages])
    # Other passages of the same document may repeat the sentence, as passages overlap: they do not compete.
    rivals = documents[None, :] != documents[[one.position for one in asked]][:, None]
    return AskedPseudoQuestions(asked, questions, (questions * answers).sum(axis=1), questions @ vectors.T, rivals)


def compare(
    pseudo: AskedPseudoQuestions | None, passages: Sequence[Passage], terms: Callable[[str], Sequence[str]]
) -> Probed:
    """Return how well vectors and words find the answers to pseudo-questions of a sample.

    Args:
        pseudo: the result of `ask` for these passages.
        terms: returns the terms of a text, as the word index has them.
    """
    if pseudo is None:
        return Probed()
    dense = _mean_reciprocal_rank(pseudo.answers, pseudo.passages, pseudo.rivals)
    bm25 = Bm25([terms(_with_heading(passage, _visible(passage))) for passage in passages])
    question_terms = [terms(one.question) for one in pseudo.asked]
    answer_scores = [
        bm25.score(terms(one.answer), each) for one, each in zip(pseudo.asked, question_terms, strict=True)
    ]
    passage_scores = np.array([bm25.scores(each) for each in question_terms])
    words = _mean_reciprocal_rank(np.array(answer_scores), passage_scores, pseudo.rivals)
    return Probed(round(words, 4), round(dense, 4), len(pseudo.asked))


@dataclass(frozen=True, slots=True)
class PseudoQuestion:
    """A sentence as a question, and the rest of its passage as the answer.

    Attributes:
        position: position of the passage in the sample.
        answer: the rest of the passage, after the heading or title of the passage.
    """

    position: int
    question: str
    answer: str


def pseudo_questions(passages: Sequence[Passage]) -> Iterator[PseudoQuestion]:
    """Yield at most MAX_PSEUDO_QUESTIONS, made from the first passages with at least two sentences."""
    count = 0
    for number, passage in enumerate(passages):
        text = _visible(passage)
        ends = sentence_ends(text)
        sentences = list(zip([0, *ends], [*ends, len(text)], strict=True))
        fit = [(start, end) for start, end in sentences if 20 <= len(text[start:end].strip()) <= 400]
        if len(sentences) < 2 or not fit:
            continue
        start, end = fit[key(passage) % len(fit)]
        if not (rest := text[:start] + text[end:]).strip():
            continue
        yield PseudoQuestion(number, text[start:end].strip(), _with_heading(passage, rest))
        if (count := count + 1) == MAX_PSEUDO_QUESTIONS:
            return


def _visible(passage: Passage) -> str:
    return visible_text(passage.text, passage.format)


def _with_heading(passage: Passage, text: str) -> str:
    return f"{passage.heading or passage.title} {text}".strip()


def _mean_reciprocal_rank(
    answers: NDArray[np.floating], passages: NDArray[np.floating], rivals: NDArray[np.bool_]
) -> float:
    """Return the mean reciprocal rank of the answers; a tie gets the middle rank.

    Args:
        answers: score of each question's answer (questions,).
        passages: scores of all passages for each question (questions, passages).
        rivals: which passages compete with the answer (questions, passages).
    """
    above = ((passages > answers[:, None]) & rivals).sum(axis=1)
    equal = ((passages == answers[:, None]) & rivals).sum(axis=1)
    return float((1 / (1 + above + equal / 2)).mean())
