"""Several indexes in one question: with one model, the answer is that of one index of all documents."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import writer_of
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.errors import BadInput, NoWords, UnknownField
from search import Hits, Mode, Query, Searcher, search_indexes
from search.answering import Answering

WORDS = [f"word{number}" for number in range(60)]
QUESTIONS = ["word1 word5", "word7 word8 word9 word10", "word59 nothing", "word3 word3 word44"]


def documents(count: int, seed: int = 3) -> list[Document]:
    """Documents of very different lengths, in which some words are frequent; those of later parts are longer."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        length = chance.choice([3, 8, 20, 60]) * (1 + 3 * number // count)
        words = [WORDS[min(int(chance.expovariate(0.08)), 59)] for _ in range(length)]
        made.append(Document(f"d{number}", " ".join(words), f"title {number}", {"n": number, "even": number % 2 == 0}))
    return made


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory, module_encoder: WordEncoder) -> Callable[[int], list[Path]]:
    """The folders of a collection of 240 documents in this many indexes, each with an unequal part."""
    made: dict[int, list[Path]] = {}
    every = documents(240)

    def folders(parts: int) -> list[Path]:
        if parts not in made:
            folder = tmp_path_factory.mktemp(f"in-{parts}")
            bounds = [round(240 * (number / parts) ** 1.5) for number in range(parts + 1)]
            made[parts] = [folder / f"part{number}.index" for number in range(parts)]
            for path, start, end in zip(made[parts], bounds, bounds[1:], strict=False):
                with Index.create(path, model=module_encoder) as index:
                    index.add(every[start:end])
        return made[parts]

    return folders


@pytest.fixture(scope="module")
def asked(indexes: Callable[[int], list[Path]]) -> Iterator[Callable[[int, Query], Hits]]:
    """Asks the collection in this many indexes."""
    searchers = {parts: [Searcher(path) for path in indexes(parts)] for parts in (1, 2, 5)}

    def ask(parts: int, query: Query) -> Hits:
        return search_indexes(searchers[parts], query)

    yield ask
    for opened in searchers.values():
        for searcher in opened:
            searcher.close()


def of(hits: Hits) -> list[tuple[str, int, int, float]]:
    return [(hit.uri, hit.start, hit.end, round(hit.score, 3)) for hit in hits]


@pytest.mark.parametrize("parts", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["dense", "words"])
@pytest.mark.parametrize("passages", [False, True])
def test_the_answer_is_that_of_one_index_of_everything(
    asked: Callable[[int, Query], Hits], indexes: Callable[[int], list[Path]], parts: int, mode: Mode, passages: bool
) -> None:
    (whole,) = indexes(1)
    with Searcher(whole) as one:
        for question in QUESTIONS:
            for where in (None, "n >= 100", "even = true and n < 220", {"n": {"in": [0, 1, 2, 3, 150, 239]}}):
                for k in (7, 300):
                    query = Query(question, k, where, mode, passages)
                    expected, hits = one.answer(query), asked(parts, query)
                    assert (hits.matched, hits.exact) == (expected.matched, expected.exact)
                    assert_same_order(of(hits), of(expected))


def assert_same_order(hits: list[Any], expected: list[Any]) -> None:
    assert [score for *_, score in hits] == pytest.approx([score for *_, score in expected], abs=2e-3)
    assert len(hits) == len(expected)
    for place, (mine, theirs) in enumerate(zip(hits, expected, strict=True)):
        if mine[:3] != theirs[:3]:  # equal scores, up to the last digits of a float
            near = [other[:3] for other in expected if abs(other[3] - mine[3]) <= 2e-3]
            assert mine[:3] in near or place == len(expected) - 1


@pytest.mark.parametrize("parts", [2, 5])
def test_hybrid_finds_most_of_what_one_index_finds(
    asked: Callable[[int, Query], Hits], indexes: Callable[[int], list[Path]], parts: int
) -> None:
    (whole,) = indexes(1)
    shared = []
    with Searcher(whole) as one:
        for first in range(0, 60, 3):
            query = Query(f"word{first} word{first + 1} word{(7 * first) % 60}", mode="hybrid")
            expected, hits = one.answer(query), asked(parts, query)
            assert (hits.matched, len(hits)) == (expected.matched, len(expected))
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            shared.append(len({hit.uri for hit in hits} & {hit.uri for hit in expected}) / len(expected))
    assert np.mean(shared) >= 0.85


def test_each_hit_names_its_index_and_a_searcher_stays_open(indexes: Callable[[int], list[Path]]) -> None:
    first, second = indexes(2)
    with Searcher(first) as searcher:
        hits = search_indexes([searcher, f"other={second}"], "word1 word5")
        assert {hit.index for hit in hits} <= {"part0", "other"}
        assert all(hit.uri in searcher for hit in hits if hit.index == "part0")
        assert hits.matched == 240
        assert hits.as_json()["hits"][0]["index"] == hits[0].index
        assert search_indexes([searcher], Query("word1"))[0].index == "part0"
        assert searcher.search("word1")[0].index is None


def test_explaining_and_thresholds_hold_for_all_indexes(asked: Callable[[int, Query], Hits]) -> None:
    plain = asked(2, Query("word1 word5"))
    explained = asked(2, Query("word1 word5", explain=True, min_score=plain[4].score))
    assert [(hit.index, hit.uri) for hit in explained] == [(hit.index, hit.uri) for hit in plain[:5]]
    assert all(hit.why is not None and "sentence" in hit.why for hit in explained)
    assert "sentence" in (asked(5, Query("word1", mode="words", explain=True))[0].why or {})
    lengths = asked(2, Query("word1 word5", k=3, rerank=lambda query, texts: [len(text) for text in texts]))
    assert [hit.score for hit in lengths] == sorted((hit.score for hit in lengths), reverse=True)
    assert len(lengths) == 3
    assert lengths[0].score == max(len(f"{hit.title} {hit.text}") for hit in asked(2, Query("word1 word5", k=50)))


def test_a_field_that_some_indexes_lack_leaves_nothing_of_them(tmp_path: Path, encoder: WordEncoder) -> None:
    for name, metadata in (("a", {"year": 2020}), ("b", {"year": "unknown", "lang": "de"}), ("c", {})):
        with Index.create(tmp_path / f"{name}.index", model=encoder) as index:
            index.add([Document(f"{name}{number}", f"word{number}", metadata=metadata) for number in range(3)])
    every = [tmp_path / "a.index", tmp_path / "b.index", tmp_path / "c.index"]

    def ask(where: str, mode: Mode = "dense") -> tuple[int, str, str]:
        hits = search_indexes(every, Query("word1 word2", where=where, mode=mode, k=20))
        return hits.matched, "".join(sorted({hit.index or "" for hit in hits})), " / ".join(hits.notes)

    note = "has no values to compare in the field {} of the filter"
    assert ask("year >= 2000") == (3, "a", f"b: {note.format('year')} / c: {note.format('year')}")
    assert ask("year >= 2000 or lang = 'de'", "hybrid")[:2] == (6, "ab")
    assert ask("not year >= 2000")[:2] == (6, "bc")
    assert ask("year >= 2000 and lang = 'de'", "words")[:2] == (0, "")
    assert ask("exists lang")[:2] == (3, "b")
    assert ask("uri = 'c1'")[1:] == ("c", "")
    matched, _, notes = ask("lang = 'df'")
    assert matched == 0
    assert "b: " in notes
    with pytest.raises(UnknownField, match=r"yaer.*year"):
        ask("yaer >= 2000")
    empty = [Searcher(path, unknown_fields="empty") for path in every]
    assert search_indexes(empty, Query("word1", where="yaer >= 2000")).matched == 0


def test_what_cannot_be_asked_is_refused_in_a_sentence(tmp_path: Path, encoder: WordEncoder) -> None:
    for folder in ("one", "two"):
        with Index.create(tmp_path / folder / "a.index", model=encoder) as index:
            index.add([Document("a", "word1")])
    with Index.create(tmp_path / "own.index", dimensions=2) as index:
        index.add([Document("b", "word2")], vectors=np.eye(2, dtype=np.float32)[:1])
    with pytest.raises(BadInput, match="no index to ask"):
        search_indexes([], "word1")
    with pytest.raises(BadInput, match="two indexes are named 'a'"):
        search_indexes([tmp_path / "one" / "a.index", tmp_path / "two" / "a.index"], "word1")
    with pytest.raises(BadInput, match="list of indexes"):
        search_indexes(str(tmp_path / "own.index"), "word1")
    with pytest.raises(BadInput, match="own vectors and has no model"):
        search_indexes([tmp_path / "one" / "a.index", tmp_path / "own.index"], "word1")
    with pytest.raises(NoWords):
        search_indexes([tmp_path / "one" / "a.index", tmp_path / "own.index"], Query("the", mode="words"))
    hits = search_indexes([tmp_path / "one" / "a.index", tmp_path / "own.index"], Query("word1 word2", mode="words"))
    assert sorted((hit.index, hit.uri) for hit in hits) == [("a", "a"), ("own", "b")]


def test_one_model_embeds_a_question_once(tmp_path: Path, make_encoder: Callable[..., WordEncoder]) -> None:
    one, other = make_encoder(), make_encoder(name="other words", weights="2")
    for name, model in (("a", one), ("b", one), ("c", other)):
        with Index.create(tmp_path / f"{name}.index", model=model) as index:
            index.add([Document(f"{name}{number}", f"word{number} word1") for number in range(60)])
    one.seen.clear()
    other.seen.clear()
    hits = search_indexes([tmp_path / f"{name}.index" for name in "abc"], Query("word7 word1", mode="dense", k=9))
    assert one.seen == other.seen == ["word7 word1"]
    assert [hit.uri for hit in hits[:3]] == ["a7", "b7", "c7"]  # all three hold both words
    assert hits[0].cosine == pytest.approx(1, abs=1e-3)
    assert hits[0].score > 1.5  # standard deviations, because the models differ
    assert hits[0].why is not None
    assert hits[0].why["contributions"] == {"cosine": hits[0].score}


@pytest.mark.parametrize("mode", ["dense", "words"])
def test_conditions_hold_in_every_index(
    asked: Callable[[int, Query], Hits], indexes: Callable[[int], list[Path]], mode: Mode
) -> None:
    (whole,) = indexes(1)
    with Searcher(whole) as one:
        for question in ('word5 +word1 -word9 -"word2 word3"', '"word1 word2"', "+word0 -word3", "word4 -word0"):
            query = Query(question, 300, mode=mode, literal=False)
            alone, together = one.answer(query), asked(2, query)
            assert of(together) == of(alone)
            assert (together.matched, together.mode) == (alone.matched, alone.mode)
            assert 0 < alone.matched < 240
    nothing = asked(2, Query("+word1 +nothing word3", literal=False))
    assert nothing.notes == ("read as conditions: +word1, +nothing",)


def test_an_index_without_words_of_the_question_keeps_its_other_notes(tmp_path: Path, encoder: WordEncoder) -> None:
    for language in ("en", "de"):
        with Index.create(tmp_path / f"{language}.index", encoder, language=language) as index:
            index.add([Document(language, "the moon")])
            if language == "en":
                writer_of(index).set("lost", "3")
    hits = search_indexes([tmp_path / "en.index", tmp_path / "de.index"], Query("the", mode="words"))
    assert [hit.uri for hit in hits] == ["de"]
    lost, no_words = hits.notes
    assert "the last 3 commits are missing" in lost
    assert "has only words that are too common to search by" in no_words


DATED = [
    Document("old", "moon tea", metadata={"sent": "2010-01-01", "year": 2020}),
    Document("older", "moon", metadata={"sent": "2006-01-01", "year": 2020}),
    Document("undated", "moon bread", metadata={"year": "MMXX"}),
    Document("neither", "moon oven tea"),
]


@pytest.fixture
def halves(tmp_path: Path, encoder: WordEncoder) -> Callable[[list[Document]], tuple[list[Path], Searcher]]:
    """Two indexes of half of some documents each, and one of all."""

    def make(every: list[Document]) -> tuple[list[Path], Searcher]:
        half = len(every) // 2
        for name, part in (("first", every[:half]), ("second", every[half:]), ("whole", every)):
            with Index.create(tmp_path / f"{name}.index", model=encoder) as index:
                index.add(part)
        return [tmp_path / "first.index", tmp_path / "second.index"], Searcher(tmp_path / "whole.index")

    return make


@pytest.mark.parametrize("mode", ["dense", "words"])
def test_newer_weighs_undated_documents_by_the_median_of_all_indexes(halves: Any, mode: Mode) -> None:
    parts, whole = halves(DATED)
    query = Query("moon", mode=mode, newer="5y:sent")
    hits, expected = search_indexes(parts, query), whole.answer(query)
    assert [hit.uri for hit in hits] == [hit.uri for hit in expected]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], rel=1e-3)
    (note,) = expected.notes
    assert hits.notes == (f"second: {note}",)  # the second index alone has documents without a date
    with pytest.raises(UnknownField):
        search_indexes(parts, Query("moon", newer="5y:nothing"))


@pytest.mark.parametrize(
    "where",
    [
        'year = 2020 or year = "MMXX"',
        'year in (2020, "MMXX")',
        'year not in (2019, "MMXX")',
        'not year in (2019, "MMXX")',
        'year != "MMXX"',
        "year != 2020",
        "not year >= 2020",
        "exists year",
    ],
)
def test_a_field_of_different_types_is_compared_as_in_one_index(halves: Any, where: str) -> None:
    parts, whole = halves(DATED)
    with whole:
        expected = whole.search("moon", where=where)
        hits = search_indexes(parts, Query("moon", where=where))
        assert ({hit.uri for hit in hits}, hits.matched) == ({hit.uri for hit in expected}, expected.matched)


def test_newer_weighs_the_z_scores_of_several_models(tmp_path: Path, make_encoder: Callable[..., WordEncoder]) -> None:
    for name, model in (("a", make_encoder()), ("b", make_encoder(name="other words", weights="2"))):
        with Index.create(tmp_path / f"{name}.index", model=model) as index:
            dates = [f"{2000 + number % 23}-01-01" for number in range(60)]
            texts = [f"word{number} word{number % 3}" for number in range(60)]
            index.add([Document(f"{name}{n}", texts[n], metadata={"sent": dates[n]}) for n in range(60)])
    indexes = [tmp_path / "a.index", tmp_path / "b.index"]
    z_scores = {hit.uri: hit.score for hit in search_indexes(indexes, Query("word7 word1", 120))}
    hits = search_indexes(indexes, Query("word7 word1", 120, newer="5y:sent"))
    weights = [1 if hit.why is None or z_scores[hit.uri] <= 0 else hit.why["newer"] for hit in hits]
    expected = [z_scores[hit.uri] * weight for hit, weight in zip(hits, weights, strict=True)]
    assert (len(hits), min(expected) < 0, 0 < min(weights) < 1) == (120, True, True)
    assert [hit.score for hit in hits] == pytest.approx(expected) == sorted(expected, reverse=True)
    assert [hit.why["contributions"]["cosine"] for hit in hits if hit.why] == pytest.approx(expected)
    few = search_indexes(indexes, Query("word7 word1", 5, newer="5y:sent"))
    assert [hit.score for hit in few] == pytest.approx(expected[:5])


def changed(**words: str) -> str:
    """Twenty words, some of which are others; the name of each is its position."""
    return " ".join(words.get(f"at{position}", f"w{position}") for position in range(20))


@pytest.mark.parametrize("k", [2, 3])
def test_families_reach_over_indexes_without_chains_and_leave_k_hits(halves: Any, k: int) -> None:
    """Both copies are near to the original, in the other index, and not to each other."""
    parts, whole = halves(
        [
            Document("one copy", changed(at0="p", at1="q", at2="r")),
            Document("another copy", changed(at17="s", at18="t", at19="u")),
            Document("something else", changed(**{f"at{position}": f"z{position}" for position in range(10, 20)})),
            Document("original", changed()),
            Document("moon", "the moon"),
            Document("tea", "a river of tea"),
        ]
    )
    query = Query(changed(), k, fold=True)
    with whole:
        hits, expected = search_indexes(parts, query), whole.answer(query)
    assert [(hit.uri, hit.family, hit.family_size) for hit in hits] == [
        (hit.uri, hit.family, hit.family_size) for hit in expected
    ]
    assert (hits[0].uri, set(hits[0].family), len(hits)) == ("original", {"one copy", "another copy"}, k)


def test_one_index_alone_takes_examples(halves: Any) -> None:
    parts, whole = halves(DATED)
    query = Query("", like=["old"], unlike=["neither"])
    assert [hit.uri for hit in search_indexes([whole], query)] == [hit.uri for hit in whole.answer(query)]
    with pytest.raises(BadInput, match="examples are documents of one index"):
        search_indexes(parts, query)


def test_questions_open_the_indexes_in_one_order(halves: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two questions could hold all connections of one database each, and wait for those of the other."""
    (first, second), _ = halves(DATED)
    opened, snapshot = list[str](), Answering.snapshot

    def recorded(answering: Answering) -> Any:
        opened.append(Path(answering.store.address).name)
        return snapshot(answering)

    monkeypatch.setattr(Answering, "snapshot", recorded)
    hits = [
        search_indexes(parts, Query("nothing", mode="words", where="exists year"))
        for parts in ([first, second], [second, first])
    ]
    assert opened == ["first.index", "second.index"] * 2
    assert {each.matched for each in hits} == {0}


def test_a_family_names_the_index_of_each_member(halves: Any) -> None:
    parts, _ = halves(
        [Document("a", "one moon"), Document("b", "tea"), Document("a", "one moon"), Document("c", "one moon")]
    )
    hits = search_indexes(parts, Query("moon", fold=True))
    assert (hits[0].index, hits[0].uri, hits[0].family_size) == ("first", "a", 2)
    assert list(zip(hits[0].family_indexes, hits[0].family, strict=True)) == [("second", "a"), ("second", "c")]
    assert hits.as_json()["hits"][0]["family_indexes"] == ("second", "second")


def test_folding_stops_and_a_note_says_so(halves: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.federation.several_indexes.MAX_FOLDED", 6)
    parts, _ = halves([Document(f"d{number}", "one moon") for number in range(12)])
    hits = search_indexes(parts, Query("moon", k=3, fold=True))
    assert [(hit.index, hit.family_size) for hit in hits] == [("first", 5)]
    note = "fold: only the best 6 passages were compared: there may be more hits, and more copies of them"
    assert hits.notes == (note,)


def test_the_lowest_score_holds_for_the_hits_of_all_indexes(tmp_path: Path, encoder: WordEncoder) -> None:
    many = tmp_path / "many.index"
    with Index.create(many, model=encoder) as index:
        index.add([Document(f"many{number}", f"word{number} word1") for number in range(80)])
    plain = search_indexes([many, f"other={many}"], Query("word1 word7", k=20))
    limit = sorted(hit.score for hit in plain)[10]
    kept = search_indexes([many, f"other={many}"], Query("word1 word7", k=20, min_score=limit))
    assert 0 < len(kept) < 20
    assert [(hit.index, hit.uri) for hit in kept] == [(hit.index, hit.uri) for hit in plain if hit.score >= limit]


@pytest.mark.parametrize(
    ("indexes", "query", "message"),
    [
        (None, "moon", "the indexes are not a list but NoneType"),
        ([3], "moon", "an index is given as 3: give its address, or a Searcher"),
        ([], None, "the question is not a string or a Query but NoneType"),
    ],
)
def test_arguments_of_other_types_are_refused_in_a_line(indexes: Any, query: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        search_indexes(indexes, query)
