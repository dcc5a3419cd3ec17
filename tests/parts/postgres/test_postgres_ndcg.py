"""The same collection in a folder and in PostgreSQL: nDCG@10 of every mode is equal in every digit.

With the small model of the evaluation data. `LIKEWISE_TEST_MODEL=all-MiniLM-L6-v2 pytest -m "slow or long" -s` with
this file takes another one, and prints the figures.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from opened import store_of
from postgres_server import new_address, remove_index

from indexer import Document, Index
from indexer.stores.addresses.copying import copy_into
from indexer.stores.addresses.open import create_store
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Searcher

MODES = ("words", "dense", "hybrid")
COLLECTIONS = ("legal-summarization", "medquad-liveqa", "scifact", "xquad/ar", "xquad/de", "xquad/en", "xquad/zh")
SLOW = ("scifact",)
"""Those of the slow suite. All others are long, also the other scripts."""


def ndcg(address: Any, collection: Path, mode: Any) -> float:
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
    run = {}
    with Searcher(address) as searcher:
        for query in qrels.judged:
            hits = searcher.search(queries[query], 10, mode=mode)
            run[query] = [(hit.uri, -float(place)) for place, hit in enumerate(hits)]
    return evaluate(run, qrels, ["nDCG@10"]).averages["nDCG@10"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else pytest.mark.long) for name in COLLECTIONS]
)
def test_every_mode_ranks_as_in_a_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "LIKEWISE_EVAL_DATA" not in os.environ:
        pytest.skip("LIKEWISE_EVAL_DATA is not set")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shared = Path(os.environ["LIKEWISE_EVAL_DATA"])
    model = os.environ.get("LIKEWISE_TEST_MODEL") or str(shared / "models" / "potion-base-4m-fp32")
    collection = shared / "data" / name
    rows = [json.loads(line) for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    address = new_address()
    with Index.create(tmp_path / "folder.index", model=model) as folder:
        folder.add([Document(str(row["_id"]), row["text"], row.get("title") or "") for row in rows])
        source: Any = store_of(folder)
        with source.snapshot() as snapshot:
            settings = snapshot.settings
        target: Any = create_store(address, settings)
        copy_into(source, target)
    found = {
        mode: (ndcg(tmp_path / "folder.index", collection, mode), ndcg(address, collection, mode)) for mode in MODES
    }
    print(name, found)  # noqa: T201
    for mode, (of_folder, of_database) in found.items():
        assert of_database == of_folder, mode
    assert found["words"][0] > 0.3 < found["hybrid"][0]  # few models read every language
    remove_index(target.engine)
    target.close()
