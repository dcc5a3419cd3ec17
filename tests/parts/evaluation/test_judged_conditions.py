"""Questions of the judged collections that look like conditions are asked as they stand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from indexer import Document, Index
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Query, Searcher
from search.query.conditions import read_conditions
from search.query.query import Mode


@pytest.fixture
def collection() -> Path:
    if "LIKEWISE_EVAL_DATA" not in os.environ:
        pytest.skip("LIKEWISE_EVAL_DATA is not set")
    return Path(os.environ["LIKEWISE_EVAL_DATA"]) / "data" / "xquad" / "en"


@pytest.mark.slow
def test_quotation_marks_and_hyphens_change_no_answer(
    collection: Path, tmp_path: Path, encoder: Any, likewise: Callable[..., Any]
) -> None:
    lines = (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    every = read_queries(collection / "queries.jsonl")
    asked = {id_: text for id_, text in every.items() if read_conditions(text)[1]}
    assert len(asked) >= 9
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in asked.items()))
    qrels = tmp_path / "qrels.tsv"
    judged = (collection / "qrels" / "test.tsv").read_text().splitlines()
    qrels.write_text("\n".join([judged[0], *(line for line in judged[1:] if line.split("\t")[0] in asked)]) + "\n")
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(Document(row["_id"], row["text"], row["title"]) for row in map(json.loads, lines))
    mode: Mode
    for mode in get_args(Mode):
        with Searcher(tmp_path / "x.index") as searcher:
            many = searcher.search_many(asked.values(), mode=mode)
            for text, hits in zip(asked.values(), many, strict=True):
                # The vector of the whole text, marks included, and all of its words.
                vector = None if mode == "words" else encoder.encode([text], role="query")[0]
                alone = searcher.answer(Query(text, 100, mode=mode, vector=vector))
                assert [hit.uri for hit in hits] == [hit.uri for hit in alone]
                np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in alone], atol=1e-6)
                assert hits.matched == alone.matched
                assert not any("conditions" in note for note in hits.notes)
            assert any(len(hits) > len(searcher.search(hits.query, 100, mode=mode, literal=False)) for hits in many)
        run = {id_: [(hit.uri, hit.score) for hit in hits] for id_, hits in zip(asked, many, strict=True)}
        expected = evaluate(run, read_qrels(qrels, read_queries(queries)), ["nDCG@10"]).averages["nDCG@10"]
        said = likewise(
            "evaluate", tmp_path / "x.index", "--queries", queries, "--qrels", qrels, "--mode", mode, "--json"
        ).succeeded()
        assert np.isclose(json.loads(said.out)["averages"]["nDCG@10"], expected, atol=1e-4)
