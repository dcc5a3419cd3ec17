"""Search quality on every judged collection (BEIR form) below a folder, indexed and evaluated through the shell.

`python -m benchmarks.quality [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data. all-MiniLM-L6-v2, no tuning.
The last column is the encoder alone on texts cut at its limit, the way published figures are made.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import folder_asked
from benchmarks.machine import machine
from indexer.encoders.machine.hardware import Precision
from indexer.encoders.recipes.locate import DEFAULT_MODEL
from indexer.records import Vector
from likewise.evaluation.measures import evaluate, read_qrels, read_queries

LIKEWISE = str(Path(sys.executable).with_name("likewise"))


def collections(folder: Path) -> list[Path]:
    """Return the judged collections below a folder. Where there is none, end the program with a message."""
    judged = [
        path.parent for path in sorted(folder.rglob("corpus.jsonl")) if (path.parent / "qrels" / "test.tsv").exists()
    ]
    if not judged:
        sys.exit(f"{folder}: has no judged collection, which is a folder with corpus.jsonl and qrels/test.tsv")
    return judged


def indexed(collection: Path, modes: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Averages by mode."""
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder) / "bench.index")
        command = [LIKEWISE, "index", index, str(collection / "corpus.jsonl"), "--model", DEFAULT_MODEL]
        subprocess.run(command, check=True, capture_output=True)
        files = ["--queries", str(collection / "queries.jsonl"), "--qrels", str(collection / "qrels" / "test.tsv")]
        found = {}
        for mode in modes:
            command = [LIKEWISE, "evaluate", index, *files, "--mode", mode, "--json"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[mode] = json.loads(done.stdout)["averages"]
        return found


def encoder_alone(collection: Path, precision: Precision = "auto") -> tuple[float, Vector]:
    """nDCG@10 of one vector a document, title and text cut at the model's limit; and the vectors."""
    from indexer import load_encoder

    encoder = load_encoder(DEFAULT_MODEL, precision=precision)
    rows = [json.loads(line) for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [f"{row.get('title', '')} {row['text']}".strip() for row in rows]
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
    asked = list(qrels.judged)
    questions = load_encoder(DEFAULT_MODEL).encode([queries[query] for query in asked], "query", truncate=True)
    vectors = encoder.encode(texts, truncate=True)
    scores = questions @ vectors.T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :100]
    run = {
        query: [(rows[at]["_id"], float(scores[number, at])) for at in best[number]]
        for number, query in enumerate(asked)
    }
    return evaluate(run, qrels).averages["nDCG@10"], vectors


def main() -> None:
    folder = folder_asked()
    print(f"{machine()}\n")
    print("nDCG@10; alone is the encoder on texts cut at its limit.\n")
    print("| collection | words | dense | hybrid | alone |\n|" + " --- |" * 5)
    for collection in collections(folder):
        found = indexed(collection, ("words", "dense", "hybrid"))
        values = [*(averages["nDCG@10"] for averages in found.values()), encoder_alone(collection)[0]]
        print(f"| {collection.relative_to(folder)} | {' | '.join(f'{value:.4f}' for value in values)} |", flush=True)


if __name__ == "__main__":
    main()
