"""likewise's hybrid search beside txtai's, with the same model on the same collections, in one run.

    python -m pip install txtai
    python -m benchmarks.peers [FOLDER]      default: $LIKEWISE_EVAL_DATA/data

Both as a user would set them up: txtai's `Embeddings(hybrid=True)` over title and text, likewise's `--mode hybrid`.
Documents indexed a second, loading the model included, and the median of a question's answer; in one process, likewise
first.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.data import folder_asked
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, Index
from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Searcher

DEPTH = 10

Ask = Callable[[str], list[tuple[str, float]]]


def _txtai(rows: list[dict[str, str]]) -> Ask:
    from txtai import Embeddings  # type: ignore[import-not-found]  # installed for this benchmark alone

    embeddings = Embeddings(path=str(find_model(DEFAULT_MODEL)), hybrid=True)
    embeddings.index((row["_id"], _text(row), None) for row in rows)
    return lambda question: embeddings.search(question, DEPTH)  # type: ignore[no-any-return]


def _likewise(rows: list[dict[str, str]], folder: Path) -> Ask:
    with Index.create(folder) as index:
        index.add([Document(row["_id"], row["text"], row.get("title", "")) for row in rows])
        index.compact()
    searcher = Searcher(folder)
    return lambda question: [(hit.uri, hit.score) for hit in searcher.search(question, DEPTH, mode="hybrid")]


def _text(row: dict[str, str]) -> str:
    return f"{row.get('title', '')} {row['text']}".strip()


def measured(build: Callable[[], Ask], documents: int, collection: Path) -> str:
    """nDCG@10, documents a second, and milliseconds a question, as cells of a table."""
    begun = time.perf_counter()
    ask = build()
    spent = time.perf_counter() - begun
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
    run, times = {}, []
    for query in qrels.judged:
        begun = time.perf_counter()
        run[query] = ask(queries[query])
        times.append(time.perf_counter() - begun)
    ndcg = evaluate(run, qrels).averages["nDCG@10"]
    return f"{ndcg:.4f} | {documents / spent:.0f} | {statistics.median(times) * 1e3:.1f} ms"


def main() -> None:
    if importlib.util.find_spec("txtai") is None:
        print("this needs txtai: nothing measured")
        return
    folder = folder_asked()
    print(f"{machine()}; txtai {importlib.metadata.version('txtai')}\n")
    print("| collection | | nDCG@10 | documents/s | a question |\n|" + " --- |" * 5)
    for collection in collections(folder):
        rows = [json.loads(line) for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
        name = collection.relative_to(folder)
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "bench.index"
            cells = measured(partial(_likewise, rows, path), len(rows), collection)
            print(f"| {name} | likewise | {cells} |", flush=True)
        print(f"| {name} | txtai | {measured(partial(_txtai, rows), len(rows), collection)} |", flush=True)


if __name__ == "__main__":
    main()
