"""Pseudo-questions on collections in which words, or vectors, are known to find more."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from indexer.calibration.probe import MAX_PSEUDO_QUESTIONS, ask, compare
from indexer.settings import MIN_PSEUDO_QUESTIONS, Probed
from indexer.stores.port import Passage
from search.ranking.fusion import probed_words_bias, words_weight

SUBJECTS = [f"subject{number}" for number in range(60)]


def passage(number: int, text: str, document: int | None = None) -> Passage:
    owner = number if document is None else document
    return Passage(number, owner, f"d{owner}", "", text, 0, len(text), 1, "", None, None, None, None, {})


def collection() -> list[Passage]:
    """Each passage speaks of its own subject in both of its sentences."""
    return [passage(n, f"Here {w} {w}b {w}c. There {w}c {w}b {w} {w}.") for n, w in enumerate(SUBJECTS)]


def split(text: str) -> list[str]:
    return text.casefold().replace(".", " ").split()


def same(text: str) -> list[str]:
    """Terms that tell nothing apart."""
    return ["word"]


def asked(encoder: Any, passages: list[Passage], terms: Callable[[str], Sequence[str]] = split) -> Probed:
    vectors = encoder.encode([p.text for p in passages], truncate=True)
    return compare(ask(passages, vectors, encoder), passages, terms)


def test_both_legs_find_what_both_can_find(encoder: Any) -> None:
    probed = asked(encoder, collection())
    assert probed.questions == len(SUBJECTS)
    assert probed.words == 1.0  # only one passage has the subject
    assert probed.dense > 0.8


def test_vectors_of_no_use_get_next_to_no_weight(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(texts: Sequence[str], role: str = "document", truncate: bool = False) -> Any:
        rows = np.random.default_rng(len(role)).normal(size=(len(texts), 64)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    monkeypatch.setattr(encoder, "encode", blind)
    probed = asked(encoder, collection())
    assert probed.words == 1.0
    assert probed.dense < 0.2
    assert words_weight(np.array([2.0]), np.array([5.0]), 4, probed_words_bias(probed)) > 0.85


def test_words_of_no_use_get_next_to_no_weight(encoder: Any) -> None:
    probed = asked(encoder, collection(), same)
    assert probed.words == pytest.approx(2 / 61, abs=0.01)  # all in a tie: the middle rank
    assert words_weight(np.array([6.0]), np.array([5.0]), 9, probed_words_bias(probed)) < 0.01


def test_the_sentence_is_taken_out_of_its_passage_and_of_its_title_nothing(encoder: Any) -> None:
    titled = [dataclasses.replace(p, title="Title", heading="Head > Line" if p.id % 2 else "") for p in collection()]
    vectors = encoder.encode([p.text for p in titled], truncate=True)
    encoder.seen.clear()
    ask(titled, vectors, encoder)
    questions, answers = encoder.seen[:60], encoder.seen[60:]
    for question, answer in zip(questions, answers, strict=True):
        assert question.startswith(("Here ", "There "))
        assert question not in answer
        assert answer.startswith(("Title ", "Head > Line "))


def test_a_passage_does_not_compete_with_its_neighbours(encoder: Any) -> None:
    """Every passage is twice in its document, as overlapping passages nearly do."""
    doubled = [*collection(), *(passage(100 + p.id, p.text, p.id) for p in collection())]
    assert asked(encoder, doubled).words == 1.0


def test_the_same_sample_gives_the_same_answer(encoder: Any) -> None:
    assert asked(encoder, collection()) == asked(encoder, collection())


def test_a_collection_of_single_sentences_says_nothing(encoder: Any) -> None:
    short = [passage(n, f"Only {word} here") for n, word in enumerate(SUBJECTS)]
    assert asked(encoder, short) == Probed()
    assert asked(encoder, collection()[: MIN_PSEUDO_QUESTIONS - 1]) == Probed()
    assert ask([], np.empty((0, encoder.dimensions), np.float32), encoder) is None
    assert probed_words_bias(Probed()) == 0


def test_the_work_is_bounded(encoder: Any) -> None:
    many = [passage(n, f"Here s{n} s{n}b s{n}c. There s{n}c s{n}b s{n}.") for n in range(MAX_PSEUDO_QUESTIONS + 50)]
    vectors = encoder.encode([p.text for p in many], truncate=True)
    encoder.seen.clear()
    assert (pseudo := ask(many, vectors, encoder)) is not None
    assert len(pseudo.asked) == MAX_PSEUDO_QUESTIONS
    assert len(encoder.seen) == 2 * MAX_PSEUDO_QUESTIONS


def test_sentences_end_in_chinese_too(make_encoder: Callable[..., Any]) -> None:
    text = "這是關於主題的第一個句子而且足夠長可以作為問題使用。這是關於主題的第二個句子而且足夠長可以作為問題。"
    passages = [passage(n, text + str(n)) for n in range(MIN_PSEUDO_QUESTIONS)]
    assert asked(make_encoder(max_tokens=256), passages, list).questions == MIN_PSEUDO_QUESTIONS


def test_the_ratio_is_smoothed_and_nothing_found_by_either_is_even() -> None:
    assert Probed(0.4, 0.1, 100).log_ratio == pytest.approx(math.log(0.5 / 0.2))
    assert Probed(0.0, 0.0, 100).log_ratio == 0
    probed = Probed(0.4, 0.1, 100)
    assert Probed.from_json(probed.to_json()) == probed
