"""Rankings against brute force with numpy over the stored vectors, after every kind of change to the index."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hardware import FLOAT32
from opened import store_of

from indexer import Document, Index
from indexer.errors import BadInput, FilterError, NotAnIndex, RecipeMismatch, UnknownUri
from indexer.stores.local import seal
from search import Hit, Searcher

_WORDS = "bread yeast flour oven salt water river bank money vault tide moon star rocket engine fuel cat dog"
WORDS = _WORDS.split()


def text(seed: int, words: int) -> str:
    chance = np.random.default_rng(seed)
    return " ".join(chance.choice(WORDS, words)) + f" {seed}"


def documents(first: int, last: int, words: int = 70) -> list[Document]:
    return [
        Document(f"d{i}", text(i, 1 + i * 13 % words), f"title {i % 7}", {"n": i, "even": i % 2 == 0})
        for i in range(first, last)
    ]


def stored(folder: Path) -> list[tuple[str, int, int, np.ndarray]]:
    """(uri, start, end, vector) of every passage, in the order they were added, read with sqlite3 alone."""
    with sqlite3.connect(f"file:{folder}/catalog.db?mode=ro", uri=True) as catalog:
        rows = catalog.execute(
            "SELECT d.uri, p.start, p.stop, p.vector"
            " FROM passage p JOIN document d ON d.id = p.document_id ORDER BY p.id"
        ).fetchall()
    catalog.close()
    return [(uri, start, end, np.frombuffer(blob, "<f2").astype(np.float64)) for uri, start, end, blob in rows]


def brute_force(
    folder: Path, question: np.ndarray, passages: bool, keep: Callable[[str], bool]
) -> list[tuple[str, int, int, float]]:
    """Return every unit with its cosine, best first; equal ones in the order they were added."""
    found = [
        (uri, start, end, float(row @ question / np.linalg.norm(row) / np.linalg.norm(question)))
        for uri, start, end, row in stored(folder)
        if keep(uri)
    ]
    found.sort(key=lambda hit: -hit[3])
    first: dict[str, tuple[str, int, int, float]] = {}
    for hit in found:
        first.setdefault(hit[0], hit)
    return found if passages else list(first.values())


def assert_ranked_as_brute_force(
    searcher: Searcher, folder: Path, question: str, k: int, where: str | None = None, passages: bool = False
) -> None:
    keep: Callable[[str], bool] = {
        None: lambda uri: True,
        "even = true": lambda uri: uri[1:].isdigit() and int(uri[1:]) % 2 == 0,
        "n < 9": lambda uri: uri[1:].isdigit() and int(uri[1:]) < 9,
    }[where]
    with store_of(searcher).snapshot() as snapshot:
        (row,), _ = searcher.answering.questions.encode(snapshot, [question])
    expected = brute_force(folder, row.astype(np.float64), passages, keep)
    hits = searcher.search(question, k, where=where, passages=passages)
    assert (len(hits), hits.matched, hits.exact) == (min(k, len(expected)), len(expected), True)
    scores = [hit.score for hit in hits]
    np.testing.assert_allclose(scores, [score for *_, score in expected[:k]], rtol=0, atol=1e-5)
    assert scores == sorted(scores, reverse=True)
    by_place = {(uri, start, end): score for uri, start, end, score in expected}
    for hit, (uri, start, end, score) in zip(hits, expected, strict=False):
        # The same passage at the same rank, or another that is as near to the last digit of a float32.
        place = (hit.uri, hit.start, hit.end)
        assert place == (uri, start, end) or abs(by_place[place] - score) < FLOAT32
        assert hit.cosine == pytest.approx(hit.score)


QUESTIONS = ("bread yeast", "the river bank", "rocket fuel moon 17", "nothing that is known")
WAYS: list[tuple[int, str | None, bool]] = [
    (1, None, False),
    (10, None, False),
    (10, None, True),
    (1000, None, False),
    (1000, None, True),
    (10, "even = true", False),
    (10, "even = true", True),
    (10, "n < 9", False),
    (500, "n < 9", True),
]


@pytest.mark.parametrize("seal_at", [8192, 40], ids=["tail", "segments and tail"])
def test_as_brute_force_through_adding_replacing_and_removing(
    tmp_path: Path, encoder: Any, seal_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "SEAL_PASSAGES", seal_at)
    monkeypatch.setattr(seal.seal, "__defaults__", (seal_at,))
    monkeypatch.setattr(seal, "MAX_MERGED_PASSAGES", 100)
    folder = tmp_path / "x.index"
    with Index.create(folder, encoder) as index, Searcher(folder) as searcher:

        def changes() -> Iterator[str]:
            for first in range(0, 120, 30):
                index.add(documents(first, first + 30))
            yield "added"
            index.add(
                [Document(f"d{i}", text(1000 + i, 90), "", {"n": i, "even": i % 2 == 0}) for i in range(5, 60, 7)]
            )
            yield "replaced"
            index.remove([f"d{i}" for i in range(0, 100, 9)] + ["d119"])
            yield "removed"
            index.add([Document("same 1", "bread yeast"), Document("same 2", "bread yeast")])
            yield "ties"
            index.compact()
            yield "compacted"
            index.add(documents(200, 210))
            yield "added again"

        for _ in changes():
            for k, where, passages in WAYS:
                assert_ranked_as_brute_force(searcher, folder, QUESTIONS[k % 4], k, where, passages)
        assert bool(index.info().segments)
        assert index.check().ok


def test_the_last_document_of_a_segment_is_removed_and_a_filter_asked(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents(1, 4))
        index.compact()
        index.remove(["d3"])
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search("bread", where="n >= 2")
    assert ([hit.uri for hit in hits], hits.matched) == (["d2"], 1)


def test_equal_scores_stand_in_the_order_they_were_added(tmp_path: Path, encoder: Any) -> None:
    uris = [f"u{i}" for i in (5, 3, 8, 1, 9, 2)]
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(uri, "one and the same text") for uri in uris])
    with Searcher(tmp_path / "x.index") as searcher:
        assert [hit.uri for hit in searcher.search("same", 4)] == uris[:4]
        assert [hit.uri for hit in searcher.search("same", 10)] == uris


def test_stored_vectors_are_the_encoders_to_a_thousandth(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents(0, 50))
        texts = {document.uri: document for document in index}
    (question,) = encoder.encode(["bread and water"])
    for uri, start, end, row in stored(tmp_path / "x.index"):
        (full,) = encoder.encode([f"{texts[uri].title} {texts[uri].text[start:end]}"])
        assert abs(float(row @ question) - float(full @ question)) < 1e-3


@pytest.mark.usefixtures("in_memory")
def test_a_hit_is_a_part_of_its_document(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 40))
        for hit in searcher.search("river moon", 200, passages=True):
            document = index.get(hit.uri)
            assert document.text[hit.start : hit.end] == hit.text
            assert (hit.title, hit.metadata) == (document.title, document.metadata)


@pytest.mark.usefixtures("in_memory")
def test_nothing_matches_or_nothing_is_there(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search("anything")
        assert (len(hits), hits.matched, hits.exact) == (0, 0, True)
        index.add(documents(0, 3))
        hits = searcher.search("anything", where="n > 99")
        assert (len(hits), hits.matched) == (0, 0)
        index.remove([document.uri for document in index])
        assert searcher.search("anything").matched == 0


@pytest.mark.usefixtures("in_memory")
def test_min_score_leaves_out_what_scores_less(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 30))
        every = searcher.search("bread yeast", 30)
        least = every[9].score
        few = searcher.search("bread yeast", 30, min_score=least)
        assert [hit.uri for hit in few] == [hit.uri for hit in every if hit.score >= least]
        assert few.matched == 30
        assert len(searcher.search("bread yeast", min_score=1.1)) == 0


def test_what_cannot_be_asked(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents(0, 3))
    with Searcher(tmp_path / "x.index") as searcher:
        for question in ("", " \n\t", "\u00a0"):
            with pytest.raises(BadInput, match="the question is empty"):
                searcher.search(question)
        for k in (0, -1, 2.5):
            with pytest.raises(BadInput, match=f"k is {k}: ask for a whole number"):
                searcher.search("bread", k)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="one string was given in place of a list of questions"):
            searcher.search_many("bread")
        with pytest.raises(FilterError, match="nn"):
            searcher.search("bread", where="nn = 1")
        with pytest.raises(BadInput, match="mode"):
            searcher.search("bread", mode="fuzzy")  # type: ignore[arg-type]
        with pytest.raises(UnknownUri, match="'zz'"):
            searcher.similar("zz")
        with pytest.raises(BadInput, match="only zeros"):
            searcher.search_vector(np.zeros(64))
        with pytest.raises(BadInput, match="63 dimensions"):
            searcher.search_vector(np.ones(63))
        with pytest.raises(BadInput, match="valid Unicode"):
            searcher.search("a lone \ud800 surrogate")
    with pytest.raises(NotAnIndex, match="there is no index here, it does not exist"):
        Searcher(tmp_path / "nothing.index")


@pytest.mark.usefixtures("in_memory")
def test_a_question_over_the_limit_is_cut_and_said(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 30))
        question = " ".join(["bread"] * 30 + ["rocket"] * 12)
        cut = searcher.search(question, 5)
        (note,) = cut.notes
        assert "42 tokens, 12 more than the model reads" in note
        assert "'rocket rocket" in note
        assert [hit.uri for hit in cut] == [hit.uri for hit in searcher.search("bread " * 30, 5)]
        # Among many questions, only this question has a note.
        assert [hits.notes for hits in searcher.search_many(["bread", question], 5)] == [(), (note,)]


@pytest.mark.usefixtures("in_memory")
def test_many_questions_as_one_by_one(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 30))
        together = searcher.search_many(QUESTIONS, 7, where="even = true")
        for question, hits in zip(QUESTIONS, together, strict=True):
            assert hits.query == question
            assert hits.hits == searcher.search(question, 7, where="even = true").hits
        assert searcher.search_many([]) == []
        assert len(searcher.search_many(question for question in ("bread", "moon"))) == 2
        with pytest.raises(BadInput, match="not a list but NoneType"):
            searcher.search_many(None)  # type: ignore[arg-type]


def test_similar_goes_by_the_mean_of_the_passages(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 40))
        own = [row for uri, _, _, row in stored(tmp_path / "x.index") if uri == "d5"]
        assert len(own) > 1
        expected = brute_force(tmp_path / "x.index", np.mean(own, axis=0), False, lambda uri: uri != "d5")
        hits = searcher.similar("d5", 6)
        assert [hit.uri for hit in hits] == [uri for uri, *_ in expected[:6]]
        assert hits.matched == 39
        assert [hit.uri for hit in searcher.similar("d5", 3, where="even = true")] == [
            uri for uri, *_ in expected if int(uri[1:]) % 2 == 0
        ][:3]


@pytest.mark.usefixtures("in_memory")
def test_vectors_of_ones_own_and_of_any_length(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    with Index.create(tmp_path / "x.index", dimensions=8) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add([Document(str(i), f"text {i}") for i in range(20)], vectors=rows * 1000)
        cosines = rows @ rows[4] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[4])
        for length in (1e-3, 1.0, 1e6):
            hits = searcher.search_vector(rows[4] * length, 20)
            assert [int(hit.uri) for hit in hits] == np.argsort(-cosines).tolist()
            np.testing.assert_allclose([hit.score for hit in hits], np.sort(cosines)[::-1], atol=1e-3)
        with pytest.raises(BadInput, match="question's vector"):
            searcher.search("text")


def test_a_living_searcher_sees_commits_and_a_replaced_folder_of_another_model(
    tmp_path: Path, encoder: Any, make_encoder: Callable[..., Any]
) -> None:
    folder = tmp_path / "x.index"
    other = make_encoder(name="longer words", weights="2", max_tokens=64)
    with Index.create(folder, encoder) as index:
        index.add([Document("a", "bread")])
    searcher = Searcher(folder)
    assert [hit.uri for hit in searcher.search("bread")] == ["a"]
    with Index.open(folder) as index:
        index.add([Document("b", "bread yeast")])
    assert [hit.uri for hit in searcher.search("bread")] == ["a", "b"]
    with Index.create(tmp_path / "y.index", other) as index:
        index.add([Document("c", "water")])
    folder.rename(tmp_path / "old.index")
    (tmp_path / "y.index").rename(folder)
    assert [hit.uri for hit in searcher.search("bread")] == ["c"]
    assert other.seen[-1] == "bread"


@pytest.mark.usefixtures("in_memory")
def test_an_encoder_of_another_recipe_is_refused(
    tmp_path: Path, encoder: Any, make_encoder: Callable[..., Any]
) -> None:
    Index.create(tmp_path / "x.index", encoder).close()
    for other in (make_encoder(weights="2"), make_encoder(name="other", weights="3")):
        with pytest.raises(RecipeMismatch) as raised:
            Searcher(tmp_path / "x.index", other)
        for recipe in (encoder.recipe, other.recipe):
            assert f"{recipe.model} (weights {recipe.fingerprint[:12]}" in str(raised.value)
    Searcher(tmp_path / "x.index", make_encoder(name="the same weights by another name")).close()


@pytest.mark.slow
def test_eight_threads_search_while_one_adds(tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal.seal, "__defaults__", (60,))
    folder, failures, done = tmp_path / "x.index", [], threading.Event()
    index = Index.create(folder, encoder)
    index.add(documents(0, 20))
    searcher = Searcher(folder)

    def ask() -> None:
        seen = 0
        try:
            while not done.is_set():
                hits = searcher.search("bread water", 400)
                assert len(hits) == hits.matched >= seen
                assert hits.matched % 20 == 0, "a part of a commit"
                seen = hits.matched
        except Exception as error:  # noqa: BLE001 - whatever it is, the test says it
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for first in range(20, 200, 20):
        index.add(documents(first, first + 20))
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert searcher.search("bread").matched == 200


def test_an_index_that_takes_anothers_place_is_asked_with_its_own_encoder_or_not_at_all(
    tmp_path: Path, encoder: Any, make_encoder: Callable[..., Any]
) -> None:
    folder = tmp_path / "x.index"
    other = make_encoder(name="other", weights="2")
    for kind, count in ((encoder, 30), (other, 20)):
        with Index.create(tmp_path / f"{count}.index", kind) as index:
            index.add(documents(0, count))
    (tmp_path / "30.index").rename(folder)
    with Searcher(folder, encoder) as given, Searcher(folder) as searcher:
        assert given.search("bread", 5).matched == 30

        def swapped(texts: Any) -> None:  # while the question is embedded
            if folder.exists() and (tmp_path / "20.index").exists():
                folder.rename(tmp_path / "old.index")
                (tmp_path / "20.index").rename(folder)

        encoder.ask = swapped
        assert searcher.search("bread", 5).matched == 30
        encoder.ask = lambda texts: None
        assert searcher.search("bread", 5).matched == 20
        with pytest.raises(RecipeMismatch):
            given.search("bread", 5)


def test_a_models_own_code_runs_where_a_searcher_is_told_to_trust_it(
    tmp_path: Path,
    encoder: Any,
    likewise: Callable[..., Any],
    register: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents(0, 3))
    trusted = []

    def load(recipe: Any, runtime: Any) -> Any:
        trusted.append(runtime.trust_remote_code)
        return encoder

    monkeypatch.setattr("indexer.encoders.load.load_recipe", load)
    for trust in (True, False, True):
        register(alone=True)
        with Searcher(tmp_path / "x.index", trust_remote_code=trust) as searcher:
            assert len(searcher.search("bread", 3)) == len(searcher.search("moon", 3)) == 3
    register(alone=True)
    assert likewise("search", tmp_path / "x.index", "bread", "--trust-remote-code").code == 0
    assert trusted == [True, False, True, True]


@pytest.mark.usefixtures("in_memory")
def test_arguments_that_mean_nothing_are_refused_by_name(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 30))
        assert len(searcher.search("bread", np.int64(3))) == 3  # type: ignore[arg-type]
        for arguments, why in (
            ({"k": True}, "k is True"),
            ({"rerank_depth": 0}, "rerank_depth is 0"),
            ({"min_score": float("nan")}, "min_score"),
            ({"min_score": "x"}, "min_score is 'x': give a number"),
            ({"where": 5}, "the filter is not a string but int"),
            ({"where": 'modified < "foo"'}, "compare it with a date such as"),
            ({"query": None}, "not a string but NoneType"),
        ):
            with pytest.raises(BadInput, match=why):
                searcher.search(**{"query": "bread", **arguments})


@pytest.mark.parametrize("kind", ["tail", "exact", "approximate"])
def test_equal_vectors_have_equal_scores_and_come_in_the_order_they_were_added(tmp_path: Path, kind: str) -> None:
    chance = np.random.default_rng(3)
    rows = chance.normal(size=(400, 384)).astype(np.float32)
    rows[11:48] = rows[11]
    with Index.create(tmp_path / "x.index", dimensions=384) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add([Document(f"d{i:03}", f"text {i}") for i in range(400)], vectors=rows)
        if kind != "tail":
            index.compact(kind)
        same = [f"d{i:03}" for i in range(11, 48)]
        for _ in range(20):
            question = rows[11] + chance.normal(size=384).astype(np.float32)
            for k in (1, 5, 37):
                hits = searcher.search_vector(question, k, where="uri >= 'd011' and uri < 'd048'")
                assert ([hit.uri for hit in hits], len({hit.score for hit in hits})) == (same[:k], 1)


@pytest.mark.parametrize("mode", ["dense", "words", "hybrid"])
def test_more_hits_than_there_are_documents_are_no_burden(tmp_path: Path, encoder: Any, mode: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 30))
        assert len(searcher.search("bread", 10**20, mode=mode)) == len(searcher.search("bread", 30, mode=mode)) > 0


@pytest.mark.usefixtures("in_memory")
def test_similar_counts_the_document_itself_only_where_the_filter_leaves_it(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index, Searcher(tmp_path / "x.index") as searcher:
        index.add(documents(0, 300))
        index.compact()
        index.add(documents(300, 310))
        for uri in ("d4", "d305"):
            even = uri == "d4"
            assert searcher.similar(uri, 400).matched == len(searcher.similar(uri, 400)) == 309
            hits = searcher.similar(uri, 400, where="even = true")
            assert hits.matched == len(hits) == 155 - even
            assert uri not in [hit.uri for hit in hits]


def test_an_open_index_stays_where_it_is_when_the_process_goes_elsewhere(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, count in (("here", 3), ("there", 5)):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        with Index.create("x.index", encoder) as index:
            index.add(documents(0, count))
    monkeypatch.chdir(tmp_path / "here")
    with Searcher("x.index") as searcher, Index.open("x.index") as index:
        monkeypatch.chdir(tmp_path / "there")
        assert searcher.search("bread").matched == len(index) == 3


@pytest.mark.usefixtures("in_memory")
def test_an_encoder_of_ones_own_asks_an_index_of_vectors_of_ones_own(tmp_path: Path, encoder: Any) -> None:
    texts = ["red apple", "green pear", "blue plum"]
    with Index.create(tmp_path / "x.index", dimensions=encoder.dimensions) as index:
        index.add([Document(text, text) for text in texts], vectors=encoder.encode(texts))
    with Searcher(tmp_path / "x.index", encoder) as searcher:
        for mode in ("dense", "words", "hybrid"):
            assert searcher.search("pear", 1, mode=mode)[0].uri == "green pear"


def test_reasons_that_another_thread_has_made_meanwhile_are_taken() -> None:
    """The other thread puts the reasons in place of the function between two looks at it."""

    class Changing(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            value = super().__getitem__(name)
            if name == "_why" and callable(value):
                self[name] = {"cosine": 1.0}
            return value

    hit = Hit("a", "", "", 0, 0, 1.0, None, why=lambda: {"cosine": 1.0})  # type: ignore[arg-type]
    object.__setattr__(hit, "__dict__", Changing(vars(hit)))
    assert hit.why == {"cosine": 1.0}
