"""Ways to merge the hits of several indexes, on every judged collection (BEIR form) below folders: nDCG@10.

`python -m benchmarks.several [FOLDER ...]`; the default is $LIKEWISE_EVAL_DATA/data. Collections with fewer than 200
documents, or without a judged question, are left out. Two arrangements: `split` deals the documents of a collection to
the indexes at random; `apart` puts each collection into an index of its own and asks the questions of all of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.fusion import reciprocal_rank_fusion
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, Index
from indexer.cache.cached_encoder import CachedEncoder
from indexer.cache.vector_cache import open_vector_cache
from indexer.encoders import Encoder, load_encoder
from search import Hits, Query, Searcher
from search.evaluation.measures import Qrels, evaluate, read_qrels, read_queries
from search.federation import answer_together
from search.query import Mode

MODEL = "all-MiniLM-L6-v2"
MOST_QUESTIONS = 100
"""Maximum questions of a collection."""

Questions = Mapping[str, str]
Judged = tuple[list[Document], Questions, Qrels]


@cache
def encoder_of(model: str) -> Encoder:
    """The encoder of a model, whose vectors are kept in the cache of `likewise index`."""
    encoder: Encoder = load_encoder(model)
    return CachedEncoder(encoder, cached, "auto") if (cached := open_vector_cache()) else encoder


def models(count: int) -> list[str]:
    """Models whose cosines have other backgrounds: transformer, static, and the transformer's raw layers."""
    potion = str(evaluation_data().parent / "models" / "potion-base-4m-fp32")
    return [[MODEL, potion, f"{MODEL}:mean@-2"][number % 3] for number in range(count)]


def read(collection: Path, prefix: str) -> Judged:
    """Return documents, judged questions and judgments; ids begin with the prefix."""
    rows = map(json.loads, (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    documents = [
        Document(prefix + row["_id"], row["text"], row.get("title", "")) for row in rows if row["text"].strip()
    ]
    queries, qrels = read_queries(collection / "queries.jsonl"), read_qrels(collection / "qrels" / "test.tsv")
    asked = [query for query in qrels.judged if query in queries][:MOST_QUESTIONS]
    judged = {prefix + query: {prefix + uri: grade for uri, grade in qrels.grades[query].items()} for query in asked}
    return documents, {prefix + query: queries[query] for query in asked}, Qrels(judged)


def by_rank(answers: Sequence[Hits]) -> list[tuple[str, float]]:
    places = {hit.uri: (hit, hits) for hits in answers for hit in hits}
    scores = reciprocal_rank_fusion([[hit.uri for hit in hits] for hits in answers])
    return [(uri, scores[uri]) for uri in places]


def by_cosine(answers: Sequence[Hits]) -> list[tuple[str, float]]:
    return [(hit.uri, hit.score) for hits in answers for hit in hits]


def ask(
    searchers: Sequence[Searcher], questions: Questions, mode: Mode
) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """Return the run of each way to merge."""
    named = {str(number): searcher for number, searcher in enumerate(searchers)}
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {}
    alone = [searcher.search_many(list(questions.values()), 10, mode=mode) for searcher in searchers]
    for number, (query, text) in enumerate(questions.items()):
        together = answer_together(named, Query(text, 10, mode=mode))
        ways = {"search_indexes": [(hit.uri, hit.score) for hit in together]}
        if len(searchers) > 1:
            answers = [hits[number] for hits in alone]
            ways |= {"rank": by_rank(answers), "score": by_cosine(answers)}
        for way, scored in ways.items():
            runs.setdefault(way, {})[query] = sorted(scored, key=lambda pair: -pair[1])[:10]
    return runs


def measure(parts: Sequence[Sequence[Document]], used: Sequence[str], judged: Judged, name: str) -> None:
    """Index each part with a model, and print a row per mode."""
    _, questions, qrels = judged
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        searchers = []
        for number, (documents, model) in enumerate(zip(parts, used, strict=True)):
            path = Path(folder) / f"{number}.index"
            with Index.create(path, model=encoder_of(model)) as index:
                index.add(documents)
            searchers.append(stack.enter_context(Searcher(path, encoder_of(model))))
        for mode in ("dense", "hybrid"):
            runs = ask(searchers, questions, mode)
            values = {way: evaluate(run, qrels, ["nDCG@10"]).averages["nDCG@10"] for way, run in runs.items()}
            cells = " | ".join(f"{way} {value:.4f}" for way, value in values.items())
            print(f"| {name} | {len(parts)} of {len(set(used))} | {mode} | {cells} |", flush=True)


def together(every: Sequence[Judged]) -> Judged:
    """Return all collections as one."""
    judged = {query: grades for _, _, qrels in every for query, grades in qrels.grades.items()}
    questions = {query: text for _, one, _ in every for query, text in one.items()}
    return [document for documents, _, _ in every for document in documents], questions, Qrels(judged)


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [evaluation_data(" and no folder was given")]
    paths = [path for folder in folders for path in collections(folder)]
    every = {
        path.name: judged for path in paths if len((judged := read(path, f"{path.name}:"))[0]) >= 200 and judged[1]
    }
    print(f"{machine()}\n")
    for name, judged in every.items():
        documents = judged[0]
        shuffled = [documents[row] for row in np.random.default_rng(5).permutation(len(documents))]
        measure([documents], [MODEL], judged, name)
        for count in (2, 5):
            parts = [shuffled[first::count] for first in range(count)]
            measure(parts, [MODEL] * count, judged, f"{name}, split")
            measure(parts, models(count), judged, f"{name}, split")
    joined = together(list(every.values()))
    measure([joined[0]], [MODEL], joined, "all")
    documents = [one for one, _, _ in every.values()]
    measure(documents, [MODEL] * len(documents), joined, "all, apart")
    measure(documents, models(len(documents)), joined, "all, apart")
    measure(documents, models(len(documents))[::-1], joined, "all, apart, other models")


if __name__ == "__main__":
    main()
