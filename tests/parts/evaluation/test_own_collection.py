"""How well the sample collection's questions are answered, with everything from files to hits in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from opened import store_of

from indexer import Index
from indexer.indexing.ingest import Run
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Searcher

DATA = Path(__file__).parents[3] / "data"
FLOOR = 0.80


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    options = ReadOptions()
    index = Index.create(tmp_path_factory.mktemp("own") / "own.index")
    with store_of(index).writer() as writer:
        summary = Run(index._core, writer, options).feed(open_sources([str(DATA / "collection")], options, holds_store))
    assert (summary.indexed, summary.failed, summary.skipped) == (len(index), 0, 0)
    return index


@pytest.mark.slow
def test_ndcg_is_above_its_floor(index: Index) -> None:
    texts = read_queries(DATA / "questions" / "queries.jsonl")
    qrels = read_qrels(DATA / "questions" / "qrels.tsv", texts)
    with Searcher(Path(store_of(index).address)) as searcher:
        found = searcher.search_many([texts[query] for query in qrels.judged], 10)
    collection = f"{DATA / 'collection'}/"
    run = {
        query: [(hit.uri.removeprefix(collection), hit.score) for hit in hits]
        for query, hits in zip(qrels.judged, found, strict=True)
    }
    known = {document.uri.removeprefix(collection) for document in index}
    assert {uri for grades in qrels.grades.values() for uri in grades} <= known
    assert [hits for hits in found if not (hits.exact and len(hits) == 10)] == []
    assert evaluate(run, qrels, ["nDCG@10"]).averages["nDCG@10"] >= FLOOR


@pytest.mark.slow
def test_stored_vectors_differ_little_from_the_encoders(index: Index) -> None:
    questions = ["how do I keep bread from going stale", "why is the sea higher twice a day"]
    rows = index.encoder.encode(questions, role="query")
    with Searcher(Path(store_of(index).address)) as searcher:
        for question, row in zip(questions, rows, strict=True):
            for hit in searcher.search(question, 20, passages=True):
                document = index.get(hit.uri)
                prefix = hit.heading or document.title
                text = f"{prefix} {document.text[hit.start : hit.end]}" if prefix else hit.text
                (own,) = index.encoder.encode([text])
                # 16 bits of the vector, and bfloat16 weights, whose result depends a little on the batch.
                assert abs(float(own @ row) - hit.score) < 5e-3
