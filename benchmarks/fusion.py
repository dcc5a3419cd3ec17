"""Ways to join words and meaning, on every judged collection (BEIR form) below a folder: nDCG@10.

`python -m benchmarks.fusion [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data. Words are BM25 over whole documents
with the engine's own terms, dense the best passage; both are exact, so that the table is about fusion alone. Nothing is
learnt from the judgments of the collection.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import folder_asked
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, Index, load_encoder
from indexer.calibration.bm25 import Bm25
from indexer.calibration.probe import SAMPLE_PASSAGES, probe
from indexer.encoders import Encoder
from indexer.records import Vector
from indexer.settings import Probed
from indexer.stores.analysis import Analysis
from indexer.stores.local.candidates import best_passages
from indexer.stores.open import open_store
from indexer.stores.port import Store
from search.evaluation.measures import evaluate, read_qrels, read_queries
from search.fusion import CANDIDATES, CosineStatistics, Scores, fuse, mean_with_best, probed_words_bias, words_weight

WAYS = ("words", "dense", "RRF, k = 60", "min-max .7", "hybrid")


def reciprocal_rank_fusion(rankings: Sequence[Sequence[int]], k: int = 60) -> dict[int, float]:
    """Return the sum of 1 / (k + rank) of each id over the rankings that hold it (Cormack, Clarke, Büttcher 2009)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (k + rank)
    return scores


def min_max(scores: NDArray[np.floating]) -> Scores:
    """Return scores shifted and scaled to 0..1; all 0 where they are equal."""
    values = scores.astype(np.float64)
    span = np.ptp(values) if values.size else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)


def score_by_each_way(cosines: Vector, words: Scores, z_scores: Scores, terms: int, words_bias: float) -> list[Scores]:
    """Return the scores of one question's candidates (candidates,) by each of WAYS."""
    ranks = [np.argsort(-scores, kind="stable").tolist() for scores in (cosines, words)]
    reciprocal = reciprocal_rank_fusion(ranks)
    return [
        words,
        cosines.astype(np.float64),
        np.array([reciprocal[row] for row in range(len(words))]),
        0.7 * min_max(cosines) + 0.3 * min_max(words),
        fuse(z_scores, words, words_weight(z_scores, words, terms, words_bias)).scores,
    ]


def _indexed(collection: Path, folder: Path, encoder: Encoder) -> Store:
    rows = map(json.loads, (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    documents = [Document(uri=row["_id"], text=row["text"], title=row.get("title", "")) for row in rows]
    with Index.create(folder, model=encoder) as index:
        index.add([document for document in documents if document.text.strip()])
    return open_store(folder)


def measured(collection: Path) -> tuple[Mapping[str, float], Probed]:
    """nDCG@10 by way of joining, and what the pseudo-questions said."""
    encoder = load_encoder("all-MiniLM-L6-v2")
    analysis = Analysis()
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv")
    asked = [query for query in qrels.judged if query in queries]
    with tempfile.TemporaryDirectory() as folder:
        store = _indexed(collection, Path(folder) / "bench.index", encoder)
        stored = list(store.export())
        with store.snapshot() as snapshot:
            drawn = snapshot.sample(SAMPLE_PASSAGES)
            passages_drawn = snapshot.passages_by_id(drawn.passages.tolist())
        sample = drawn.vectors
        probed = probe(passages_drawn, sample, encoder, analysis.stems)
        store.close()
    statistics = CosineStatistics.from_sample(sample)
    bm25 = Bm25([analysis.stems(f"{item.document.title} {item.document.text}") for item in stored])
    vectors = np.concatenate([item.vectors for item in stored if item.vectors is not None])
    owner = np.repeat(np.arange(len(stored)), [len(item.spans or ()) for item in stored])
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {way: {} for way in WAYS}
    questions = encoder.encode([queries[query] for query in asked], role="query", truncate=True)
    for query, question in zip(asked, questions, strict=True):
        asked_terms = analysis.terms(queries[query])
        words, passages = bm25.scores(asked_terms), vectors @ question
        best = np.full(len(stored), -1.0, np.float32)
        np.maximum.at(best, owner, passages)
        union = np.union1d(*(np.argsort(-leg, kind="stable")[:CANDIDATES] for leg in (best, words)))
        held = np.isin(owner, union)
        _, _, nearest, means = best_passages(np.flatnonzero(held), owner[held], passages[held])
        z_scores = statistics.z_scores(question, mean_with_best(nearest, means))
        bias = probed_words_bias(probed)
        ways = score_by_each_way(best[union], words[union], z_scores, len(asked_terms), bias)
        for way, scores in zip(WAYS, ways, strict=True):
            order = np.argsort(-scores, kind="stable")[:100]
            runs[way][query] = [(stored[union[at]].document.uri, float(scores[at])) for at in order]
    return {way: evaluate(run, qrels, ["nDCG@10"]).averages["nDCG@10"] for way, run in runs.items()}, probed


def main() -> None:
    folder = folder_asked()
    print(f"{machine()}\n\n| collection | {' | '.join(WAYS)} | to the better leg | words, dense on pseudo-questions |")
    print("| --- " * (len(WAYS) + 3) + "|")
    rows = []
    for collection in collections(folder):
        values, probed = measured(collection)
        rows.append([values[way] for way in WAYS])
        cells = " | ".join(f"{value:.4f}" for value in rows[-1])
        ratio = values["hybrid"] / max(values["words"], values["dense"])
        name = collection.relative_to(folder)
        print(f"| {name} | {cells} | {ratio:.3f} | {probed.words:.2f}, {probed.dense:.2f} |", flush=True)
    table = np.array(rows)
    ratios = table / table[:, :2].max(axis=1, keepdims=True)
    print(f"| mean | {' | '.join(f'{value:.4f}' for value in table.mean(axis=0))} | | |")
    print(f"| worst, to the better leg | {' | '.join(f'{value:.3f}' for value in ratios.min(axis=0))} | | |")


if __name__ == "__main__":
    main()
