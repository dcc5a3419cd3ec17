"""Ranking by words and by both, compared with BM25 and cosines computed here, and the reasons of every score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.stores.reference import ReferenceSnapshot
from opened import store_of

from indexer import Document, Index, Section
from indexer.calibration.cosines import CosineStatistics
from indexer.errors import BadInput, NothingKnown
from indexer.stores.addresses.open import open_store
from indexer.stores.port import Unit
from search import Searcher
from search.ranking.fusion import words_weight

WORDS = [f"{first}{second}" for first in ("ban", "riv", "moo", "sta", "flo") for second in ("kle", "tor", "mig", "sul")]


def filled(path: Path, encoder: Any) -> Path:
    """An index of 120 documents, some of several passages."""
    random = np.random.default_rng(11)
    with Index.create(path, encoder) as index:
        index.add(
            [
                Document(f"d{n}", " ".join(random.choice(WORDS, int(random.integers(5, 90)))), "", {"even": n % 2 == 0})
                for n in range(120)
            ]
        )
    return path


@pytest.fixture
def folder(encoder: Any, tmp_path: Path) -> Path:
    return filled(tmp_path / "x.index", encoder)


@pytest.fixture
def collection(in_memory: None, encoder: Any, tmp_path: Path) -> Path:
    """The same documents in a reference store."""
    return filled(tmp_path / "x.index", encoder)


def bm25(texts: list[str], query: str) -> np.ndarray:
    counts = [Counter(text.split()) for text in texts]
    mean = sum(map(len, map(str.split, texts))) / len(texts)
    total = np.zeros(len(texts))
    for term in set(query.split()):
        holding = sum(term in count for count in counts)
        idf = log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for at, count in enumerate(counts):
            tf = count[term]
            total[at] += idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * sum(count.values()) / mean))
    return total


def test_words_rank_by_bm25_and_load_no_model(collection: Path, encoder: Any) -> None:
    encoder.seen.clear()
    query = "bankle rivmig"
    with Searcher(collection) as searcher:
        hits = searcher.search(query, 10, mode="words")
        with Index.open(collection) as index:
            texts = [document.text for document in index]
        scores = bm25(texts, query)
        assert hits.matched == (scores > 0).sum()
        # Lengths are rounded, as in Lucene: not the last per cent agrees.
        assert [hit.score for hit in hits] == pytest.approx(np.sort(scores)[::-1][:10], rel=0.06)
        for hit in hits:
            assert hit.score == pytest.approx(scores[int(hit.uri[1:])], rel=0.06)
            assert (hit.cosine, hit.why["bm25"], hit.why["contributions"]) == (None, hit.score, {"words": hit.score})
            assert {word["text"] for word in hit.why["words"]} <= set(query.split())
            text = texts[int(hit.uri[1:])]
            assert [word for word in hit.why["words"] if text[word["start"] : word["end"]] != word["text"]] == []
        assert encoder.seen == []
        assert searcher.search(query, 10, where="even = true", mode="words").matched == (scores[::2] > 0).sum()


@pytest.mark.parametrize("unit", ["document", "passage"])
def test_both_are_the_convex_combination_of_their_contributions(collection: Path, encoder: Any, unit: Unit) -> None:
    query = "flosul statork"
    vector = encoder.encode([query], role="query")[0]
    with Searcher(collection) as searcher, store_of(searcher).snapshot() as snapshot:
        hits = searcher.search(query, 120, mode="hybrid", passages=unit == "passage")
        every = snapshot.dense(vector, snapshot.passages, None, "passage", True)
        said = snapshot.words(query, snapshot.passages, None, unit)
        statistics = CosineStatistics.from_sample(snapshot.sample(2000).vectors)
    owners, found = (every.documents, said.documents) if unit == "document" else (every.passages, said.passages)
    bm25_of = dict(zip(found.tolist(), said.scores.tolist(), strict=True))
    units = np.unique(owners).tolist()
    own = [np.sort(every.scores[owners == id_].astype(float))[::-1] for id_ in units]
    # A unit counts half its best passage and half the mean of its three best.
    z_scores = statistics.z_scores(vector, np.array([(cosines[0] + cosines[:3].mean()) / 2 for cosines in own]))
    words = np.array([bm25_of.get(id_, 0.0) for id_ in units])
    weight = words_weight(z_scores, words, 2)
    expected = np.sort((1 - weight) * z_scores + weight * words)[::-1]
    if unit == "document":
        assert len(hits) == hits.matched == 120
    assert [hit.score for hit in hits] == pytest.approx(expected[: len(hits)].tolist(), abs=1e-4)
    for hit in hits:
        assert sum(hit.why["contributions"].values()) == pytest.approx(hit.score)
        assert sum(hit.why["weights"].values()) == pytest.approx(1)
        assert hit.why["contributions"]["words"] == pytest.approx(hit.why["bm25"] * hit.why["weights"]["words"])
        assert hit.why["cosine"] == pytest.approx(hit.cosine, abs=1e-6)


def test_a_question_of_stop_words_alone(collection: Path) -> None:
    with Searcher(collection) as searcher:
        with pytest.raises(BadInput, match="too common"):
            searcher.search("is it of the", mode="words")
        hits = searcher.search("is it of the", 5, mode="hybrid")
        assert hits.notes == ("the question 'is it of the' has no word to search by: ranked by meaning alone",)
        dense = searcher.search("is it of the", 5)
        assert hits[0].why["weights"] == {"cosine": 1.0, "words": 0.0}
        assert len(hits) == len(dense) == 5
        with pytest.raises(BadInput, match="empty"):
            searcher.search("  ", mode="words")
        with pytest.raises(BadInput, match="mode 'fuzzy' is not one of"):
            searcher.search("a", mode="fuzzy")  # type: ignore[arg-type]


@pytest.mark.usefixtures("in_memory")
def test_of_scripts_without_spaces_the_pairs_that_were_asked_for_are_told(tmp_path: Path, encoder: Any) -> None:
    text = "我住在东京都,不在京都。COVID疫苗 works"
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", text)])
    with Searcher(tmp_path / "x.index") as searcher:
        for query, words in (
            ("东京", ["东京"]),
            ("京都", ["京都", "京都"]),
            ("东京都 covid", ["东京都", "京都", "COVID"]),
        ):
            (hit,) = searcher.search(query, mode="words")
            assert hit.why is not None
            assert [word["text"] for word in hit.why["words"]] == words
            assert [word for word in hit.why["words"] if text[word["start"] : word["end"]] != word["text"]] == []


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(
    ("text", "question", "word"),
    [
        ("un cafe\u0301 noir", "café", "cafe\u0301"),
        ("यह हिन्दी है", "हिन्दी", "हिन्दी"),
        ("இது தமிழ் மொழி", "தமிழ்", "தமிழ்"),
        ("في الْعَرَبِيَّة كلام", "العربية", "الْعَرَبِيَّة"),
        ("their co\u00adoperation grew", "cooperation", "co\u00adoperation"),
    ],
)
def test_words_that_are_written_otherwise_are_marked_as_they_stand(
    tmp_path: Path, encoder: Any, text: str, question: str, word: str
) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", text), Document("b", "nothing of it")])
    with Searcher(tmp_path / "x.index") as searcher:
        (hit,) = searcher.search(question, mode="words")
        assert hit.why is not None
        assert [found["text"] for found in hit.why["words"]] == [word]


def test_hybrid_asks_exactly_where_it_is_told_to(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    candidates = ReferenceSnapshot.candidates

    def spy(self: ReferenceSnapshot, *arguments: Any) -> Any:
        asked.append(arguments[5])
        return candidates(self, *arguments)

    monkeypatch.setattr(ReferenceSnapshot, "candidates", spy)
    with Searcher(collection) as searcher:
        for exact in (False, True):
            searcher.search("bankle", mode="hybrid", exact=exact)
    assert asked == [False, True]


@pytest.mark.usefixtures("in_memory")
def test_a_sentence_that_the_model_cannot_read_is_passed_by(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = type(encoder).offsets
    unseen = str.maketrans("*", " ")
    monkeypatch.setattr(type(encoder), "offsets", lambda self, texts: whole(self, [t.translate(unseen) for t in texts]))
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "A bank. Of the river.\n\n***\n\nEnd")])
    with Searcher(tmp_path / "x.index") as searcher:
        searcher.search("bank river", explain=True)
    assert "Of the river." in encoder.seen
    assert "***" not in encoder.seen


@pytest.mark.usefixtures("in_memory")
def test_a_sentence_that_the_model_has_no_vector_for_is_passed_by(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static model has a vector for some tokens alone."""
    whole = type(encoder).encode

    def encode(self: Any, texts: Sequence[str], **options: Any) -> Any:
        if unknown := [number for number, text in enumerate(texts) if text.startswith("Zz")]:
            raise NothingKnown(unknown, "static")
        return whole(self, texts, **options)

    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "A bank. Zz zz. Of the river.\n\nZzz."), Document("b", "Zz zzz. Zz.")])
    monkeypatch.setattr(type(encoder), "encode", encode)
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search("bank river", explain=True)
    sentences = {hit.uri: hit.why["sentence"] for hit in hits}
    assert (sentences["a"]["text"], sentences["b"]) == ("Of the river.", None)


def test_the_nearest_sentence_is_found_on_request(collection: Path, encoder: Any) -> None:
    with Index.open(collection, encoder) as index:
        index.add([Document("s", "Nothing here. The moomig of flokle! And more.\n\nEnd")])
    with Searcher(collection) as searcher:
        (hit,) = searcher.search("moomig flokle", 1, where='uri = "s"', explain=True)
        assert hit.why["sentence"]["text"] == "The moomig of flokle!"
        assert (hit.why["sentence"]["start"], hit.why["sentence"]["end"]) == (14, 35)
        asked, said = encoder.encode(["moomig flokle", "The moomig of flokle!"])
        assert hit.why["sentence"]["cosine"] == pytest.approx(float(asked @ said), abs=1e-5)
        assert "sentence" not in searcher.search("moomig flokle", 1, where='uri = "s"')[0].why


@pytest.mark.usefixtures("in_memory")
def test_the_title_is_not_the_nearest_sentence(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(
            [
                Document("a", "A river bank.\n\nIt is wet. A river bank!", "A river bank"),
                Document("b", "A bank", "A bank"),
            ]
        )
    with Searcher(tmp_path / "x.index") as searcher:
        sentences = {hit.uri: hit.why["sentence"] for hit in searcher.search("river bank", explain=True)}
    assert (sentences["a"]["text"], sentences["a"]["start"], sentences["b"]) == ("It is wet.", 15, None)


def test_the_shell_explains(folder: Path, likewise: Callable[..., Any]) -> None:
    said = likewise("search", folder, "bankle rivmig", "-k", "1", "--mode", "hybrid", "--explain").succeeded()
    assert " from cosine " in said.out
    assert " from BM25 " in said.out
    assert "    words     " in said.out
    assert "    sentence  " in said.out
    (hit,) = likewise("search", folder, "bankle rivmig", "-k", "1", "--mode", "words", "--json").json["hits"]
    assert hit["cosine"] is None
    assert hit["why"]["bm25"] == hit["score"]


def test_query_syntax_is_text(collection: Path) -> None:
    with Searcher(collection) as searcher:
        plain = searcher.search("bankle", 5, mode="words")
        for query in ('"bankle', "bankle AND (", "+bankle -", "words:bankle", "bankle^2 ~", "[bankle TO"):
            assert searcher.search(query, 5, mode="words").matched >= plain.matched, query


def test_the_language_is_chosen_once(likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path) -> None:
    records = lines({"id": "a", "text": "Die Häuser der Stadt"}, {"id": "b", "text": "Ein Baum"})
    folder = tmp_path / "y.index"
    assert likewise("index", folder, "-", "--language", "german", stdin=records).code == 0
    assert likewise("search", folder, "haus", "--mode", "words", "--json").json["matched"] == 1
    with open_store(folder).snapshot() as snapshot:
        assert snapshot.settings.language == "de"
    likewise("index", folder, "-", "--language", "fr", stdin=records).failed(2, "--language")
    said = likewise("index", tmp_path / "z.index", "-", "--language", "klingon", stdin=records)
    said.failed(2, "language 'klingon' is unknown")


def test_a_mail_is_not_judged_by_what_is_attached_to_it(encoder: Any, tmp_path: Path) -> None:
    """The cosines of passages are averaged within the message, or within one attachment."""
    note, terms = "the invoice of the bakery is overdue ", "bankle rivmig moosul stator flokle " * 30
    mail = Document(
        "mail",
        note * 5 + terms,
        "Reminder",
        {"attachments": ["terms.txt"]},
        format="mbox",
        sections=(Section(0), Section(len(note * 5), "terms.txt")),
    )
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([mail, replace(mail, uri="report", format="docx"), Document("other", "a bakery of my aunt")])
    with Searcher(tmp_path / "x.index") as searcher:
        for question, heading in ("is the invoice overdue", ""), ("flokle moosul", "terms.txt"):
            (vector,) = encoder.encode([question], "query")
            cosines = {uri: searcher.vectors(uri) @ vector for uri in ("mail", "report", "other")}
            part = np.array([passage.heading == heading for passage in searcher.passages("mail")])
            assert 1 <= part.sum() < len(part)
            blends = {uri: (np.max(each) + np.sort(each)[-3:].mean()) / 2 for uri, each in cosines.items()}
            own = cosines["mail"][part]
            blends["mail"] = (own.max() + np.sort(own)[-3:].mean()) / 2
            hits = searcher.search(question, mode="hybrid")
            dense = {hit.uri: hit.why["contributions"]["cosine"] for hit in hits}
            scale = (blends["report"] - blends["other"]) / (dense["report"] - dense["other"])
            expected = dense["other"] + (blends["mail"] - blends["other"]) / scale
            assert dense["mail"] == pytest.approx(expected, abs=1e-3)
            assert dense["mail"] > dense["report"] + (0.1 if heading == "" else -0.001)
