"""The cost of hybrid over dense at 100,000 passages: whole searches, hits and their words included, without encoding.

    python -m benchmarks.hybrid_speed      with $LIKEWISE_EVAL_DATA set

Texts and vectors are mixed from SciFact: a text is two halves of abstracts, a vector lies between two of theirs.
SciFact's own questions are asked; their vectors are looked up, and not computed.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks import scale, words_speed
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer import Document, Index
from indexer.encoders import Recipe
from indexer.encoders.recipes.port import Role
from search import Mode, Searcher


class Known:
    """An encoder that knows its texts' vectors beforehand."""

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._rows = dict(zip(texts, vectors, strict=True))
        self.dimensions, self.max_tokens = vectors.shape[1], 256
        self.recipe = Recipe("known", "0" * 64, self.dimensions, self.max_tokens)

    def overhead(self, role: Role = "document") -> int:
        return 0

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [np.array([match.span() for match in re.finditer(r"\S+", text)], np.int32) for text in texts]

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> NDArray[np.float32]:
        return np.stack([self._rows[text] for text in texts])


def main() -> None:
    data = evaluation_data()
    folder = data / "scifact"
    questions = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    real, asked = scale.embeddings()
    encoder = Known(questions, asked)
    documents = [document for document, _ in words_speed.mixed([Document(row["_id"], row["text"]) for row in corpus])]
    with tempfile.TemporaryDirectory() as temporary:
        index = Index.create(Path(temporary) / "bench.index", encoder)
        start = 0
        for rows in scale.mixed(real, len(documents)):
            index.add(documents[start : start + len(rows)], vectors=rows)
            start += len(rows)
        index.compact()
        print(f"{machine()}\n\n| {len(documents):,} passages, 10 hits | ms, median |\n| --- | --- |")
        with Searcher(Path(temporary) / "bench.index", encoder) as searcher:
            for mode in get_args(Mode):
                times = []
                for question in [*questions[:20], *questions[-200:]]:
                    begun = time.perf_counter()
                    searcher.search(question, 10, mode=mode)
                    times.append(time.perf_counter() - begun)
                print(f"| {mode} | {1e3 * statistics.median(times[20:]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
