"""Ranking by meaning and by words, candidates of hybrid questions, samples and pairs, on every engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engine.stores.suite.suite import (
    AXES,
    DIMENSIONS,
    MANY,
    NEAR,
    SETTINGS,
    UNITS,
    doc,
    filled,
    put,
    random_rows,
    remove,
    shown,
    uris,
)

from indexer.errors import BadInput, NoWords
from indexer.filters.parse import parse
from indexer.records import Span, Vector
from indexer.stores.port import Unit
from indexer.stores.reading.store import Store

# ranking by meaning


def brute_force(
    store: Store, vector: Vector, one: Unit, allowed: Callable[[int], bool] = lambda number: True
) -> list[tuple[str, int, float]]:
    """Every unit that is allowed with its best passage: uri, start, cosine; equal ones as they were added."""
    best: dict[Any, tuple[str, int, float]] = {}
    for item in store.export():
        assert item.spans is not None
        assert item.vectors is not None
        for span, row in zip(item.spans, item.vectors, strict=True):
            found = (item.document.uri, span.start, float(np.float32(np.einsum("j,j->", row, vector))))
            key = found[0] if one == "document" else found[:2]
            if allowed(item.document.metadata["n"]) and (key not in best or found[2] > best[key][2]):
                best[key] = found
    return sorted(best.values(), key=lambda unit: -unit[2])


@pytest.mark.parametrize("one", UNITS)
@pytest.mark.parametrize("exact", [False, True])
def test_dense_is_brute_force(store: Store, one: Unit, exact: bool) -> None:
    vector = filled(store)
    filters: list[tuple[str | None, Callable[[int], bool]]] = [
        (None, lambda n: True),
        ("n >= 3 and n < 9", lambda n: 3 <= n < 9),
        ("n = 7", lambda n: n == 7),
        ("n < 0", lambda n: False),
        ("even = true", lambda n: n % 2 == 0),
    ]
    for settle in (False, True):
        if settle:
            remove(store, "d2", "d8")
            with store.writer() as writer:
                writer.settle()
        for text, allowed in filters:
            expected = brute_force(store, vector, one, allowed)
            for k in (0, 1, 5, len(expected), len(expected) + 1, MANY):
                with store.snapshot() as snapshot:
                    ranking = snapshot.dense(vector, k, parse(text) if text else None, one, exact)
                    assert shown(snapshot, ranking.passages) == [unit[:2] for unit in expected[:k]]
                    owners = [passage.document_id for passage in snapshot.passages_by_id(ranking.passages.tolist())]
                assert (ranking.matched, ranking.exact) == (len(expected), True)
                assert ranking.documents.tolist() == owners
                assert ranking.scores.dtype == np.float32
                assert ranking.passages.dtype == np.int64
                np.testing.assert_allclose(ranking.scores, [unit[2] for unit in expected[:k]], atol=1e-6)


def test_equal_cosines_come_in_the_order_the_passages_were_added(store: Store) -> None:
    halves = [Span(0, 1), Span(1, 2)]
    put(store, *(doc(f"d{number}", "ab", np.tile(AXES[:1], (2, 1)), halves) for number in range(40)))
    put(store, doc("d3", "ab", AXES[:2], halves))  # its passages are the newest now
    order = [f"d{number}" for number in range(40) if number != 3] + ["d3"]
    for change in ("none", "settle", "exact"):
        with store.writer() as writer:
            if change == "settle":
                writer.settle()
            elif change == "exact":
                writer.compact("exact")
        with store.snapshot() as snapshot:
            for k in (1, 7, 50):
                ranking = snapshot.dense(AXES[0], k, None, "document", False)
                assert shown(snapshot, ranking.passages) == [(uri, 0) for uri in order[:k]]
            passages = [(uri, start) for uri in order for start in (0, 1)]
            ranking = snapshot.dense(AXES[0], 30, None, "passage", False)
            assert shown(snapshot, ranking.passages) == passages[:30]
            assert ranking.scores.tolist() == [1.0] * 30
            assert snapshot.dense(AXES[1], 80, None, "passage", False).scores.tolist() == [1.0] + [0.0] * 79


# words


def test_words_have_exactly_these_scores(store: Store) -> None:
    put(store, doc("a", "apple pie"), doc("b", "apples, apple: tart cake"), doc("c", "pear"))
    with store.snapshot() as snapshot:
        ranking = snapshot.words("an apple", 9, None, "document")
        # idf = ln(1 + (3 - 2 + .5) / (2 + .5)) = .4700; of `b`, with a mean length of 7/3: 2.2 * 2 / (2 + 1.8429) * idf
        assert uris(snapshot, ranking) == ["b", "a"]
        assert ranking.scores.tolist() == pytest.approx([0.5381, 0.4992], abs=1e-4)
        assert (ranking.matched, ranking.exact) == (2, True)
        assert ranking.scores.dtype == np.float32
        # idf of a word that one text of three has: ln(1 + 2.5 / 1.5) = .9808; each word of the question counts once
        ranking = snapshot.words("pear pear pie pears", 9, None, "passage")
        assert uris(snapshot, ranking) == ["c", "a"]
        assert ranking.scores.tolist() == pytest.approx([1.2801, 1.0417], abs=1e-4)
        assert snapshot.words("apple", 1, None, "document").scores.tolist() == pytest.approx([0.5381], abs=1e-4)
        assert snapshot.words("unknown", 9, None, "document").matched == 0
        assert len(snapshot.words("unknown words", 9, None, "passage").passages) == 0


def test_lengths_are_rounded_to_one_byte(store: Store) -> None:
    put(store, doc("a", "apple" + " filler" * 62), doc("b", "apple" + " filler" * 36))
    with store.snapshot() as snapshot:
        # 63 words count as 60, 37 as 37; the mean is 50 and counts as it is. idf = ln(1 + .5 / 2.5) = .1823
        ranking = snapshot.words("apple", 9, None, "document")
        assert uris(snapshot, ranking) == ["b", "a"]
        expected = [0.18232 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / 50)) for length in (37, 60)]
        assert ranking.scores.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_document_is_ranked_by_all_its_words_and_shown_by_its_best_passage(store: Store) -> None:
    text = "apple pie. pear tart. plum"
    put(
        store,
        doc("a", text, random_rows(3, 1), [Span(0, 10), Span(11, 21), Span(22, 26)], title="Orchard"),
        doc("b", "apple x x x x x x x x"),
        doc("c", "applepie", random_rows(2, 2), [Span(0, 4), Span(4, 8)]),
        doc("d", "", title="quince"),
    )
    with store.snapshot() as snapshot:
        # Titles are words of every passage: among passages with one word each, the shortest scores best.
        for question, best in (("tart", 11), ("plum pie", 22), ("orchard", 22), ("plum pear tart", 11)):
            ranking = snapshot.words(question, 1, None, "document")
            assert shown(snapshot, ranking.passages) == [("a", best)], question
        assert shown(snapshot, snapshot.words("applepie", 9, None, "document").passages) == [("c", 0)]
        assert snapshot.words("applepie", 9, None, "passage").matched == 0
        assert shown(snapshot, snapshot.words("quince", 9, None, "passage").passages) == [("d", 0)]
        assert snapshot.words("orchard", 9, None, "passage").matched == 3


def test_a_filter_leaves_the_statistics_as_they_are(store: Store) -> None:
    put(store, *(doc(f"d{n}", f"apple {'pie ' * n}", metadata={"n": n}) for n in range(6)))
    for one in UNITS:
        with store.snapshot() as snapshot:
            whole = snapshot.words("apple pie", 9, None, one)
            scores = dict(zip(uris(snapshot, whole), whole.scores.tolist(), strict=True))
            for text, numbers in (("n >= 2 and n < 4", {2, 3}), ("n != 1", {0, 2, 3, 4, 5}), ("n > 9", set())):
                some = snapshot.words("apple pie", 9, parse(text), one)
                expected = [uri for uri in uris(snapshot, whole) if int(uri[1:]) in numbers]
                assert uris(snapshot, some) == expected
                assert some.matched == len(expected)
                assert some.scores.tolist() == pytest.approx([scores[uri] for uri in expected], abs=NEAR)
                assert uris(snapshot, snapshot.words("apple pie", 1, parse(text), one)) == expected[:1]


@pytest.mark.parametrize(
    ("question", "message"), [("", "has no word"), ("?!", "has no word"), ("of the", "too common")]
)
def test_a_question_needs_a_word(store: Store, question: str, message: str) -> None:
    put(store, doc("a", "of the ?!"))
    with store.snapshot() as snapshot:
        for one in UNITS:
            with pytest.raises(NoWords, match=message):
                snapshot.words(question, 5, None, one)
            candidates = snapshot.candidates(AXES[0], question, 5, None, one, False)
            assert (candidates.terms, candidates.words.tolist(), candidates.matched) == (0, [0.0], 1)


@pytest.mark.parametrize(
    ("language", "found"),
    [
        ("en", {"run": ["a"], "runs": ["a"], "haus": [], "häuser": ["b"], "the": None, "und": ["b"], "京都": ["c"]}),
        ("none", {"run": [], "runs": ["a"], "haus": [], "the": ["a"], "京": ["c"], "东": ["c"]}),
        ("de", {"haus": ["b"], "und": None, "the": ["a"], "runs": ["a"], "京都": ["c"]}),
        ("german", {"haus": ["b"]}),
    ],
)
def test_words_are_found_by_the_endings_of_the_language(
    make: Callable[..., Store], language: str, found: dict[str, list[str] | None]
) -> None:
    store = make(replace(SETTINGS, language=language))
    put(store, doc("a", "the owl runs"), doc("b", "Häuser und mehr"), doc("c", "东京都"))
    with store.snapshot() as snapshot:
        assert snapshot.settings.language == {"german": "de"}.get(language, language)
        for question, expected in found.items():
            if expected is None:
                with pytest.raises(NoWords):
                    snapshot.words(question, 5, None, "document")
            else:
                assert uris(snapshot, snapshot.words(question, 5, None, "document")) == expected, question


def test_a_compound_is_found_by_its_beginning_after_the_word_itself(make: Callable[..., Store]) -> None:
    store = make(replace(SETTINGS, language="de"))
    texts = [
        "Der Käsekuchen ist gut",
        "Der Käse ist gut",
        "Die Kaserne ist alt",
        "Krankenversicherungsbeitrag",
        "Käsen",
    ]
    put(store, *(doc(name, text) for name, text in zip("abcde", texts, strict=True)))
    with store.writer() as writer:
        writer.remove(["e"])
    with store.snapshot() as snapshot:
        for question, expected in {"Käse": ["b", "a"], "Krankenversicherung": ["d"], "Kuchen": []}.items():
            ranking = snapshot.words(question, 5, None, "document")
            assert uris(snapshot, ranking) == expected, question
            assert ranking.matched == len(expected)
    english = make(replace(SETTINGS, language="en"))
    put(english, doc("a", "Der Käsekuchen ist gut"))
    with english.snapshot() as snapshot:
        assert uris(snapshot, snapshot.words("Käse", 5, None, "document")) == []


def test_compounds_count_half_of_one_occurrence_and_characters_have_no_part_in_the_length(
    make: Callable[..., Store],
) -> None:
    store = make(replace(SETTINGS, language="de"))
    put(store, doc("a", "Haus 水水水 水"), doc("b", "Hausboot"), doc("c", "水"), doc("d", "Hausmeister"))
    with store.writer() as writer:
        writer.remove(["d"])
    of_two_in_three = math.log(1 + 1.5 / 2.5)
    with store.snapshot() as snapshot:
        compound = snapshot.words("Haus", 5, None, "document")
        assert dict(zip(uris(snapshot, compound), compound.scores.tolist(), strict=True))["b"] == pytest.approx(
            of_two_in_three / 2, abs=1e-4
        )
        characters = snapshot.words("水", 5, None, "document")
        assert uris(snapshot, characters) == ["a", "c"]
        saturated = 2.2 * 4 / (4 + 1.2)
        assert characters.scores.tolist() == pytest.approx([of_two_in_three * saturated, of_two_in_three], abs=1e-3)


def test_words_that_are_also_written_as_one_count_half_of_one_occurrence(store: Store) -> None:
    put(store, doc("a", "an e-mail to 1,000,000"), doc("b", "email"), doc("c", "1 000 000"), doc("d", "E-Mails"))
    remove(store, "d")
    of_two_in_three = math.log(1 + 1.5 / 2.5)
    with store.snapshot() as snapshot:
        for question, expected in {"email": ["b", "a"], "1000000": ["a", "c"], "1'000'000": ["c", "a"]}.items():
            ranking = snapshot.words(question, 5, None, "document")
            assert (uris(snapshot, ranking), ranking.matched) == (expected, 2), question
        ranking = snapshot.words("1000000", 5, None, "document")
        assert ranking.scores.tolist() == pytest.approx([of_two_in_three / 2] * 2, abs=1e-4)
        # The joined words have no part in the length of the text, 7 words.
        ranking = snapshot.words("mail", 5, None, "document")
        norm = 1.2 * (0.25 + 0.75 * 7 / (11 / 3))
        assert ranking.scores.tolist() == pytest.approx([math.log(1 + 2.5 / 1.5) * 2.2 / (1 + norm)], abs=1e-4)


def test_words_follow_the_language_when_it_is_changed(store: Store) -> None:
    put(store, doc("a", "the owl runs"), doc("b", "Häuser"))
    for language, found in (("de", ["b"]), ("none", []), ("en", [])):
        with store.writer() as writer:
            writer.change(lambda settings: replace(settings, language=language))  # noqa: B023
        for settle in (False, True):
            with store.writer() as writer:
                if settle:
                    writer.settle()
            with store.snapshot() as snapshot:
                assert uris(snapshot, snapshot.words("haus", 5, None, "document")) == found
                assert uris(snapshot, snapshot.words("run", 5, None, "document")) == ["a"] * (language != "none")
                assert snapshot.check(None).ok


def test_an_unknown_language_is_refused(make: Callable[..., Store]) -> None:
    with pytest.raises(BadInput, match="language 'klingon' is unknown"):
        make(replace(SETTINGS, language="klingon"))


def test_equal_scores_of_words_come_in_the_order_the_passages_were_added(store: Store) -> None:
    put(store, *(doc(f"d{number}", "the same text") for number in range(60)))
    put(store, doc("d4", "the same text"))
    order = [f"d{number}" for number in range(60) if number != 4] + ["d4"]
    with store.snapshot() as snapshot:
        for one in UNITS:
            for k in (1, 7, 59, 60, MANY):
                ranking = snapshot.words("text", k, None, one)
                assert (uris(snapshot, ranking), ranking.matched) == (order[:k], 60), k


@pytest.mark.parametrize("one", UNITS)
def test_none_are_found_where_none_are_asked_for(store: Store, one: Unit) -> None:
    put(store, doc("a", "apple"), doc("b", "apple"))
    with store.snapshot() as snapshot:
        for ranking in (snapshot.dense(AXES[0], 0, None, one, False), snapshot.words("apple", 0, None, one)):
            assert (len(ranking.passages), len(ranking.documents), len(ranking.scores)) == (0, 0, 0)
            assert (ranking.matched, ranking.exact) == (2, True)
        candidates = snapshot.candidates(AXES[0], "apple", 0, None, one, False)
        assert (len(candidates.passages), candidates.matched, candidates.complete) == (0, 2, False)


# candidates


@pytest.mark.parametrize("one", UNITS)
def test_candidates_are_the_best_of_both_legs_with_both_scores(store: Store, one: Unit) -> None:
    words = ["apple", "pear", "plum", "fig"]
    chance = np.random.default_rng(4)
    for number in range(14):
        parts = [" ".join(chance.choice(words, 3)) for _ in range(int(chance.integers(1, 6)))]
        text = ". ".join(parts)
        starts = np.cumsum([0] + [len(part) + 2 for part in parts]).tolist()
        spans = [Span(start, start + len(part)) for start, part in zip(starts, parts, strict=False)]
        put(store, doc(f"d{number}", text, random_rows(len(parts), number), spans, metadata={"n": number}))
    vector = random_rows(1, 99)[0]
    with store.snapshot() as snapshot:
        every = snapshot.dense(vector, 999, None, "passage", True)
        passages = snapshot.passages_by_id(every.passages.tolist())
        by_words = snapshot.words("an apple and a fig", 999, None, one)
        asked = dict(
            zip(
                (by_words.documents if one == "document" else by_words.passages).tolist(),
                by_words.scores.tolist(),
                strict=True,
            )
        )
        nearest: dict[int, list[tuple[int, float]]] = {}
        numbers: dict[int, int] = {}
        for passage, cosine in zip(passages, every.scores.tolist(), strict=True):
            key = passage.document_id if one == "document" else passage.id
            nearest.setdefault(key, []).append((passage.id, cosine))
            numbers[key] = passage.metadata["n"]
        for text, low in ((None, 0), ("n >= 5", 5), ("n >= 99", 99)):
            where = parse(text) if text else None
            left = [key for key in nearest if numbers[key] >= low]  # by cosine, best first
            for depth in (1, 3, 10, MANY):
                near, said = left[:depth], [key for key in asked if numbers[key] >= low][:depth]
                expected = sorted({*near, *said})
                found = snapshot.candidates(vector, "an apple and a fig", depth, where, one, False)
                assert found.passages.tolist() == [nearest[key][0][0] for key in expected]
                np.testing.assert_allclose(found.cosines, [nearest[key][0][1] for key in expected], atol=1e-6)
                means = [np.mean([cosine for _, cosine in nearest[key][:3]]) for key in expected]
                np.testing.assert_allclose(found.best_means, means, atol=1e-6)
                np.testing.assert_allclose(found.words, [asked.get(key, 0.0) for key in expected], atol=NEAR)
                assert (found.terms, found.matched, found.complete) == (2, len(left), len(expected) == len(left))
                assert found.best_means.dtype == np.float64
                alone = snapshot.candidates(vector, "of the", depth, where, one, False)
                assert alone.passages.tolist() == [nearest[key][0][0] for key in sorted(near)]
                assert (alone.terms, alone.words.tolist()) == (0, [0.0] * len(near))


def test_settle_and_compact_keep_the_recall_that_they_are_given(store: Store) -> None:
    put(store, doc("a", "x"))
    with store.writer() as writer:
        for change in (writer.settle, lambda recall: writer.compact("exact", recall)):
            for recall in (0.0, 1.01, -1.0):
                with pytest.raises(BadInput, match="recall"):
                    change(recall)
        writer.settle(0.8)
        with store.snapshot() as snapshot:
            assert snapshot.settings.recall == 0.8
        writer.compact("auto", 1)
        writer.settle()
        with pytest.raises(BadInput, match="kind 'fast' is unknown"):
            writer.compact("fast")  # type: ignore[arg-type]
    with store.snapshot() as snapshot:
        assert snapshot.settings.recall == 1.0


def test_recall_of_few_passages_is_whole(store: Store) -> None:
    filled(store, 5)
    with store.snapshot() as snapshot:
        recall = snapshot.recall()
    assert (recall.recall, recall.low, recall.high, recall.exact) == (1.0, 1.0, 1.0, True)
    assert recall.questions > 0


def test_nearest_pairs_are_those_of_brute_force(store: Store) -> None:
    filled(store, 14)
    with store.snapshot() as snapshot:
        sample = snapshot.sample(999)
        owners = [passage.document_id for passage in snapshot.passages_by_id(sample.passages.tolist())]
        pairs = [
            (float(np.einsum("j,j->", sample.vectors[i], sample.vectors[j])), i, j)
            for i in range(len(owners))
            for j in range(i + 1, len(owners))
            if owners[i] != owners[j]
        ]
        for count, least in ((1, -1.0), (7, -1.0), (10_000, 0.9), (10_000, -1.0), (5, 0.999), (5, 2.0)):
            expected = sorted(((s, i, j) for s, i, j in pairs if s >= least), key=lambda pair: -pair[0])[:count]
            found = snapshot.nearest_pairs(count, least)
            assert found.passages == len(owners)
            np.testing.assert_allclose(found.scores, [score for score, _, _ in expected], atol=1e-6)
            scores = {(int(sample.passages[i]), int(sample.passages[j])): s for s, i, j in pairs}
            own = [scores[pair] for pair in zip(found.first.tolist(), found.second.tolist(), strict=True)]
            np.testing.assert_allclose(found.scores, own, atol=1e-6)
            assert len(set(zip(found.first.tolist(), found.second.tolist(), strict=True))) == len(expected)


def test_a_sample_is_drawn_by_the_order_of_addition(store: Store) -> None:
    filled(store)
    remove(store, "d3")
    with store.snapshot() as snapshot:
        whole = snapshot.sample(10_000)
        assert whole.passages.tolist() == sorted(whole.passages.tolist())
        assert len(whole.passages) == snapshot.passages
        for seed in (0, 1):
            places = np.sort(np.random.default_rng(seed).choice(len(whole.passages), 5, replace=False))
            some = snapshot.sample(5, seed)
            assert some.passages.tolist() == whole.passages[places].tolist()
            np.testing.assert_array_equal(some.vectors, whole.vectors[places])
        assert snapshot.sample(5).passages.tolist() == snapshot.sample(5, 0).passages.tolist()
        assert snapshot.sample(0).vectors.shape == (0, DIMENSIONS)
