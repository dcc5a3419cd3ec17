"""The effect of the language of an index: one collection per language, and all of them mixed in one index.

`python -m benchmarks.languages [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data/xquad. Each folder below it is a
judged collection (BEIR form) named after its language. The first table compares `--language en` with `auto` through the
shell; the second compares languages for a mixed index, by words alone.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE, collections
from indexer import Document, Index
from indexer.errors import NoWords
from indexer.languages.detect import languages_of
from likewise.evaluation.measures import evaluate, read_qrels, read_queries
from search import Searcher

METRIC = "nDCG@10"


@dataclass(frozen=True)
class Measured:
    """An index made by the shell: the language it searches words in, and the metric by mode."""

    language: str
    words: float
    hybrid: float


def alone(collection: Path, language: str) -> Measured:
    """Index one collection and ask it its questions."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "bench.index"
        command = [LIKEWISE, "index", str(index), str(collection / "corpus.jsonl"), "--language", language]
        subprocess.run(command, check=True, capture_output=True)
        with Searcher(index) as searcher:
            words, hybrid = (_asked(searcher, collection, mode) for mode in ("words", "hybrid"))
            return Measured(searcher.language, words, hybrid)


def documents(collection: Path, prefix: str = "") -> list[Document]:
    rows = [json.loads(line) for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    return [Document(prefix + row["_id"], row["text"], row.get("title", "")) for row in rows]


def mixed(folders: list[Path], language: str) -> tuple[str, list[float]]:
    """Return the language of an index of all collections, and the metric of each by words."""
    with tempfile.TemporaryDirectory() as folder:
        with Index.create(Path(folder) / "bench.index", dimensions=2, language=language) as index:
            together = [document for path in folders for document in documents(path, f"{path.name}-")]
            random.Random(0).shuffle(together)
            index.add(together, vectors=np.ones((len(together), 2), np.float32))
            chosen = index.settings.language
        with Searcher(Path(folder) / "bench.index") as searcher:
            return chosen, [_asked(searcher, path, "words") for path in folders]


def _asked(searcher: Searcher, collection: Path, mode: Literal["words", "hybrid"]) -> float:
    """Return the metric of the collection's questions. Only its own documents can be right in a mixed index."""
    queries = read_queries(collection / "queries.jsonl")
    judgments = read_qrels(collection / "qrels" / "test.tsv", queries)
    run: dict[str, list[tuple[str, float]]] = {}
    for query in judgments.judged:
        try:
            hits = searcher.search(queries[query], 10, mode=mode)
        except NoWords:
            run[query] = []
            continue
        run[query] = [(hit.uri.removeprefix(f"{collection.name}-"), hit.score) for hit in hits]
    return evaluate(run, judgments).averages[METRIC]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else evaluation_data(" and no folder was given") / "xquad"
    folders = collections(folder)
    print(f"{machine()}\n\n{METRIC}\n")
    print("| texts | words, en | words, auto | hybrid, en | hybrid, auto | finding the language |\n|" + " --- |" * 6)
    for path in folders:
        texts = [document.text for document in documents(path)]
        start = time.perf_counter()
        languages_of(texts)
        seconds = time.perf_counter() - start
        after = alone(path, "auto")
        before = after if after.language == "en" else alone(path, "en")
        cells = [before.words, after.words, before.hybrid, after.hybrid]
        print(f"| {path.name} | {' | '.join(f'{cell:.4f}' for cell in cells)} | {seconds:.2f} s |", flush=True)
    names = [path.name for path in folders]
    print(f"\n| one index of {', '.join(names)}, by words | {' | '.join(names)} |\n|" + " --- |" * (len(names) + 1))
    for language in ("en", "de", "ar", "none", "auto"):
        chosen, values = mixed(folders, language)
        label = language if chosen == language else f"{language} ({chosen})"
        print(f"| {label} | {' | '.join(f'{value:.4f}' for value in values)} |", flush=True)


if __name__ == "__main__":
    main()
