"""Seconds of a question by the size of the index: each mode, beside sentence-transformers and, if installed, txtai.

    python -m benchmarks.hybrid_speed [PASSAGES...]      default: 100 1000 10000 100000

Everything is in one process and includes encoding the question, in likewise with the compiled encoder that a Searcher
uses; the index has vectors of its own, so that no text is embedded. likewise reads ten hits from disk, while
sentence-transformers ranks an array in memory (`semantic_search`) and txtai's index holds vectors alone. Texts and
vectors are mixed from the first abstracts of SciFact in $LIKEWISE_EVAL_DATA: a text is two halves of abstracts, and a
vector lies between two of theirs. SciFact's own questions are asked; medians.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import scale, words_speed
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer import Document, Index, load_encoder
from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model
from search import Searcher

Ask = Callable[[str], object]
REAL = 300
"""Abstracts that are embedded."""
UNMEASURED, MEASURED = 20, 100
"""Numbers of questions. The first ones fill caches and are not measured."""


def seconds(ways: dict[str, Ask], questions: list[str]) -> dict[str, float]:
    """Return the median of each way. They take turns, question by question."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for question in questions:
        for way, ask in ways.items():
            begun = time.perf_counter()
            ask(question)
            times[way].append(time.perf_counter() - begun)
    return {way: statistics.median(taken[UNMEASURED:]) for way, taken in times.items()}


def main() -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import semantic_search

    sizes = [int(given) for given in sys.argv[1:]] or [100, 1000, 10_000, 100_000]
    folder = evaluation_data() / "scifact"
    corpus, queries = (map(json.loads, (folder / f"{name}.jsonl").open()) for name in ("corpus", "queries"))
    abstracts = [Document(row["_id"], row["text"]) for row in corpus][:REAL]
    questions = [row["text"] for row in queries][: UNMEASURED + MEASURED]
    real = load_encoder(DEFAULT_MODEL).encode([document.text for document in abstracts], truncate=True)
    documents = [document for document, _ in words_speed.mixed(abstracts)]
    compiled = load_encoder(DEFAULT_MODEL, runtime="openvino")  # It encodes the questions of a Searcher.
    plain = SentenceTransformer(str(find_model(DEFAULT_MODEL)), device="cpu")
    taken: dict[str, list[float]] = {}
    for size in sizes:
        vectors = np.concatenate(list(scale.mixed(real, size)))
        ways: dict[str, Ask] = {
            "sentence-transformers": lambda question, rows=vectors: semantic_search(
                plain.encode_query(question), rows, top_k=10
            )
        }
        if importlib.util.find_spec("txtai") is not None:
            from txtai import Embeddings  # type: ignore[import-not-found]  # installed for this benchmark alone

            encoder = Embeddings(path=str(find_model(DEFAULT_MODEL)))
            embeddings = Embeddings(transform=lambda texts, encoder=encoder: encoder.batchtransform(texts))
            embeddings.index((number, row, None) for number, row in enumerate(vectors))
            ways["txtai"] = partial(embeddings.search, limit=10)
        with tempfile.TemporaryDirectory() as temporary:
            with Index.create(Path(temporary) / "bench.index", dimensions=real.shape[1]) as index:
                index.add(documents[:size], vectors=vectors)
                index.compact()
            with Searcher(Path(temporary) / "bench.index") as searcher:
                ways["likewise, words"] = partial(searcher.search, k=10, mode="words")
                for mode in ("dense", "hybrid"):
                    ways[f"likewise, {mode}"] = lambda question, searcher=searcher, mode=mode: searcher.search(
                        question, 10, mode=mode, vector=compiled.encode([question], "query", truncate=True)[0]
                    )
                for way, median in seconds(ways, questions).items():
                    taken.setdefault(way, []).append(median)
    print(f"{machine()}\n\n| seconds | {' | '.join(f'{size:,}' for size in sizes)} |\n|{' --- |' * (len(sizes) + 1)}")
    for way, times in taken.items():
        print(f"| {way} | {' | '.join(f'{time:.4f}' for time in times)} |")


if __name__ == "__main__":
    main()
