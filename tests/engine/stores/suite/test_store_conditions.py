"""Conditions of a question on every engine: phrases and words that a document or passage must hold, or must not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from engine.stores.suite.suite import (
    AXES,
    ENGINES,
    MANY,
    SETTINGS,
    UNITS,
    Engine,
    doc,
    put,
    random_rows,
    remove,
    same_candidates,
    same_words,
    shown,
    uris,
)

from indexer.filters.parse import parse
from indexer.records import Span
from indexer.stores.port import Condition, EmbeddedDocument, Unit
from indexer.stores.reading.store import Store
from indexer.stores.words.exact import exact_words

DERIVED = [pytest.param(ENGINES[name], id=name) for name in ("folder", "postgres")]
"""The engines whose words are in an index."""


def row(text: str, *, excluded: bool = False) -> Condition:
    return Condition(f'"{text}"', tuple(exact_words(text)), excluded)


TEXTS = {
    "plain": "Vitamin D deficiency is common.",
    "marks": "He said “Vitamin — D”, twice.",
    "reversed": "D vitamin",
    "stems": "vitamins d",
    "accents": "Café crème, cafe\u0301 noir",
    "no accents": "cafe creme",
    "chinese": "我住在东京都的北边",
    "mixed": "C言語のプログラム and ABC言語",
    "soft hyphen": "vita\u00admin d",
    "persian": "کتاب علی",
    "azeri": "YALIN İŞIQ",
    "emphasis": "_vitamin_ **d** and parse_json",
    "empty": "...",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("vitamin d", {"plain", "marks", "soft hyphen", "emphasis"}),
        pytest.param("VITAMIN, d", {"plain", "marks", "soft hyphen", "emphasis"}, marks=pytest.mark.slow),
        pytest.param("d deficiency is", {"plain"}, marks=pytest.mark.slow),
        ("vitamin deficiency", set()),
        ("café", {"accents"}),
        pytest.param("cafe", {"no accents"}, marks=pytest.mark.slow),
        pytest.param("creme", {"no accents"}, marks=pytest.mark.slow),
        pytest.param("东京", {"chinese"}, marks=pytest.mark.slow),
        ("京都的", {"chinese"}),
        ("都京", set()),
        ("c言語", {"mixed"}),
        pytest.param("言語の", {"mixed"}, marks=pytest.mark.slow),
        ("كتاب علي", {"persian"}),
        ("yalın işıq", {"azeri"}),
        ("parse_json", {"emphasis"}),
        pytest.param("json", set(), marks=pytest.mark.slow),
    ],
)
def test_these_texts_have_these_words_in_a_row(store: Store, words: str, expected: set[str]) -> None:
    put(store, *(doc(uri, text) for uri, text in TEXTS.items()))
    for unit in UNITS:
        for excluded in (False, True):
            conditions = (row(words, excluded=excluded),)
            left = TEXTS.keys() - expected if excluded else expected
            with store.snapshot() as snapshot:
                ranking = snapshot.dense(AXES[0], MANY, None, unit, False, conditions)
                assert set(uris(snapshot, ranking)) == left
                assert (ranking.matched, ranking.exact) == (len(left), True)
                assert set(uris(snapshot, snapshot.words("", 99, None, unit, conditions))) == left


def test_title_and_visible_text_count_each_by_itself(store: Store) -> None:
    put(
        store,
        doc("a", "one two", title="alpha beta"),
        doc("b", "see [the guide](https://example.org/hidden) now", format="markdown"),
    )
    with store.snapshot() as snapshot:
        for words, expected in (
            ("alpha beta", ["a"]),
            ("one two", ["a"]),
            ("beta one", []),
            ("the guide now", ["b"]),
            ("hidden", []),
        ):
            assert uris(snapshot, snapshot.dense(AXES[0], 9, conditions=(row(words),))) == expected, words


def test_words_are_held_with_their_dash(store: Store) -> None:
    held = "unpack with `tar -xzf`, −40 or –60, 温度（－20）, -std=c++20, '-é'"
    put(store, doc("a", f"{held}, not x-ray --force (a)-b cafe\u0301-bar –word 5%-7% - dash", title="a -flag"))
    put(store, doc("b", "-gone"))
    remove(store, "b")
    with store.snapshot() as snapshot:
        for text in ("xzf", "40", "60", "20", "std", "std c 20", "é", "flag"):
            assert snapshot.holds_dashed(row(text).words), text
        for text in ("tar", "ray", "force", "b", "bar", "word", "7", "dash", "c 20", "std c 11", "gone", "absent"):
            assert not snapshot.holds_dashed(row(text).words), text


def test_passages_meet_conditions_by_their_own_text(store: Store) -> None:
    halves = [Span(0, 7), Span(8, 15)]
    put(store, doc("a", "one two two one", np.tile(AXES[:1], (2, 1)), halves, title="t"))
    with store.snapshot() as snapshot:
        for words, documents, passages in (
            ("one two", 1, [0]),
            ("two one", 1, [8]),
            ("two two", 1, []),
            ("t", 1, [0, 8]),
        ):
            conditions = (row(words),)
            assert snapshot.dense(AXES[0], 9, conditions=conditions).matched == documents
            ranking = snapshot.dense(AXES[0], 9, unit="passage", conditions=conditions)
            assert [start for _, start in shown(snapshot, ranking.passages)] == passages
            assert ranking.matched == len(passages)


def test_without_a_question_the_required_words_rank(store: Store) -> None:
    halves = [Span(0, 10), Span(11, 30)]
    put(
        store,
        doc("once", "pear fig plum plum plum"),
        doc("thrice", "fig fig fig. or the pear fig", np.tile(AXES[:1], (2, 1)), [Span(0, 12), Span(13, 28)]),
        doc("neither", "fig pear"),
        doc("stop", "to be or not to be", np.tile(AXES[:1], (2, 1)), [Span(0, 8), Span(9, 18)]),
    )
    with store.snapshot() as snapshot:
        ranking = snapshot.words("", 9, conditions=(row("pear fig"),))
        # The passage that holds the phrase is shown, although another one has more of its words.
        assert shown(snapshot, ranking.passages) == [("thrice", 13), ("once", 0)]
        of_terms = dict(zip(uris(snapshot, whole := snapshot.words("pear fig", 9)), whole.scores.tolist(), strict=True))
        assert ranking.scores.tolist() == [of_terms["thrice"], of_terms["once"]]
        # Words too common to rank by are conditions all the same; without a score the order is that of addition.
        ranking = snapshot.words("the", 9, conditions=(row("to be"),))
        assert (uris(snapshot, ranking), ranking.scores.tolist(), ranking.matched) == (["stop"], [0.0], 1)
        ranking = snapshot.words("", 9, conditions=(row("be", excluded=True),))
        assert uris(snapshot, ranking) == ["once", "thrice", "neither"]
    assert halves


@pytest.mark.parametrize("engine", DERIVED)
def test_long_words_are_told_apart(store: Store) -> None:
    put(store, doc("a", "x" * 100 + "a"), doc("b", "x" * 100 + "b"), doc("c", "x" * 64))
    with store.snapshot() as snapshot:
        assert uris(snapshot, snapshot.dense(AXES[0], 9, conditions=(row("X" * 100 + "B"),))) == ["b"]


_WORDS = (
    *(
        "the",
        "the",
        "the",
        "of",
        "of",
        "fig",
        "pear",
        "plum",
        "café",
        "cafe",
        "naïve",
        "Straße",
        "STRASSE",
        "x_y",
        "3.5",
    ),
    *("東京", "京都", "京", "の", "ไทย", "d'or", "e\u0301t\u00e9", "کتابی", "IŞIĞIN", "İ"),
)
_BETWEEN = (" ", " ", " ", ", ", "\n", "—", " “", "” ", "-", "  ")


def _text(chance: Random, most: int) -> str:
    return "".join(chance.choice(_WORDS) + chance.choice(_BETWEEN) for _ in range(chance.randrange(most)))


def _documents(chance: Random, count: int) -> list[EmbeddedDocument]:
    rows = iter(random_rows(3 * count, chance.randrange(1 << 30)))
    documents = []
    for number in range(count):
        text = _text(chance, 14)
        borders = sorted({0, len(text), *(chance.randrange(len(text) + 1) for _ in range(chance.randrange(3)))})
        spans = [Span(*pair) for pair in pairwise(borders)] or [Span(0, 0)]
        vectors = np.array([next(rows) for _ in spans[:3]])
        documents.append(
            doc(f"d{number}", text, vectors, spans[:3], title=_text(chance, 3), metadata={"n": number % 5})
        )
    return documents


def _conditions(chance: Random, texts: Sequence[str]) -> tuple[Condition, ...]:
    conditions = []
    while len(conditions) < chance.choice((1, 1, 2, 3)):
        words = exact_words(chance.choice(texts)) or ["fig"]
        start, length = chance.randrange(len(words)), chance.choice((1, 1, 2, 2, 3))
        part = words[start : start + length]
        if chance.random() < 0.15:
            chance.shuffle(part)
        conditions.append(Condition(" ".join(part), tuple(part), chance.random() < 0.4))
    return tuple(conditions)


@pytest.mark.parametrize("engine", DERIVED)
@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(1, id="one"),
        pytest.param(5, id="some", marks=pytest.mark.slow),
        pytest.param(60, id="many", marks=[pytest.mark.long, pytest.mark.timeout(900)]),
    ],
)
def test_every_engine_agrees_with_brute_force(store: Store, engine: Engine, tmp_path: Path, rounds: int) -> None:
    """Each round asks 192 questions: conditions, modes, units, filters and k, of documents that change."""
    chance, questions = Random(7), 0
    oracle = ENGINES["reference"].create(str(tmp_path / "oracle.index"), SETTINGS)
    for number in range(rounds):
        documents = _documents(chance, 12)
        for each in (store, oracle):
            put(each, *documents)
            remove(each, f"d{number % 12}")
            if number % 4 == 3:
                with each.writer() as writer:
                    writer.settle()
        texts = [one.document.text for one in documents]
        with store.snapshot() as mine, oracle.snapshot() as theirs:
            for vector in random_rows(24, number):
                conditions, where = _conditions(chance, texts), chance.choice([None, "n < 3", "n = 2"])
                tree, question = (
                    parse(where) if where else None,
                    chance.choice(["fig 京都", "pear", "figpear plum", "the", ""]),
                )
                k = chance.choice((1, 3, MANY))
                for unit in UNITS:
                    questions += _agree(mine, theirs, vector, question, k, tree, unit, conditions)
    assert questions == 192 * rounds


def _agree(mine: Any, theirs: Any, vector: Any, question: str, k: int, where: Any, unit: Unit, conditions: Any) -> int:
    """Ask both in every mode; return the number of questions."""
    pair = [snapshot.dense(vector, k, where, unit, False, conditions) for snapshot in (mine, theirs)]
    assert shown(mine, pair[0].passages) == shown(theirs, pair[1].passages), (conditions, where, unit)
    assert (pair[0].matched, pair[0].exact) == (pair[1].matched, True)
    assert len(pair[0].passages) == min(k, pair[0].matched)
    whole = theirs.words(question, 10_000, where, unit, conditions)
    same_words(mine, mine.words(question, min(k, 99), where, unit, conditions), theirs, whole, min(k, 99))
    same_candidates(mine, theirs, vector, 5, where, unit, [question], conditions)
    return 4
