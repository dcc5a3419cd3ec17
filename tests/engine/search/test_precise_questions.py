"""Conditions, filters, examples, newer first and families in one question: hits equal brute force, on every store.

The oracle reads no index: it knows the texts, the vectors and the formulas of docs/asking.md and docs/fusion.md, and
weighs every unit for each question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, get_args

import numpy as np
import pytest
from engine.stores.reference import Bm25, analysis_of, meets
from engine.stores.suite.suite import ENGINES, unit

from indexer import Document, Index
from indexer.stores.port import Condition, Unit
from indexer.stores.words.exact import exact_words
from search import Query, Searcher
from search.query.examples import QUESTION_WEIGHT, UNLIKED_WEIGHT
from search.query.query import Mode
from search.ranking.fusion import fuse, words_weight

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DIMENSIONS, DOCUMENTS = 6, 45
WORDS = ["bread", "river", "moon", "the", "x-ray", "café", "cafe", "東京", "京都", "oven"]
BETWEEN = [" ", " ", ", ", "\n", " — ", " (", '" ']
ASKED = [" ".join(words) for words in (WORDS[:1], WORDS[1:3], WORDS[3:5], WORDS[5:8], ["the", "moon"], ["unknown"])]
HALF_LIVES = {"30d": 30.0, "2w:sent": 14.0, "1y:year": 365.0}
COUNTS = {"reference": 500, "folder": 800, "postgres": 800}
"""Questions to each store in the default suite; the slow test asks ten times as many."""

FILTERS: dict[str | None, Callable[[Document], bool]] = {
    None: lambda one: True,
    "n >= 20": lambda one: one.metadata["n"] >= 20,
    'kind = "a" or n < 9': lambda one: one.metadata["kind"] == "a" or one.metadata["n"] < 9,
    "not exists sent": lambda one: "sent" not in one.metadata,
    'uri in ("d3", "d4", "d5")': lambda one: one.uri in {"d3", "d4", "d5"},
    "n > 100": lambda one: False,
}


def text_of(chance: Random, most: int) -> str:
    return "".join(chance.choice(WORDS) + chance.choice(BETWEEN) for _ in range(chance.randrange(1, most)))


def documents() -> tuple[list[Document], list[Any], list[list[tuple[int, int]]]]:
    """Random documents of one to three passages, with vectors and spans: some without dates, some nearly copies."""
    chance, random = Random(8), np.random.default_rng(8)
    made, vectors, spans = list[Document](), [], []
    for n in range(DOCUMENTS):
        parts = [text_of(chance, 14) for _ in range(chance.choice((1, 1, 2, 3)))]
        if n % 4 == 1:
            parts[0] = made[-1].text[: spans[-1][0][1]] + chance.choice(WORDS)
        day = (NOW - timedelta(days=chance.uniform(-30, 700))).isoformat()
        metadata: dict[str, Any] = {"n": n, "kind": "ab"[n % 2], "year": 2026 - n % 5}
        if n % 5:
            metadata["sent"] = ["2001-01-01T00:00:00+00:00", day] if n % 7 == 0 else day
        ends = np.cumsum([len(part) + 1 for part in parts]).tolist()
        spans.append([(end - len(part) - 1, end - 1) for part, end in zip(parts, ends, strict=True)])
        title = text_of(chance, 3) if n % 3 else ""
        made.append(Document(f"d{n}", "\n".join(parts), title, metadata, modified=day if n % 3 else None))
        vectors.append(random.normal(size=(len(parts), DIMENSIONS)))
    return made, vectors, spans


def age(one: Document, name: str) -> float | None:
    """Return the age in days of the latest date of a document."""
    if name == "year":
        return (NOW - datetime(one.metadata["year"], 1, 1, tzinfo=UTC)) / timedelta(days=1)
    stored = one.modified if name == "modified" else one.metadata.get("sent")
    days = [stored] if isinstance(stored, str) else stored
    return days and max(0.0, (NOW - max(map(datetime.fromisoformat, days))) / timedelta(days=1))


def mean_of(rows: Any) -> Any:
    mean = np.mean(rows, axis=0, dtype=np.float64)
    return mean / np.linalg.norm(mean)


Place = tuple[str, int]
"""The uri of a hit, and where its passage begins."""


@dataclass(frozen=True)
class Answer:
    """What brute force answers: all families, the best first; each unit is its place, and the best of it is the hit."""

    families: Sequence[Sequence[Place]]
    scores: Mapping[Place, float]
    matched: int
    undated: int


class Oracle:
    """All texts and vectors of a collection, without an index."""

    def __init__(self, made: Sequence[Document], spans: Sequence[Sequence[tuple[int, int]]], vectors: Any) -> None:
        self.documents = {one.uri: one for one in made}
        self.passages = [
            (one, start, one.text[start:end]) for one, rows in zip(made, spans, strict=True) for start, end in rows
        ]
        self.vectors = np.concatenate(vectors)
        self.rows = {one.uri: [row for row, (own, *_) in enumerate(self.passages) if own is one] for one in made}
        self.analysis = analysis_of("none")
        counts = [Counter(re.findall(r"[東京都]|[^\W東京都]+", text.casefold())) for *_, text in self.passages]
        self.near = np.array(
            [[(a & b).total() >= 0.7 * (a | b).total() and bool(a | b) for b in counts] for a in counts]
        )
        self.units: dict[Unit, list[tuple[Document, list[int], str]]] = {
            "document": [(one, self.rows[one.uri], one.text) for one in made],
            "passage": [(one, [row], text) for row, (one, _, text) in enumerate(self.passages)],
        }

    @cache  # noqa: B019
    def bm25(self, unit: Unit, text: str) -> Mapping[int, float]:
        texts = {place: (one.title, text) for place, (one, _, text) in enumerate(self.units[unit])}
        return Bm25(texts, self.analysis).scores(self.analysis.question_terms(text))

    def answer(self, query: Query, conditions: Sequence[Condition]) -> Answer:
        unit: Unit = "passage" if query.passages else "document"
        units, keep = self.units[unit], FILTERS[query.where]  # type: ignore[index]
        left = [
            number for number, (one, _, text) in enumerate(units) if keep(one) and meets((one.title, text), conditions)
        ]
        scores, shown = self._scores(query, unit, left, conditions)
        # After scoring: examples count where hybrid mode weighs words, and are no hits.
        scores = {number: score for number, score in scores.items() if units[number][0].uri not in query.examples}
        weights = self._weights(query)
        middle = median(weights.values()) if weights else 1.0
        if query.newer:
            scores = {
                number: score * (weights.get(units[number][0].uri, middle) if score > 0 else 1)
                for number, score in scores.items()
            }
        ranked = sorted(scores, key=lambda number: (-scores[number], shown[number]))
        place = {number: (units[number][0].uri, self.passages[shown[number]][1]) for number in ranked}
        families = list[list[int]]()
        for number in ranked:
            near = (family for family in families if query.fold and self.near[shown[family[0]], shown[number]])
            own = next(near, None)
            if own is None:
                families.append([number])
            else:
                own.append(number)
        dated = sum(keep(one) for one in self.documents.values()) - len(weights)
        return Answer(
            [[place[number] for number in family] for family in families],
            {place[number]: scores[number] for number in ranked},
            len(scores),
            dated if query.newer and weights else 0,
        )

    def _scores(
        self, query: Query, unit: Unit, left: Sequence[int], conditions: Sequence[Condition]
    ) -> tuple[dict[int, float], dict[int, int]]:
        """Return the score of each unit, and the row of the passage that it shows."""
        units = self.units[unit]
        if query.ranked_by == "words":
            required = " ".join(" ".join(one.words) for one in conditions if not one.excluded)
            asks = bool(self.analysis.question_terms(query.asked))
            text = query.asked if asks else required
            bm25, alone = self.bm25(unit, text), self.bm25("passage", text)
            scores = {number: bm25.get(number, 0.0) for number in left if number in bm25 or not asks}
            of_passages = self.units["passage"]

            def best(row: int) -> tuple[bool, float, int]:
                one, _, own = of_passages[row]
                return not asks and meets((one.title, own), conditions), alone.get(row, 0.0), -row

            return scores, {number: max(units[number][1], key=best) for number in scores}
        cosines = self.vectors @ self._vector(query)
        shown = {number: max(units[number][1], key=lambda row: (cosines[row], -row)) for number in left}
        if query.mode == "dense":
            return {number: float(cosines[row]) for number, row in shown.items()}, shown
        bm25 = self.bm25(unit, query.asked)
        blended = [
            (cosines[shown[number]] + np.mean(np.sort(cosines[units[number][1]])[::-1][:3])) / 2 for number in left
        ]
        z_scores = (np.array(blended) - cosines.mean()) / cosines.std()
        words = np.array([bm25.get(number, 0.0) for number in left])
        if not left:
            return {}, {}
        weight = words_weight(z_scores, words, len(self.analysis.question_terms(query.asked)))
        return dict(zip(left, fuse(z_scores, words, weight).scores.tolist(), strict=True)), shown

    def _vector(self, query: Query) -> Any:
        """Return the vector of a question with examples, by the formula of docs/asking.md."""
        liked = [mean_of(self.vectors[self.rows[uri]]) for uri in query.like]
        vectors = [*liked, *([] if query.row is None else [QUESTION_WEIGHT * query.row.astype(np.float64)])]
        vector = np.sum(vectors, axis=0) / (len(liked) + (QUESTION_WEIGHT if query.row is not None else 0))
        if query.unlike:
            unliked = [mean_of(self.vectors[self.rows[uri]]) for uri in query.unlike]
            vector = vector - UNLIKED_WEIGHT * np.mean(unliked, axis=0)
        return vector / np.linalg.norm(vector)

    def _weights(self, query: Query) -> dict[str, float]:
        """Return the weight of each document that the filter leaves and that has a date."""
        if query.newer is None:
            return {}
        name = query.newer.partition(":")[2] or "modified"
        left = [one for one in self.documents.values() if FILTERS[query.where](one)]  # type: ignore[index]
        ages = {one.uri: days for one in left if (days := age(one, name)) is not None}
        return {uri: 0.5 ** (days / HALF_LIVES[query.newer]) for uri, days in ages.items()}


@pytest.fixture(
    scope="module",
    params=["folder", *(pytest.param(name, marks=pytest.mark.slow) for name in ("reference", "postgres"))],
)
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Searcher, Oracle]]:
    """The name of an engine, a searcher over the documents there, and the oracle, which has the rounded vectors."""
    with pytest.MonkeyPatch.context() as patch:
        engine = ENGINES[request.param]
        patch.setattr("indexer.stores.addresses.open.engine_of", lambda address, *_: engine.at(str(address)))
        patch.setattr("indexer.filters.dates.now", lambda: NOW)
        path: Path = tmp_path_factory.mktemp("precise") / "x.index"
        made, vectors, spans = documents()
        with Index.create(path, dimensions=DIMENSIONS, language="none") as index:
            index.add(made, vectors=vectors, spans=spans)
        with Searcher(path) as searcher:
            stored = [searcher.vectors(one.uri).astype(np.float64) for one in made]
            assert np.concatenate(stored) == pytest.approx(unit(*np.concatenate(vectors)), abs=1e-3)
            yield request.param, searcher, Oracle(made, spans, stored)


def drawn(chance: Random, oracle: Oracle) -> tuple[Query, list[Condition], str]:
    """Return a question, its conditions, and the text that is left to ask."""
    conditions = list[Condition]()
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        if chance.random() < 0.5:  # words in a row of a text
            words = chance.choice(oracle.passages)[2].replace('"', " ").split()
            start, many = chance.randrange(len(words)), chance.choice((1, 2, 3))
            words = [word.strip(",(—") for word in words[start : start + many] if word.strip(",(—")]
        else:
            words = chance.choices(WORDS, k=chance.choice((1, 1, 2)))
        row = [each for word in words for each in exact_words(word)]
        if not row:
            continue
        text = chance.choice((" ", "  ", ", ", " - ")).join(words)
        text = text.upper() if chance.random() < 0.2 else text
        one = words[0].upper() if chance.random() < 0.2 else words[0]
        of_word = exact_words(words[0])
        forms = [("+", one, of_word), ("-", one, of_word), ("", f'"{text}"', row), ("", f"“{text}”", row)]
        forms += [("-", f'"{text}"', row), ("+", f"„{text}“", row), ("-", f"«{text}»", row)]
        sign, quoted, own = chance.choice(forms)
        conditions.append(Condition(sign + quoted, tuple(own), sign == "-"))
    mode: Mode = chance.choice(get_args(Mode))
    like, unlike = (chance.sample([*oracle.documents], chance.choice((0, 0, 1, 2))) for _ in range(2))
    if mode == "words" or chance.random() < 0.5:
        like, unlike = [], []
    asked = chance.choice(ASKED) if chance.random() < 0.7 or not (conditions or like) else ""
    if mode == "words" and not conditions:
        asked = asked.replace("the", "moon")
    # A dash excludes only after the text that is asked.
    first = [one for one in conditions if asked and not one.excluded and chance.random() < 0.5]
    conditions = [*first, *(one for one in conditions if one not in first)]
    typed, at = [one.text for one in conditions], len(first)
    unlike = unlike if asked or like else []
    vector = [chance.gauss(0, 1) for _ in range(DIMENSIONS)] if asked and mode != "words" else None
    query = Query(
        " ".join([*typed[:at], *([asked] if asked else []), *typed[at:]]),
        chance.choice((1, 3, 10, 100)),
        chance.choice([*FILTERS, None, None]),
        mode,
        passages=chance.random() < 0.5,
        vector=vector,
        like=like,
        unlike=unlike,
        fold=chance.random() < 0.5,
        newer=chance.choice([None, None, *HALF_LIVES]),
        literal=False,
    )
    return query, conditions, asked


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_hits_are_those_of_brute_force(
    asked: tuple[str, Searcher, Oracle], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, searcher, oracle = asked
    chance, seen = Random(times), Counter[str]()
    for _ in range(COUNTS[name] * times):
        query, conditions, text = drawn(chance, oracle)
        assert query.asked == text
        assert {(each.words, each.excluded) for each in query.conditions} == {
            (each.words, each.excluded) for each in conditions
        }
        # Ranking by age widens the search.
        monkeypatch.setattr("search.ranking.modes.CANDIDATES", 6 if query.newer else 100)
        hits, expected = searcher.answer(query), oracle.answer(query, conditions)
        families = expected.families[: query.k]
        assert (hits.matched, len(hits)) == (expected.matched, len(families)), query
        assert [(hit.uri, hit.start) for hit in hits] == [family[0] for family in families], query
        scores = [expected.scores[family[0]] for family in families]
        # BM25 is rounded to four digits, by the index and by the oracle: a score between two of them may go either way.
        step = 1.1e-4 if query.ranked_by == "words" else 2e-5
        assert [hit.score for hit in hits] == pytest.approx(scores, abs=step), query
        assert hits.exact or query.mode == "hybrid", query
        undated = f"{expected.undated} document"
        assert any(undated in note for note in hits.notes if "newer" in note) == (expected.undated > 0), query
        for hit, family in zip(hits, families, strict=True):
            assert hit.why is not None
            assert sum(hit.why["contributions"].values()) == pytest.approx(hit.score, abs=1e-6)
            others = [uri for uri, _ in family[1:]]  # those that were met come first
            listed = [uri for uri in dict.fromkeys(others[: hit.family_size]) if uri != hit.uri]
            assert hit.family == tuple(listed), query
        seen.update(query.mode for _ in hits)
        seen["folded"] += sum(bool(hit.family) for hit in hits)
        seen["limited"] += 0 < hits.matched < len(oracle.units["passage" if query.passages else "document"])
    assert min(seen[each] for each in (*get_args(Mode), "folded", "limited")) > COUNTS[name] * times / 10, seen
