"""Newer first, families and examples on every store: what is refused, and the cases that a person can check.

test_precise_questions.py compares random questions with brute force.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.stores.suite.suite import ENGINES

from indexer import BadInput, Document, FilterError, Index, UnknownField, UnknownUri
from indexer.deadline import Deadline
from indexer.errors import DeadlinePassed
from search import Hits, Query, Searcher
from search.query.query import changed
from search.ranking.families import NEAR, common_share, families, words_of_passage

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DIMENSIONS, DOCUMENTS = 6, 70
WORDS = ["bread", "river", "moon", "vault", "tea", "star", "oven", "cat"]


def documents() -> tuple[list[Document], list[np.ndarray[Any, Any]], list[list[tuple[int, int]]]]:
    """Random documents of one to three passages, with their vectors and spans. A fifth has no date."""
    chance = np.random.default_rng(8)
    made, vectors, spans = [], [], []
    for n in range(DOCUMENTS):
        parts = [" ".join(chance.choice(WORDS, int(chance.integers(4, 12)))) for _ in range(int(chance.integers(1, 4)))]
        day = (NOW - timedelta(days=float(chance.integers(-30, 700)))).isoformat()
        metadata = {"n": n, "kind": "ab"[n % 2], "year": 2026 - n % 5, "price": 1561.0 + n if n % 9 == 0 else n / 4}
        if n % 5:
            metadata["sent"] = [day, "2001-01-01"] if n % 7 == 0 else day
        if n % 4 == 1:  # a copy of a passage before, with another word
            parts[0] = " ".join([*made[-1].text.split("\n")[0].split()[1:], "cat"])
        ends = np.cumsum([len(part) + 1 for part in parts]).tolist()
        spans.append([(end - len(part) - 1, end - 1) for part, end in zip(parts, ends, strict=True)])
        made.append(Document(f"d{n}", "\n".join(parts), metadata=metadata, modified=day if n % 3 else None))
        vectors.append(chance.normal(size=(len(parts), DIMENSIONS)))
    return made, vectors, spans


@pytest.fixture(scope="module", params=ENGINES)
def searcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    with pytest.MonkeyPatch.context() as patch:
        engine = ENGINES[request.param]
        patch.setattr("indexer.stores.addresses.open.engine_of", lambda address, *_: engine.at(str(address)))
        path: Path = tmp_path_factory.mktemp("orders") / "x.index"
        made, vectors, spans = documents()
        with Index.create(path, dimensions=DIMENSIONS) as index:
            index.add(made, vectors=vectors, spans=spans)
        with Searcher(path) as opened:
            yield opened


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.filters.dates.now", lambda: NOW)


def every(searcher: Searcher, query: Query) -> Hits:
    """Return the plain ranking of all units."""
    options: dict[str, Any] = {"mode": query.mode, "passages": query.passages, "vector": query.vector}
    return searcher.search(query.text, 1000, where=query.where, **options)


def share(first: str, second: str) -> float:
    """Return the share of common words of two texts, equal words counted one by one."""
    one, other = Counter(first.split()), Counter(second.split())
    return (one & other).total() / (one | other).total()


def test_the_search_widens_until_there_are_enough_families(tmp_path: Path) -> None:
    """150 copies of one text are nearest; their family lists a hundred of them."""
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        copies = [Document(f"c{n}", f"one text that is copied again and again and again to {n}") for n in range(150)]
        index.add(copies, vectors=np.tile([1.0, 0.0], (150, 1)))
        index.add([Document(f"o{n}", f"other {n}") for n in range(3)], vectors=np.tile([0.6, 0.8], (3, 1)))
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search_vector([1.0, 0.0], 4)
        assert [hit.uri for hit in hits] == ["c0", "c1", "c2", "c3"]
        hits = searcher.answer(Query(vector=[1.0, 0.0], k=4, fold=True))
        assert [hit.uri for hit in hits] == ["c0", "o0", "o1", "o2"]
        assert (hits.matched, hits[0].family_size, hits[1].family) == (153, 149, ())
        assert hits[0].family == tuple(f"c{n}" for n in range(1, 101))


def test_one_liked_document_alone_is_what_similar_asks_for(searcher: Searcher) -> None:
    stored = {document.uri: searcher.vectors(document.uri) for document in searcher.documents()}
    mean = stored["d7"].mean(axis=0)
    best = {uri: float((rows @ (mean / np.linalg.norm(mean))).max()) for uri, rows in stored.items() if uri != "d7"}
    expected = sorted(best, key=lambda uri: -best[uri])
    for hits in (searcher.similar("d7", 9), searcher.search("", 9, like=["d7"])):
        assert [hit.uri for hit in hits] == expected[:9]
        assert [hit.score for hit in hits] == pytest.approx([best[uri] for uri in expected[:9]], abs=1e-4)
        assert (hits.matched, hits.exact, hits.query, hits.notes) == (DOCUMENTS - 1, True, "", ())
    assert [hit.uri for hit in searcher.search("", 9, like=["d7"], mode="hybrid")] != []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "a", "like": "d1"}, r'like is \'d1\': give a list of uris, such as like=\["notes/bread.txt"\]'),
        ({"text": "a", "unlike": [1]}, r"unlike is \[1\]: give a list of uris"),
        ({"text": "a", "like": ["d1"], "mode": "words"}, "a search by words does not use examples"),
        ({"like": ["d1"], "rerank": "a-model"}, "a reranker needs the text of the question"),
        ({"unlike": ["d1"]}, "unlike alone asks for nothing: give a question, or documents as like"),
        ({"text": "", "like": []}, "the question is empty"),
    ],
)
def test_examples_that_cannot_be_asked_for_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Query(**arguments)


def test_an_unknown_example_is_refused(searcher: Searcher) -> None:
    for examples in ({"like": ["d1", "nothing"]}, {"like": ["d1"], "unlike": ["nothing"]}):
        with pytest.raises(UnknownUri, match="has no document 'nothing'"):
            searcher.search("", **examples)  # type: ignore[arg-type]


def test_there_are_no_chains() -> None:
    """The second text is near to the first, the third to the second alone."""
    words = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
    texts = [" ".join(words), " ".join([*words[1:], "k"]), " ".join([*words[2:], "k", "l"]), "", ""]
    assert [round(share(texts[0], other), 2) for other in texts[1:3]] == [0.82, 0.67]
    assert share(texts[1], texts[2]) > 0.7
    assert families([(text, "text") for text in texts], 9) == ([[0, 1], [2], [3], [4]], 5)
    assert families([(text, "text") for text in (*texts, texts[1])], 2) == ([[0, 1, 5], [2]], 6)


def test_rows_of_a_table_are_one_family_only_if_they_are_equal() -> None:
    rows = [f"order: {n}\ncustomer: Ada\nproduct: desk lamp\nprice: 20.00\ncity: Hamburg" for n in (1, 2, 1)]
    assert families([(row, "csv") for row in rows], 3) == ([[0, 2], [1]], 3)
    assert families([(row, "text") for row in rows], 3) == ([[0, 1, 2]], 3)


def test_mails_of_one_template_are_one_family_unless_both_have_another_number() -> None:
    mails = [f"Dear {name}, your invoice of {day} May over {euros} euros is due: please pay within ten days. Thank you"
             for name, day, euros in (("Ada", 3, "120,50"), ("Ben", 3, "240,50"), ("Ada", 3, "120,50"))]  # fmt: skip
    mails.append(f"On 4 June 2025 Cleo wrote: {mails[0]}")  # a quotation adds numbers
    assert families([(mail, "mbox") for mail in mails], 4) == ([[0, 2, 3], [1]], 4)
    assert families([(mail, "text") for mail in mails], 4) == ([[0, 1, 2, 3]], 4)


def test_families_are_those_of_comparing_every_pair() -> None:
    """Passages of few words are near to many others by the hashes of their words, and only to some by their words."""
    chance = random.Random(3)
    words = [f"w{number}" for number in range(30)]
    passages = [(" ".join(chance.choices(words, k=chance.randint(1, 12))), "text") for _ in range(300)]
    passages += [(f"{text} {chance.randint(1, 3)} {chance.randint(1, 3)}", "eml") for text, _ in passages]
    expected = list[list[int]]()
    for position, passage in enumerate(passages):
        own = words_of_passage(*passage)
        near = (each for each in expected if common_share(own, words_of_passage(*passages[each[0]])) >= NEAR)
        family = next(near, None)
        if family is None:
            expected.append(family := [])
        family.append(position)
    assert families(passages, len(passages)) == (expected, 600)
    assert families(passages, 50) == (expected[:50], 600)
    assert sum(len(family) > 1 for family in expected) > 20


def test_mails_that_differ_in_a_number_are_told_apart_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 mails of one template took 80 seconds: each pair of sets was compared."""
    monkeypatch.setattr("search.ranking.families.MAX_COMPARISONS", 4000)  # of 80,000 pairs
    words = "your order was sent today and arrives in the coming days thank you for it"
    mails = [(f"{words} {1000 + number}", "eml") for number in range(400)]
    founded, compared = families([*mails, mails[7]], 400)
    assert founded == [[7, 400] if number == 7 else [number] for number in range(400)]
    assert compared == 401


def test_folding_stops_and_a_note_says_so(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    note = "fold: only the best {} passages were compared: there may be more hits, and more copies of them"
    query = Query(vector=[1.0, *[0.5] * (DIMENSIONS - 1)], k=DOCUMENTS, fold=True)
    whole = searcher.answer(query)
    assert whole.notes == ()
    monkeypatch.setattr("search.ranking.ranker.MAX_FOLDED", 12)
    few = searcher.answer(changed(query, k=6))
    assert [hit.uri for hit in few] == [hit.uri for hit in whole[:6]][: len(few)]
    assert few.notes == (() if len(few) == 6 else (note.format(12),))
    monkeypatch.setattr("search.ranking.families.NEAR", 0.0)  # one family, except passages without words
    assert len(searcher.answer(changed(query, k=2))) == 1
    assert searcher.answer(changed(query, k=2)).notes == (note.format(12),)
    monkeypatch.setattr("search.ranking.families.MAX_COMPARISONS", 3)
    assert searcher.answer(changed(query, k=2)).notes == (note.format(4),)


def test_folding_ends_at_the_deadline() -> None:
    deadline = Deadline(60)

    def check() -> None:
        deadline.check()
        deadline.cancel()

    with pytest.raises(DeadlinePassed):
        families([("a", "text"), ("b", "text")], 2, check)


def test_a_ranking_that_stops_early_is_not_exact(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search.ranking.ranker.MAX_DEPTH", 8)
    vector = [1.0, *[0.5] * (DIMENSIONS - 1)]
    early = searcher.search_vector(vector, 4)
    assert early.exact
    query = Query(vector=vector, k=2, newer="1d")
    assert not searcher.answer(query).exact
    assert searcher.answer(Query(vector=vector, k=2, newer="1d", exact=True)).exact


def test_a_collection_without_dates_is_ranked_as_it_is(searcher: Searcher) -> None:
    query = Query("bread", mode="words", where="not exists modified", newer="90d")
    hits = searcher.answer(query)
    assert hits.notes == ("newer: no document has a date in modified, so their ages change nothing",)
    assert [hit.score for hit in hits] == [hit.score for hit in every(searcher, query)[:10]]


@pytest.mark.parametrize(
    ("newer", "message"),
    [
        ("90", "newer is '90': give a half-life such as 90d"),
        ("0d", "newer is '0d'"),
        ("90d:", "newer is '90d:'"),
        (90, "newer is 90"),
        ("9999y", "newer is '9999y': the year 1 is nearer: give a shorter half-life"),
    ],
)
def test_what_is_no_half_life_is_refused(newer: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Query("a", newer=newer)


def test_a_field_without_dates_is_refused(searcher: Searcher) -> None:
    with pytest.raises(UnknownField, match=r'^newer: no document has a field "sen"; near: sent'):
        searcher.search("bread", mode="words", newer="90d:sen")
    for field in ("kind", "title", "n", "price"):
        with pytest.raises(
            FilterError, match=f"newer: field {field} holds no dates: name a field of dates: modified, "
        ):
            searcher.search("bread", mode="words", newer=f"90d:{field}")
        with pytest.raises(FilterError, match="holds no dates"):
            searcher.search("bread", mode="words", newer=f"90d:{field}", where="n < 0")


def test_a_field_of_years_may_hold_other_numbers(tmp_path: Path) -> None:
    years = [2026, 2024, 0, 99999]
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document(f"d{n}", "text", metadata={"year": year}) for n, year in enumerate(years)], np.ones((4, 2)))
    with Searcher(index.address) as searcher:
        hits = searcher.search("text", mode="words", newer="1y:year")
        assert hits[0].uri == "d0"
        assert hits.notes[0].startswith("newer: 2 documents without a date in year: weighted by")
        assert len(searcher.search("text", mode="words", newer="1y:year", where="year < 1")) == 1
