"""One question to indexes in folders and in a database, with removed documents and texts without spaces: the answer is
that of one index of all documents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from postgres_server import new_address
from word_encoder import WordEncoder

from indexer import Document, Index
from search import Hits, Mode, Query, Searcher, search_indexes

WORDS = [f"word{number}" for number in range(40)]
CHARACTERS = "東京都の天気と大阪市水曜日本語学校図書館"
PARTS = 3
FILTERS = (None, "n >= 20", "even = true and n < 100")


def text_of(chance: random.Random) -> str:
    """Words with spaces, of which some are frequent, and runs of characters without."""
    parts = [
        "".join(chance.choices(CHARACTERS, k=chance.choice((2, 3, 5, 9))))
        if chance.random() < 0.4
        else WORDS[min(int(chance.expovariate(0.1)), len(WORDS) - 1)]
        for _ in range(chance.choice((3, 8, 20, 60)))
    ]
    return " ".join(parts)


def documents(count: int, seed: int) -> list[Document]:
    chance = random.Random(seed)
    return [
        Document(f"d{number}", text_of(chance), f"title {number % 7}", {"n": number, "even": number % 2 == 0})
        for number in range(count)
    ]


def questions(count: int, seed: int) -> list[str]:
    """Questions of words and characters; every third has a condition."""
    chance = random.Random(seed)
    asked = []
    for number in range(count):
        words = [text_of(chance).split()[0] for _ in range(chance.choice((1, 2, 4)))]
        condition = chance.choice(["+word1", "-word0", '"東京"', '-"天気"', "-京", "-word1 -word2"])
        asked.append(" ".join([*words, *([condition] if number % 3 == 0 else [])]))
    return asked


@pytest.fixture(
    scope="module",
    params=[(90, 12), pytest.param((1500, 150), marks=[pytest.mark.long, pytest.mark.timeout(300)])],
    ids=["few", "many"],
)
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, module_encoder: WordEncoder
) -> Iterator[tuple[list[Searcher], Searcher, list[str]]]:
    """Searchers of the parts, of one index of everything, and questions.

    The parts are a folder, an index in PostgreSQL and a folder that was compacted. They have had other documents too,
    which were removed; the index of everything never had them.
    """
    count, asks = request.param
    folder = tmp_path_factory.mktemp("mixed")
    addresses = [str(folder / "a.index"), new_address(), str(folder / "c.index")]
    kept, removed = documents(count, seed=5), documents(count // 2, seed=6)
    chance = random.Random(7)
    place = [chance.randrange(PARTS) for _ in kept]
    for part, address in enumerate(addresses):
        own = [one for one, of in zip(kept, place, strict=True) if of == part]
        others = [Document(f"x{part}{one.uri}", one.text, one.title, one.metadata) for one in removed]
        with Index.create(address, model=module_encoder, language="none") as index:
            index.add([*own[: len(own) // 2], *others])
            index.add(own[len(own) // 2 :])
            index.remove([one.uri for one in others])
            if part == 2:
                index.compact()
    # In the order in which the parts are asked, because equal scores come in the order of addition.
    with Index.create(folder / "whole.index", model=module_encoder, language="none") as index:
        index.add([one for part in range(PARTS) for one, of in zip(kept, place, strict=True) if of == part])
    searchers = [Searcher(address) for address in (*addresses, folder / "whole.index")]
    yield searchers[:-1], searchers[-1], questions(asks, seed=8)
    for searcher in searchers:
        searcher.close()


def place_of(hits: Hits) -> list[tuple[str, int, int]]:
    return [(hit.uri, hit.start, hit.end) for hit in hits]


@pytest.mark.parametrize("mode", ["dense", "words"])
@pytest.mark.parametrize("passages", [False, True])
def test_hits_are_those_of_one_index_of_everything(
    asked: tuple[list[Searcher], Searcher, list[str]], mode: Mode, passages: bool
) -> None:
    parts, whole, texts = asked
    matched = 0
    for number, text in enumerate(texts):
        where = FILTERS[number % len(FILTERS)]
        query = Query(text, (5, 40)[number % 2], where, mode, passages, literal=False, exact=True)
        hits, expected = search_indexes(parts, query), whole.answer(query)
        assert (hits.matched, hits.exact) == (expected.matched, expected.exact), query
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=2e-4), query
        # Ties, up to the last digits of a float, may come in another order, and another of them may be the last.
        assert ordered(hits, expected) == place_of(expected), query
        matched += hits.matched
    assert matched > len(texts)


def ordered(hits: Hits, expected: Hits) -> list[Any]:
    """Return the places of hits, those with a score that the expected hits have in the order of these."""
    order, last = place_of(expected), expected[-1].score if expected else 0.0
    places = []
    for rank, (hit, other) in enumerate(zip(hits, expected, strict=True)):
        own = (hit.uri, hit.start, hit.end)
        tied = own in order and abs(expected[order.index(own)].score - other.score) <= 4e-4
        places.append(order[rank] if tied or abs(hit.score - last) <= 4e-4 else own)
    return places


@pytest.mark.parametrize("passages", [False, True])
def test_hybrid_finds_most_of_what_one_index_of_everything_finds(
    asked: tuple[list[Searcher], Searcher, list[str]], passages: bool
) -> None:
    parts, whole, texts = asked
    shares = []
    for number, text in enumerate(texts):
        query = Query(text, where=FILTERS[number % len(FILTERS)], mode="hybrid", passages=passages, literal=False)
        hits, expected = search_indexes(parts, query), whole.answer(query)
        assert (hits.matched, len(hits)) == (expected.matched, len(expected)), query
        if expected:
            shares.append(len({*place_of(hits)} & {*place_of(expected)}) / len(expected))
    assert np.mean(shares) >= 0.85, np.mean(shares)
    assert len(shares) > len(texts) / 2
