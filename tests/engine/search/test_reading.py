"""Reading an index through a Searcher, questions with their own vectors, and the notes of a result."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import BadInput, Document, FilterError, Index, Section, TextTooLong, UnknownField, UnknownUri, doors
from search import AsyncSearcher, Hit, Hits, Query, Searcher, search_indexes

ROWS = np.random.default_rng(3).normal(size=(40, 8)).astype(np.float32)
UNIT = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
WORDS = ["bread", "river", "moon", "vault"]


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    documents = [
        Document(f"d{n}", f"{WORDS[n % 4]} text {n}", title=f"title {n}", metadata={"n": n, "kind": WORDS[n % 4]})
        for n in range(40)
    ]
    with Index.create(tmp_path / "x.index", dimensions=8) as index:
        index.add(documents, vectors=ROWS)
    return Searcher(tmp_path / "x.index")


def expected(vector: np.ndarray[Any, Any], allowed: list[int]) -> list[str]:
    return [f"d{n}" for n in sorted(allowed, key=lambda n: -float(UNIT[n] @ vector))]


def test_documents_are_read_counted_and_listed(searcher: Searcher) -> None:
    assert searcher.get("d3").text == "vault text 3"
    assert [document.uri for document in searcher.get_many(["d5", "nothing", "d1", "\ud800"])] == ["d5", "d1"]
    assert [document.uri for document in searcher.documents({"n": {"<": 3}})] == ["d0", "d1", "d2"]
    assert len(list(searcher.documents())) == len(searcher) == searcher.count() == 40
    assert searcher.count('kind = "moon" and n >= 20') == 5
    assert np.allclose(searcher.vectors("d7"), UNIT[7:8], atol=1e-3)
    assert searcher.info().documents == 40
    assert "d7" in searcher
    assert "nothing" not in searcher
    assert 7 not in searcher
    for read in (searcher.get, searcher.vectors, searcher.similar):
        with pytest.raises(UnknownUri, match="has no document 'nothing'"):
            read("nothing")
    with pytest.raises(BadInput, match="put it in brackets"):
        searcher.get_many("d1")
    with pytest.raises(BadInput, match="not a list but int"):
        searcher.get_many(1)  # type: ignore[arg-type]


def test_all_vectors_are_those_of_each_document(searcher: Searcher) -> None:
    every = dict(searcher.all_vectors())
    assert list(every) == searcher.uris()
    assert all(np.array_equal(rows, searcher.vectors(uri)) for uri, rows in every.items())
    assert [uri for uri, _ in searcher.all_vectors({"n": {">": 36}})] == ["d37", "d38", "d39"]
    with pytest.raises(UnknownField):
        list(searcher.all_vectors("m = 1"))


@pytest.mark.parametrize("role", ["query", "document"])
def test_texts_are_embedded_by_the_model_of_the_index(tmp_path: Path, encoder: Any, role: Any) -> None:
    Index.create(tmp_path / "x.index", encoder).close()
    with Searcher(tmp_path / "x.index", encoder) as searcher:
        texts = ["moon", "bread and moon"]
        assert np.array_equal(searcher.embed(iter(texts), role), encoder.encode(texts, role=role))
        with pytest.raises(BadInput, match=r"put it in brackets, or use embed\(\[text\]\)"):
            searcher.embed("moon", role)
        with pytest.raises(TextTooLong, match=r"text 1 has \d+ tokens .*: shorten it, or cut it into passages$"):
            searcher.embed(["moon", "moon " * encoder.max_tokens], role)


def test_what_is_open_is_not_pickled_and_says_what_to_pass(searcher: Searcher) -> None:
    import pickle

    for opened in (searcher, Index.open(searcher.address), AsyncSearcher(searcher.address)):
        with pytest.raises(BadInput, match="is open and cannot be pickled: pass its path or address"):
            pickle.dumps(opened)


def test_values_and_common_fields_do_not_read_the_types_of_all_fields_again(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 200,000 fields, listing 200 of them took longer than a client waits."""
    from indexer.stores.reading.snapshot import Snapshot

    assert searcher.commonest_fields() == ["kind", "n"]
    monkeypatch.setattr(Snapshot, "fields", property(lambda _: pytest.fail("the types of all fields are read")))
    monkeypatch.setattr(Snapshot, "sample", lambda *_: pytest.fail("the same commit is sampled again"))
    assert [searcher.values(name).documents for name in ("kind", "n", "title")] == [40, 40, 40]
    assert searcher.commonest_fields() == ["kind", "n"]


def test_values_of_a_field_are_counted_again_after_a_commit(searcher: Searcher, tmp_path: Path) -> None:
    kinds = searcher.values("kind")
    assert (kinds.documents, kinds.frequent[0], kinds.numbers) == (40, ("bread", 10), None)
    assert searcher.values("kind") is kinds
    assert searcher.values("n", 2).frequent == ((0, 1), (1, 1))
    assert searcher.values("n").numbers == (0, 39)
    assert searcher.values("uri", 1).frequent == (("d0", 1),)
    with Index.open(tmp_path / "x.index") as index:
        index.remove(["d0"])
    assert searcher.values("kind").frequent == (("moon", 10), ("river", 10), ("vault", 10), ("bread", 9))
    with pytest.raises(UnknownField, match='no document has a field "yaer"'):
        searcher.values("yaer")
    with pytest.raises(BadInput, match="limit is 0"):
        searcher.values("kind", 0)
    assert Searcher(tmp_path / "x.index", unknown_fields="empty").values("yaer").documents == 0


def test_a_member_whose_part_is_missing_says_what_to_install(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {name: f"likewise.gone.{name}" for name in ("federation", "map", "readers", "service")}
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "parts": missing})
    for read in (searcher.beginnings, searcher.folders, lambda: searcher.central_passages(3)):
        with pytest.raises(BadInput, match=r"reading an index without a question needs .* \(service\): pip install"):
            read()
    with pytest.raises(BadInput, match=r"the original of a document needs .* \(readers\): pip install"):
        searcher.original("d3")
    with pytest.raises(BadInput, match=r"one question to several indexes needs .* \(federation\): pip install"):
        search_indexes([searcher], "moon")
    assert searcher.map() is None  # there is none to read


def test_the_passages_of_a_document_have_their_places(tmp_path: Path) -> None:
    text = "# Bread\n\nBake it.\n\n# Moon\n\nIt orbits."
    sections = (Section(0, "Bread", 1), Section(19, "Moon", 2))
    document = Document("a", text, "Notes", {"year": 2024}, "/n/a.md", "markdown", sections=sections)
    with Index.create(tmp_path / "x.index", dimensions=2) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(
            [document, Document("b", "other")],
            vectors=[np.eye(2), np.eye(2)[:1]],
            spans=[[(19, 37), (0, 17)], [(0, 5)]],
        )
        passages = searcher.passages("a")
        places = [(p.text, p.start, p.end, p.heading, p.page, p.line) for p in passages]
        assert places == [(text[19:37], 19, 37, "Moon", 2, 5), (text[:17], 0, 17, "Bread", 1, 1)]
        np.testing.assert_array_equal(searcher.vectors("a"), np.eye(2))  # in the same order
        assert (passages[0].uri, passages[0].title, passages[0].metadata) == ("a", "Notes", {"year": 2024})
        for unknown in ("nothing", "\ud800", 7):
            with pytest.raises(UnknownUri, match="has no document"):
                searcher.passages(unknown)  # type: ignore[arg-type]


def test_the_reasons_of_a_hit_are_made_once_and_when_they_are_read() -> None:
    made = []

    def why() -> dict[str, Any]:
        made.append(1)
        return {"cosine": 0.5}

    hit = Hit("a", "title", "text", 0, 4, 0.5, 0.5, why=why)  # type: ignore[arg-type]  # as a searcher does
    assert made == []
    assert (hit.why, hit.why, made) == ({"cosine": 0.5}, {"cosine": 0.5}, [1])
    assert replace(hit, score=0.4).why == {"cosine": 0.5}
    assert hit == Hit("a", "title", "text", 0, 4, 0.5, 0.5, why={"cosine": 0.5})
    assert Hit("a", "title", "text", 0, 4, 0.5, 0.5).why is None
    with pytest.raises(FrozenInstanceError):
        hit.why = {}  # type: ignore[misc]


def test_an_empty_index_is_true_and_has_nothing(tmp_path: Path) -> None:
    with Index.create(tmp_path / "e.index", dimensions=2) as index, Searcher(tmp_path / "e.index") as searcher:
        assert (len(searcher), list(searcher.documents())) == (0, [])
        assert bool(index)
        assert bool(searcher)


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_question_brings_its_own_vector(searcher: Searcher, mode: Any) -> None:
    vector = UNIT[11] + 0.1
    hits = searcher.search("river", 40, where={"n": {">=": 8}}, mode=mode, vector=vector)
    assert (len(hits), hits.matched) == (32, 32)
    for hit in hits:
        cosine = float(UNIT[int(hit.uri[1:])] @ vector / np.linalg.norm(vector))
        assert hit.cosine == pytest.approx(cosine, abs=2e-3)
    if mode == "dense":
        assert [hit.uri for hit in hits][:5] == expected(vector, list(range(8, 40)))[:5]
    with pytest.raises(BadInput, match="give the question's vector"):
        searcher.search("river", mode=mode)
    with pytest.raises(BadInput, match=r"3 dimensions and .* has 8"):
        searcher.search("river", mode=mode, vector=[1.0, 2.0, 3.0])


def test_answer_is_search(searcher: Searcher) -> None:
    query = Query("moon", k=4, where="n < 30", mode="words", passages=True, min_score=0.1)
    hits = searcher.answer(query)
    assert hits == searcher.search("moon", 4, where="n < 30", mode="words", passages=True, min_score=0.1)
    assert {hit.metadata["kind"] for hit in hits} == {"moon"}


def test_many_questions_with_filters_and_vectors_of_their_own(searcher: Searcher) -> None:
    wheres = ["n < 10", None, {"kind": "moon"}]
    many = searcher.search_many(["a", "b", "c"], 50, where=wheres, vectors=UNIT[:3], min_score=0.0)
    for at, (hits, where) in enumerate(zip(many, wheres, strict=True)):
        one = searcher.search("abc"[at], 50, where=where, min_score=0.0, vector=UNIT[at])
        assert [(hit.uri, hit.score) for hit in hits] == [(hit.uri, hit.score) for hit in one]
        assert [hit for hit in hits if not (hit.score >= 0)] == []
        assert hits.matched == [10, 40, 10][at]
    passages = searcher.search_many(["a"], 3, vectors=UNIT[:1], passages=True, exact=True)
    best = sorted((UNIT @ UNIT[0]).tolist(), reverse=True)[:3]
    assert [hit.score for hit in passages[0]] == pytest.approx(best, abs=1e-3)
    with pytest.raises(BadInput, match="2 filters were given for 1 questions"):
        searcher.search_many(["a"], where=["n = 1", "n = 2"], vectors=UNIT[:1])
    with pytest.raises(BadInput, match="one row per question, 2 in all"):
        searcher.search_many(["a", "b"], vectors=UNIT[:1])
    with pytest.raises(BadInput, match="not an array of numbers"):
        searcher.search_many(["a", "b"], vectors=[[1.0, 2.0], [1.0]])
    with pytest.raises(FilterError, match="not a string but int"):
        searcher.search_many(["a"], where=5, vectors=UNIT[:1])  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_an_index_without_a_width_has_no_hits_for_a_vector_of_any(tmp_path: Path, mode: Any) -> None:
    with Index.create(tmp_path / "e.index", dimensions="auto") as index, Searcher(index.address) as searcher:
        hits = searcher.search("river bank", 5, mode=mode, vector=[1.0, 2.0, 3.0])
        assert (hits.hits, hits.matched, hits.exact) == ((), 0, True)
        index.add([Document("a", "river bank")], vectors=np.ones((1, 3)))
        assert [hit.uri for hit in searcher.search("river bank", 5, mode=mode, vector=[1.0, 2.0, 3.0])] == ["a"]


def test_a_question_of_stop_words_among_many_is_told_of(searcher: Searcher) -> None:
    first, second = searcher.search_many(["what is it", "moon"], 5, mode="words")
    assert (first.hits, len(first.notes)) == ((), 1)
    assert "too common" in first.notes[0]
    assert (len(second), second.notes) == (5, ())
    assert json.loads(json.dumps(first.as_json()))["notes"] == list(first.notes)


def test_unknown_fields_are_an_error_or_hold_for_no_document(searcher: Searcher, tmp_path: Path) -> None:
    with pytest.raises(UnknownField, match='no document has a field "yaer"') as caught:
        searcher.search_vector(UNIT[0], where="yaer = 1")
    assert caught.value.field == "yaer"
    with Searcher(tmp_path / "x.index", unknown_fields="empty") as lenient:
        asked: list[tuple[Any, int]] = [
            ("yaer = 1", 0),
            ("yaer != 1", 0),
            ("not yaer = 1", 40),
            ("yaer = 1 or n < 5", 5),
            ("yaer = 1 and n < 5", 0),
            ("not exists yaer and n < 5", 5),
        ]
        for where, count in asked:
            assert lenient.count(where) == count
            assert len(list(lenient.documents(where))) == count
            hits = lenient.search_vector(UNIT[0], 50, where=where)
            assert (len(hits), hits.matched, hits.exact) == (count, count, True)
            assert lenient.search("text", 50, where=where, mode="words").matched == count
        assert lenient.similar("d1", 50, where="yaer = 1").matched == 0
        assert lenient.similar("d1", 50, where="not yaer = 1").matched == 39
        with pytest.raises(FilterError, match="field n cannot be compared"):
            lenient.count('yaer = 1 and n = "x"')
    with pytest.raises(BadInput, match="unknown_fields"):
        Searcher(tmp_path / "x.index", unknown_fields="ignore")  # type: ignore[arg-type]


def test_a_field_that_goes_while_documents_are_listed_holds_for_no_document(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document("a", "text", metadata={"n": 1}), Document("b", "text")], vectors=np.ones((2, 2)))
        searcher = Searcher(index.address, unknown_fields="empty")
        with_field, without_field = searcher.documents({"n": 1}), searcher.documents({"not": {"n": 1}})
        strict = Searcher(index.address).documents({"n": 1})
        index.remove("a")
        assert (list(with_field), [document.uri for document in without_field]) == ([], ["b"])
        with pytest.raises(UnknownField):
            next(strict)


def test_words_are_marked_when_somebody_looks(searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    marked: list[str] = []
    from search.hits.marks import QuestionWords

    real = QuestionWords.mark

    def watched(self: QuestionWords, text: str, *arguments: Any) -> list[dict[str, Any]]:
        marked.append(text)
        return real(self, text, *arguments)

    monkeypatch.setattr(QuestionWords, "mark", watched)
    hits = searcher.search("moon texts", 3, mode="words")
    assert marked == []
    assert hits[0].why is not None
    assert hits[0].why["bm25"] == hits[0].score
    words = hits[0].why["words"]
    assert [word["text"] for word in words] == ["moon", "text"]
    assert [word for word in words if hits[0].text[word["start"] : word["end"]] != word["text"]] == []
    assert hits[0].why["words"] is words
    assert marked == [hits[0].text]
    plain = asdict(hits[0])
    assert plain["why"] == hits[0].why
    assert list(plain["why"])[-2:] == ["words", "weak"]
    assert json.loads(json.dumps(hits[0].why)) == hits[0].why
    assert json.loads(json.dumps(hits.as_json()))["hits"][0]["why"]["words"] == words


def test_hits_are_values(searcher: Searcher) -> None:
    import copy
    import pickle

    hits = searcher.search("moon", 3, mode="words")
    for same in (copy.deepcopy(hits), pickle.loads(pickle.dumps(hits))):  # noqa: S301 - made here
        assert isinstance(same, Hits)
        assert same == hits
