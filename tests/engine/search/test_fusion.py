"""Fusion against sums done by hand: the combination, the weight, and the z-scores of cosines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.calibration.cosines import CosineStatistics
from indexer.settings import Probed
from indexer.stores.reading.candidates import best_passages
from search import Searcher
from search.ranking.fusion import (
    fuse,
    mean_with_best,
    probed_words_bias,
    unread_words_bias,
    words_weight,
)


def test_a_score_is_the_convex_combination_and_the_sum_of_its_contributions() -> None:
    fused = fuse(np.array([4.0, 1.0, -2.0]), np.array([0.0, 10.0, 5.0]), 0.25)
    assert fused.scores.tolist() == [3.0, 3.25, -0.25]
    assert fused.dense.tolist() == [3.0, 0.75, -1.5]
    assert fused.words.tolist() == [0.0, 2.5, 1.25]
    random = np.random.default_rng(1)
    z_scores, words = random.normal(size=500), random.exponential(8, 500).astype(np.float32)
    fused = fuse(z_scores, words, 0.1234)
    assert np.array_equal(fused.scores, fused.dense + fused.words)
    assert np.allclose(fused.scores, (1 - 0.1234) * z_scores + 0.1234 * words.astype(float), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("weight", "best"), [(0.0, 0), (1.0, 2)])
def test_the_whole_weight_on_one_leg_is_that_leg(weight: float, best: int) -> None:
    assert int(fuse(np.array([3.0, 2.0, 1.0]), np.array([0.0, 1.0, 2.0]), weight).scores.argmax()) == best


def bias_of(words: float, dense: float, questions: int = 200) -> float:
    return probed_words_bias(Probed(words, dense, questions))


def test_the_weight_follows_its_formula() -> None:
    """The best z-score is 5, there are 9 terms, and words did half as well again on pseudo-questions."""
    bias = bias_of(0.8, 0.5)
    assert bias == pytest.approx(15 * (math.log(0.9 / 0.6) - 0.1) ** 3)
    odds = math.exp(0.8 - 1.5 + bias) / 3
    weight = words_weight(np.array([0.5, 5.0]), np.array([7.0, 1.0]), 9, bias)
    assert weight == pytest.approx(odds / (1 + odds))


def test_pseudo_questions_count_only_if_one_leg_is_clearly_better_and_never_without_bound() -> None:
    assert bias_of(0.5, 0.5) == pytest.approx(-0.015)
    assert bias_of(0.56, 0.5) == pytest.approx(0, abs=1e-3)
    assert bias_of(0.3, 0.5) == pytest.approx(-1.937, abs=1e-3)
    assert bias_of(0.9, 0.1) == 2.5
    assert bias_of(0.1, 0.9) == -2.5
    assert bias_of(0.9, 0.1, 49) == 0


def test_words_weigh_more_for_questions_that_the_tokenizer_cuts_into_pieces() -> None:
    assert [unread_words_bias(pieces) for pieces in (0.5, 1.0, 1.2)] == [0, 0, 0]
    assert unread_words_bias(2.0) == pytest.approx(1.5 * math.log(2 / 1.2))
    assert unread_words_bias(7.0) == 1.1


def test_words_weigh_less_with_a_higher_z_score_of_the_best_passage_and_with_a_longer_question() -> None:
    bm25 = np.array([3.0])
    weights = [words_weight(np.array([best]), bm25, 4) for best in (2.0, 4.0, 6.0, 9.0)]
    assert weights[0] > weights[1] > weights[2] == weights[3]
    assert words_weight(np.array([4.0]), bm25, 4) > words_weight(np.array([4.0]), bm25, 40)


def test_words_that_found_nothing_weigh_nothing() -> None:
    z_scores = np.array([1.0, 2.0])
    assert words_weight(z_scores, np.zeros(2), 3) == 0
    assert words_weight(z_scores, np.ones(2), 0) == 0
    assert words_weight(np.empty(0), np.empty(0), 3) == 0


def test_the_z_scores_of_a_sample_are_those_of_its_own_cosines() -> None:
    rows = np.random.default_rng(2).normal(size=(300, 8)).astype(np.float32) + 0.3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    question = rows[0]
    cosines = rows @ question
    expected = (cosines - cosines.mean()) / cosines.std()
    assert np.allclose(CosineStatistics.from_sample(rows).z_scores(question, cosines), expected, atol=1e-4)


def test_a_collection_of_one_passage_has_z_scores() -> None:
    row = np.array([[0.6, 0.8]], np.float32)
    assert CosineStatistics.from_sample(row).z_scores(row[0], row @ row[0]).tolist() == pytest.approx([0.0], abs=1e-3)


def test_a_document_counts_half_its_best_passage_and_half_the_mean_of_its_three_best() -> None:
    cosines = np.array([0.2, 0.9, 0.6, 0.5, 0.3, 0.8, 0.4])
    documents = np.array([7, 3, 7, 7, 7, 3, 5])
    one = np.zeros(7, np.int64)
    ids, passages, best, means = best_passages(np.arange(10, 17), documents, cosines, one)
    assert (ids.tolist(), passages.tolist()) == ([3, 5, 7], [11, 16, 12])
    assert best.tolist() == [0.9, 0.4, 0.6]
    # The passage of .2 of the last one is its fourth.
    assert mean_with_best(best, means).tolist() == pytest.approx(
        [(0.9 + 0.85) / 2, 0.4, (0.6 + (0.6 + 0.5 + 0.3) / 3) / 2]
    )
    # The passages of .6 and .3 are in one attachment of a mail.
    means = best_passages(np.arange(10, 17), documents, cosines, np.array([0, 0, 1, 0, 1, 0, 0]))[3]
    assert means.tolist() == pytest.approx([0.85, 0.4, 0.45])
    nothing = np.empty(0, np.int64)
    assert [each.size for each in best_passages(nothing, nothing, np.empty(0, np.float32), nothing)] == [0, 0, 0, 0]


class _InPieces(WordEncoder):
    """An encoder by the name of a model of English, whose tokens are at most four letters long."""

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [np.array([m.span() for m in re.finditer(r"\w{1,4}", text)], np.int32).reshape(-1, 2) for text in texts]


def test_words_weigh_more_in_an_index_that_its_model_does_not_read(
    tmp_path: Path, register: Callable[..., None]
) -> None:
    encoder = _InPieces("all-MiniLM-L6-v2", max_tokens=64)
    register(encoder)
    documents = [Document(str(n), f"Krankenkassen zahlen Beitrag {n} von alle Tage") for n in range(5)]
    odds = {}
    for language in ("none", "en"):
        with Index.create(tmp_path / language, encoder, language=language) as index:
            index.add(documents)
        with Searcher(tmp_path / language, encoder=encoder) as searcher:
            for question in ("Krankenkassen", "Tage", "Beitrag Tage"):
                why = searcher.search(question, mode="hybrid")[0].why
                assert why is not None
                odds[language, question] = math.log(why["weights"]["words"] / why["weights"]["cosine"])
    for question, pieces in (("Krankenkassen", 4), ("Tage", 1), ("Beitrag Tage", 1.5)):
        difference = odds["none", question] - odds["en", question]
        assert difference == pytest.approx(unread_words_bias(pieces), abs=1e-6)
    assert unread_words_bias(4) == 1.1
