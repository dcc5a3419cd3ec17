"""Our hybrid mode beside mteb's hybrid baselines over the same legs, on every judged collection: nDCG@10.

`python -m benchmarks.mteb_hybrid [FOLDER ...]`; the default is $LIKEWISE_EVAL_DATA/data. The legs are the modes words
and dense of one index, through our adapter for mteb. mteb joins their 100 best documents by RRF (reciprocal rank
fusion), DBSF (distribution-based score fusion) and RSF (relative score fusion), each with equal weights. Vectors are
kept in the cache of `likewise index`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import get_args

import numpy as np
from mteb.models.hybrid_wrappers import HybridSearch

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Encoder, load_encoder
from likewise.adapters.mteb import LikewiseSearch
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.vector_cache import open_vector_cache
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Mode

STRATEGIES = ("rrf", "dbsf", "rsf")
COLUMNS = (*get_args(Mode), *(strategy.upper() for strategy in STRATEGIES))


def measured(collection: Path, encoder: Encoder) -> dict[str, float]:
    """Return nDCG@10 by mode of ours and by strategy of mteb."""
    rows = map(json.loads, (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    texts = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv", texts)
    queries = [{"id": query, "text": texts[query]} for query in qrels.judged]
    engine = LikewiseSearch(encoder, language="auto")
    engine.index({**row, "id": row["_id"]} for row in rows)
    runs = {}
    for mode in get_args(Mode):
        engine.mode = mode
        runs[mode] = engine.search(queries, top_k=100)
    engine.close()
    for strategy in STRATEGIES:
        joined = HybridSearch([engine, engine], fusion_strategy=strategy)
        legs = runs["words"], runs["dense"]
        runs[strategy.upper()] = {query: dict(joined.fuse([leg[query] for leg in legs])) for query in qrels.judged}
    ranked = {
        name: {query: sorted(scores.items(), key=lambda item: -item[1]) for query, scores in run.items()}
        for name, run in runs.items()
    }
    return {name: evaluate(run, qrels, ["nDCG@10"]).averages["nDCG@10"] for name, run in ranked.items()}


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [evaluation_data(" and no folder was given")]
    encoder: Encoder = load_encoder("all-MiniLM-L6-v2")
    if cache := open_vector_cache():
        encoder = CachedEncoder(encoder, cache, "auto")
    print(f"{machine()}\n\n| collection | {' | '.join(COLUMNS)} |\n| --- {'| --- ' * len(COLUMNS)}|")
    rows = []
    for folder in folders:
        for path in collections(folder):
            values = measured(path, encoder)
            rows.append([values[column] for column in COLUMNS])
            cells = " | ".join(f"{value:.4f}" for value in rows[-1])
            print(f"| {path.relative_to(folder)} | {cells} |", flush=True)
    table = np.array(rows)
    better = table[:, [COLUMNS.index("words"), COLUMNS.index("dense")]].max(axis=1, keepdims=True)
    for name, line in (("mean", table.mean(axis=0)), ("worst, to the better leg", (table / better).min(axis=0))):
        print(f"| {name} | {' | '.join(f'{value:.4f}' for value in line)} |")


if __name__ == "__main__":
    main()
