"""How well words and meaning find things in one index, without judgments: pseudo-questions made of its own passages.

A sentence is taken out of a passage and asked; what is left of the passage is the answer (the inverse cloze task,
Lee et al. 2019). Both legs look for it, and their mean reciprocal ranks say which one this collection can trust.
What becomes of that in a ranking is decided in search/fusion.py. Nothing here reads or writes a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.calibration.bm25 import Bm25
from indexer.encoders import Encoder
from indexer.records import Vector
from indexer.sentences import sentence_ends
from indexer.settings import MIN_PSEUDO_QUESTIONS, Probed
from indexer.stores.port import Passage

SAMPLE_PASSAGES = 2000
"""Passages to draw: those that are asked about and those they compete with."""

MAX_PSEUDO_QUESTIONS = 200
"""Pseudo-questions at most; their answers have to be embedded, about 10 ms each."""


def probe(
    passages: Sequence[Passage],
    vectors: Vector,
    encoder: Encoder,
    terms: Callable[[str], Sequence[str]],
    seed: int = 0,
) -> Probed:
    """Ask pseudo-questions of a sample of an index.

    Args:
        passages: the sample, such as SAMPLE_PASSAGES random ones.
        vectors: theirs, unit rows (passages, dimensions).
        terms: a text as the terms of the word index.
        seed: draws the passages and the sentences; the same sample gives the same answer.
    """
    drawn = list(_questions(passages, np.random.default_rng(seed)))
    read = encoder.offsets([text for _, *both in drawn for text in both])  # some hold nothing that the model reads
    asked = [one for at, one in enumerate(drawn) if len(read[2 * at]) and len(read[2 * at + 1])]
    if len(asked) < MIN_PSEUDO_QUESTIONS:
        return Probed()
    at = np.array([number for number, _, _ in asked])
    questions = encoder.encode([question for _, question, _ in asked], role="query", truncate=True)
    answers = encoder.encode([answer for _, _, answer in asked], role="document", truncate=True)
    documents = np.array([passage.document_id for passage in passages])
    rivals = documents[None, :] != documents[at][:, None]  # neighbours may hold the sentence too
    dense = _reciprocal(questions @ vectors.T, (questions * answers).sum(axis=1), rivals)
    bm25 = Bm25([terms(_text(passage, passage.text)) for passage in passages])
    wanted = [terms(question) for _, question, _ in asked]
    own = np.array([bm25.score(terms(answer), ask) for (_, _, answer), ask in zip(asked, wanted, strict=True)])
    words = _reciprocal(np.array([bm25.scores(ask) for ask in wanted]), own, rivals)
    return Probed(round(words, 4), round(dense, 4), len(asked))


def _questions(passages: Sequence[Passage], random: np.random.Generator) -> Iterator[tuple[int, str, str]]:
    """Position of a passage, a sentence of it, and the passage without it; at most MAX_PSEUDO_QUESTIONS."""
    found = 0
    for number in random.permutation(len(passages)).tolist():
        text = passages[number].text
        ends = sentence_ends(text)
        sentences = list(zip([0, *ends], [*ends, len(text)], strict=True))
        fit = [(start, end) for start, end in sentences if 20 <= len(text[start:end].strip()) <= 400]
        if len(sentences) < 2 or not fit:
            continue
        start, end = fit[random.integers(len(fit))]
        if not (rest := text[:start] + text[end:]).strip():
            continue
        yield number, text[start:end].strip(), _text(passages[number], rest)
        if (found := found + 1) == MAX_PSEUDO_QUESTIONS:
            return


def _text(passage: Passage, text: str) -> str:
    return f"{passage.heading or passage.title} {text}".strip()


def _reciprocal(scores: NDArray[np.floating], own: NDArray[np.floating], rivals: NDArray[np.bool_]) -> float:
    """Mean reciprocal rank of `own` (questions,) among the rivals' scores; in a tie the middle rank."""
    above = ((scores > own[:, None]) & rivals).sum(axis=1)
    equal = ((scores == own[:, None]) & rivals).sum(axis=1)
    return float((1 / (1 + above + equal / 2)).mean())
