"""Answers of likewise as it is installed, beside sentence-transformers and txtai, in one run: nDCG@10.

    python -m pip install txtai
    python -m benchmarks.peers [FOLDER...]      default: $LIKEWISE_EVAL_DATA/data/xquad

Each folder holds judged collections. likewise chooses its model by the texts. The others have all-MiniLM-L6-v2, which
their first examples take, and txtai also multilingual-e5-small; with the same model, sentence-transformers ranks as
likewise does in mode dense (benchmarks.languages). All read title and text. sentence-transformers ranks by cosine
(`semantic_search`), txtai by words too (`Embeddings(hybrid=True)`).
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, Index
from indexer.encoders.recipes.locate import DEFAULT_MODEL, MULTILINGUAL_MODEL, find_model
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Mode, Searcher

DEPTH = 10
MODES: tuple[Mode, ...] = ("words", "dense", "hybrid")

Rows = list[dict[str, str]]
Ask = Callable[[list[str]], list[list[tuple[str, float]]]]
"""Answers each question with ids and scores."""


def _likewise(rows: Rows, folder: Path) -> list[Ask]:
    """Return a way to ask in each mode."""
    with Index.create(folder, model="auto") as index:
        index.add([Document(row["_id"], row["text"], row.get("title", "")) for row in rows])
        index.compact()
    searcher = Searcher(folder)
    return [lambda questions, mode=mode: _in_mode(searcher, questions, mode) for mode in MODES]  # type: ignore[misc]


def _in_mode(searcher: Searcher, questions: list[str], mode: Mode) -> list[list[tuple[str, float]]]:
    return [[(hit.uri, hit.score) for hit in hits] for hits in searcher.search_many(questions, DEPTH, mode=mode)]


def _sentence_transformers(rows: Rows, model: str) -> Ask:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import semantic_search

    encoder = SentenceTransformer(str(find_model(model)), device="cpu")
    vectors = encoder.encode_document([_text(row) for row in rows])

    def ask(questions: list[str]) -> list[list[tuple[str, float]]]:
        answers = semantic_search(encoder.encode_query(questions), vectors, top_k=DEPTH)
        return [[(rows[hit["corpus_id"]]["_id"], hit["score"]) for hit in hits] for hits in answers]

    return ask


def _txtai(rows: Rows, model: str) -> Ask:
    from txtai import Embeddings  # type: ignore[import-not-found]  # installed for this benchmark alone

    embeddings = Embeddings(path=str(find_model(model)), hybrid=True)
    embeddings.index((row["_id"], _text(row), None) for row in rows)
    return partial(embeddings.batchsearch, limit=DEPTH)


def _text(row: dict[str, str]) -> str:
    return f"{row.get('title', '')} {row['text']}".strip()


def measured(ways: Sequence[Ask], collection: Path) -> list[float]:
    """Return nDCG@10 of each way to ask a collection's questions."""
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
    runs = [dict(zip(qrels.judged, ask([queries[query] for query in qrels.judged]), strict=True)) for ask in ways]
    return [evaluate(run, qrels).averages["nDCG@10"] for run in runs]


def main() -> None:
    if importlib.util.find_spec("txtai") is None:
        print("this needs txtai: nothing measured")
        return
    folders = [Path(name) for name in sys.argv[1:]] or [evaluation_data(" and no folder was given") / "xquad"]
    others = {
        f"sentence-transformers, {DEFAULT_MODEL}": partial(_sentence_transformers, model=DEFAULT_MODEL),
        f"txtai, {DEFAULT_MODEL}": partial(_txtai, model=DEFAULT_MODEL),
        f"txtai, {MULTILINGUAL_MODEL}": partial(_txtai, model=MULTILINGUAL_MODEL),
    }
    names = [*(f"likewise, {mode}" for mode in MODES), *others]
    print(f"{machine()}\n\n| nDCG@10 | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for collection in (path for folder in folders for path in collections(folder)):
        rows = [json.loads(line) for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
        with tempfile.TemporaryDirectory() as place:
            values = measured(_likewise(rows, Path(place) / "bench.index"), collection)
        for build in others.values():
            values += measured([build(rows)], collection)
        print(f"| {collection.name} | {' | '.join(f'{value:.4f}' for value in values)} |", flush=True)


if __name__ == "__main__":
    main()
