"""mteb: a task of its own kind over our engine, without a network, gives what our own search gives."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from word_encoder import WordEncoder

from indexer import BadInput, Document, Index
from likewise.evaluation.measures import Qrels, evaluate
from search import Mode, Searcher

CORPUS = [
    {"id": "dogs", "title": "", "text": "two dogs run through the snow"},
    {"id": "bank", "title": "Robbery", "text": "the bank robber was seen fishing on the river bank"},
    {"id": "stars", "title": "Stars", "text": ""},
    {"id": "nothing", "title": "", "text": " "},
]
QUERIES = [{"id": "q1", "text": "dogs in the snow"}, {"id": "q2", "text": "robber", "instruction": "river bank"}]
QRELS = {"q1": {"dogs": 1}, "q2": {"bank": 1, "stars": 1}}


@pytest.fixture(scope="module")
def tasks() -> ModuleType:
    pytest.importorskip("mteb", minversion="2.20")
    import mteb_task

    return mteb_task


@pytest.mark.slow
def test_a_task_of_mteb_runs_over_the_engine(register: Callable[..., None], tasks: ModuleType) -> None:
    encoder = WordEncoder()
    register(encoder)
    search = tasks.LikewiseSearch(encoder)
    assert isinstance(search, tasks.SearchProtocol)
    measured = tasks.scores(tasks.Task(CORPUS, QUERIES, QRELS), search)
    assert search.mteb_model_meta.name == "likewise/words-hybrid"
    # Both documents with words are first for their questions; "stars", whose title is its text, is second for none.
    assert measured["hit_rate_at_1"] == 1.0
    found = search.search(QUERIES, top_k=10)
    assert set(found["q1"]) == {"dogs", "bank", "stars"}
    search.close()
    with pytest.raises(BadInput, match="call index before search"):
        search.search(QUERIES, top_k=10)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["dense", "words", "hybrid"])
def test_scores_are_those_of_a_searcher_among_the_given_documents(
    mode: Mode, register: Callable[..., None], tasks: ModuleType
) -> None:
    encoder = WordEncoder()
    register(encoder)
    search = tasks.LikewiseSearch(encoder, mode=mode)
    search.index(CORPUS, task_metadata=None)
    found = search.search(QUERIES, top_k=2, top_ranked={"q1": ["bank", "dogs"], "q2": ["stars", "bank"]})
    with Index.temporary(encoder) as index:
        index.add([Document("dogs", CORPUS[0]["text"]), Document("bank", CORPUS[1]["text"], title="Robbery")])
        index.add([Document("stars", "Stars", title="Stars")])
        with Searcher(index.address) as searcher:
            hits = searcher.search("robber river bank", 2, mode=mode, where='uri in ("stars", "bank")')
    assert found["q2"] == {hit.uri: hit.score for hit in hits}
    assert "stars" not in found["q1"]
    search.close()


@pytest.mark.slow
def test_mteb_measures_the_same_ndcg_as_likewise_evaluate(register: Callable[..., None], tasks: ModuleType) -> None:
    encoder = WordEncoder()
    register(encoder)
    random = np.random.default_rng(11)
    words = [f"word{number}" for number in range(60)]
    corpus = [{"id": f"d{row}", "title": "", "text": " ".join(random.choice(words, 12))} for row in range(150)]
    queries = [{"id": f"q{row}", "text": " ".join(random.choice(words, 3))} for row in range(40)]
    grades = {
        query["id"]: {
            f"d{row}": int(grade) for row, grade in zip(random.permutation(150)[:30], [2, *[1] * 29], strict=True)
        }
        for query in queries
    }
    search = tasks.LikewiseSearch(encoder)
    measured = tasks.scores(tasks.Task(corpus, queries, grades), search)
    assert search._index is not None
    with Searcher(search._index.address) as searcher:
        answers = searcher.search_many([query["text"] for query in queries], 100, mode="hybrid")
    run = {query["id"]: [(hit.uri, hit.score) for hit in hits] for query, hits in zip(queries, answers, strict=True)}
    ours = evaluate(run, Qrels(grades), ["nDCG@10", "R@100"]).averages
    assert 0.1 < ours["nDCG@10"] < 0.9
    assert measured["ndcg_at_10"] == pytest.approx(ours["nDCG@10"], abs=1e-4)
    assert measured["recall_at_100"] == pytest.approx(ours["R@100"], abs=1e-4)
    search.close()


def test_a_question_that_is_a_conversation_is_refused(register: Callable[..., None], tasks: ModuleType) -> None:
    encoder = WordEncoder()
    register(encoder)
    search = tasks.LikewiseSearch(encoder)
    search.index(CORPUS)
    with pytest.raises(BadInput, match="question q is not a text but list"):
        search.search([{"id": "q", "text": ["hello"]}], top_k=1)
    search.close()
