"""Fusion: how a question's cosines and BM25 scores become the one score of hybrid mode.

The score is a convex combination (Bruch, Gai, Ingber 2023) of the cosine's z-score, in standard deviations above the
mean cosine of the question and the collection, and of the BM25 score itself. The weight of the words depends on the
z-score of the best passage, on the number of terms, on how well words did on the collection's pseudo-questions
(indexer/calibration/probe.py), and on whether the model reads the question. docs/fusion.md explains the formula.
Nothing here searches or reads a store.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.settings import MIN_PSEUDO_QUESTIONS, Probed, Settings

CANDIDATES = 100
"""Minimum candidate documents from each leg; 2 k if this is more. For k = 10, the values 60 and 200 give the same
ranking."""

WORDS_ADVANTAGE = 0.1
"""Logarithm of the ratio at which pseudo-questions count as even: sentences of the collection share more words with
their answers than questions do."""

BIAS_FACTOR = 15.0
"""Factor of the words bias. From 10 to 20, the mean of 26 collections changes by less than 0.001."""

MAX_WORDS_BIAS = 2.5
"""Maximum change of the odds of words by pseudo-questions, in natural logarithms: a factor of 12."""

READ_PIECES = 1.2
"""Tokens per word of questions that a model reads: English questions have 1.2, and German ones 2.2, with the tokenizer
of a model of English."""

UNREAD_FACTOR = 1.5
"""Factor of the logarithm of tokens per word. From 1 to 3, the mean of 24 collections changes by about 0.001."""

MAX_UNREAD_BIAS = 1.1
"""Maximum change of the odds of words because a model does not read the question, in natural logarithms."""

Scores = NDArray[np.float64]


class Fused(NamedTuple):
    """The scores of candidates and their two parts, in the order the candidates were given.

    Attributes:
        scores: sum of the two contributions (candidates,).
        dense, words: contribution of the cosine and of BM25 (candidates,).
    """

    scores: Scores
    dense: Scores
    words: Scores


def fuse(z_scores: Scores, words: NDArray[np.floating], weight: float) -> Fused:
    """Return the convex combination of both scores.

    Args:
        z_scores: z-scores of the candidates' cosines (candidates,).
        words: BM25 scores of the candidates (candidates,); 0 for a candidate without a word of the question.
        weight: weight of the words, as `words_weight` returns it.
    """
    dense, lexical = (1 - weight) * z_scores, weight * words.astype(np.float64)
    return Fused(dense + lexical, dense, lexical)


def words_weight(z_scores: Scores, words: NDArray[np.floating], terms: int, words_bias: float = 0.0) -> float:
    """Return the weight of the words of this question, 0 to 1.

    The four constants were fitted to collections of ten origins, each time tested on an origin that was left out.

    Args:
        z_scores, words: as in `fuse`; the best of both legs are among the candidates.
        terms: how many different terms the word index was asked for.
        words_bias: how much more words weigh in this collection than usual, in natural logarithms of the odds.
    """
    if terms == 0 or not words.size or words.max() <= 0:
        return 0.0
    best = min(float(z_scores.max()), 6.0)
    odds = math.exp(0.8 - 0.3 * best + words_bias) / math.sqrt(terms)
    return odds / (1 + odds)


def words_bias(settings: Settings) -> float:
    """Return the words bias of hybrid mode: learned from judged questions (`tune`), or else from pseudo-questions; 0 if
    they were not asked."""
    if settings.words_bias is not None:
        return settings.words_bias
    return probed_words_bias(settings.probed) if settings.probed else 0.0


def probed_words_bias(probed: Probed, factor: float = BIAS_FACTOR) -> float:
    """Return the words bias that a collection's pseudo-questions suggest; 0 if there were too few of them.

    The bias is a cube. If both legs find about as much, the bias is nearly 0, because the ratio then says little about
    real questions. If one leg fails, nearly the other leg alone decides. docs/fusion.md explains the shape.
    """
    if probed.questions < MIN_PSEUDO_QUESTIONS:
        return 0.0
    bias = factor * (probed.log_ratio - WORDS_ADVANTAGE) ** 3
    return max(-MAX_WORDS_BIAS, min(bias, MAX_WORDS_BIAS))


def unread_words_bias(pieces_per_word: float) -> float:
    """Return how much more words weigh if a model of another language cuts the words of a question into so many tokens.

    Pseudo-questions alone do not show that a model hardly reads the texts: it finds the rest of a passage by the names
    and letters that both share, and real questions share fewer.
    """
    return min(UNREAD_FACTOR * math.log(max(pieces_per_word / READ_PIECES, 1.0)), MAX_UNREAD_BIAS)


def mean_with_best(cosines: NDArray[np.floating], best_means: NDArray[np.floating]) -> Scores:
    """Return the cosines that rank units (n,): the average of the best passage and the mean of the best passages.

    A hit still shows the cosine of its best passage.
    """
    return (cosines.astype(np.float64) + best_means) / 2
