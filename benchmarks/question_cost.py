"""The CPU time of one question, divided into its steps, and the questions per second of several threads.

    python -m benchmarks.question_cost [PASSAGES...]      default: 5000 100000; with $LIKEWISE_EVAL_DATA set

Texts and vectors are mixed from SciFact, as in benchmarks.hybrid_speed; SciFact's own questions are asked, and the
compiled default encoder embeds them. CPU time is that of all threads of the process, so other programs on the machine
change it less than they change the time that passes. Medians of rounds. Indexes are kept in the temporary folder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks import scale, words_speed
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer import Document, Index
from indexer.encoders import get_query_encoder
from indexer.stores.addresses.open import open_store
from indexer.stores.reading.snapshot import Snapshot
from search import Searcher
from search.query.query import Mode
from search.ranking.fusion import CANDIDATES

QUESTIONS = 200
ROUNDS = 3
THREADS = 1, 2, 8, 32
EMBEDDED = 200
"""Documents that the model embeds when an index is made, so that cosines are calibrated as in every real index."""


def index_folder(passages: int) -> Path:
    """Return the folder of an index of this many passages, which is made at the first call."""
    folder = scale.CACHE / f"question-cost-{passages}.index"
    if not folder.exists():
        # In a process of its own, because one that has loaded torch embeds its questions with torch.
        subprocess.run([sys.executable, "-m", "benchmarks.question_cost", "--make", str(passages)], check=True)
    return folder


def make_index(passages: int) -> None:
    corpus = (evaluation_data() / "scifact" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [Document(str(row["_id"]), row["text"]) for row in map(json.loads, corpus)]
    documents = [replace(document, path=f"{document.uri}.txt") for document, _ in words_speed.mixed(texts)[:passages]]
    real, _ = scale.embeddings()
    draft, folder = scale.CACHE / "draft.index", scale.CACHE / f"question-cost-{passages}.index"
    shutil.rmtree(draft, ignore_errors=True)
    index = Index.create(draft, "all-MiniLM-L6-v2")
    index.add(documents[:EMBEDDED])
    start = EMBEDDED
    for rows in scale.mixed(real, passages - EMBEDDED):
        index.add(documents[start : start + len(rows)], vectors=rows)
        start += len(rows)
    index.compile()
    index.compact()
    index.close()
    draft.rename(folder)


def questions() -> list[str]:
    lines = (evaluation_data() / "scifact" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines[-QUESTIONS:]]


def cost(ask: Callable[[int], object], count: int = QUESTIONS) -> tuple[float, float]:
    """Return the milliseconds of CPU and of wall time for one question: medians of rounds, after one round."""
    cpu, wall = [], []
    for _ in range(ROUNDS + 1):
        started, begun = time.process_time(), time.perf_counter()
        for number in range(count):
            ask(number)
        cpu.append((time.process_time() - started) / count * 1e3)
        wall.append((time.perf_counter() - begun) / count * 1e3)
    return median(cpu[1:]), median(wall[1:])


def rate(ask: Callable[[], object]) -> tuple[float, float]:
    """Return questions per second, and the milliseconds of CPU for each: medians of rounds, after one round."""
    cpu, wall = [], []
    for _ in range(ROUNDS + 1):
        started, begun = time.process_time(), time.perf_counter()
        ask()
        cpu.append((time.process_time() - started) / QUESTIONS * 1e3)
        wall.append(QUESTIONS / (time.perf_counter() - begun))
    return median(wall[1:]), median(cpu[1:])


def measure(passages: int, asked: Sequence[str]) -> None:
    folder = index_folder(passages)
    print(f"\n### {passages:,} passages, ten hits\n", flush=True)
    store, searcher = open_store(folder), Searcher(folder)
    with store.snapshot() as snapshot:
        encoder, _ = get_query_encoder(snapshot.settings.recipe, store.artifacts(), lambda: None)  # type: ignore[arg-type]
        kinds = ", ".join(str(segment["kind"]) for segment in snapshot.info().segments)
    vectors = encoder.encode(list(asked), role="query")

    def encode(number: int) -> NDArray[np.float32]:
        return encoder.encode([asked[number]], role="query", truncate=True)

    def open_snapshot(_: int) -> None:
        with store.snapshot():
            pass

    def rank(mode: Mode, snapshot: Snapshot, number: int) -> object:
        if mode == "words":
            return snapshot.words(asked[number], 10)
        if mode == "dense":
            return snapshot.dense(vectors[number], 10)
        return snapshot.candidates(vectors[number], asked[number], CANDIDATES, None, "document", exact=False)

    print(f"| segments: {kinds}; milliseconds | CPU of ranking | of the rest, without encoding | of all | wall, all |")
    print("| --- | --- | --- | --- | --- |")
    cpu, wall = cost(encode)
    print(f"| encoding alone | | | {cpu:.2f} | {wall:.2f} |")
    cpu, wall = cost(open_snapshot)
    print(f"| a snapshot alone | | | {cpu:.2f} | {wall:.2f} |", flush=True)
    for mode in get_args(Mode):
        with store.snapshot() as snapshot:
            ranking, _ = cost(lambda number: rank(mode, snapshot, number))  # noqa: B023
        given = None if mode == "words" else vectors
        unembedded, _ = cost(
            lambda number: searcher.search(asked[number], mode=mode, vector=None if given is None else given[number])  # noqa: B023
        )
        cpu, wall = cost(lambda number: searcher.search(asked[number], mode=mode))  # noqa: B023
        print(f"| {mode} | {ranking:.2f} | {unembedded - ranking:.2f} | {cpu:.2f} | {wall:.2f} |", flush=True)

    print("\n| questions per second, and ms of CPU for each | dense | words | hybrid |\n| --- | --- | --- | --- |")
    batches = [list(asked[start : start + 32]) for start in range(0, QUESTIONS, 32)]
    alone = rate(lambda: [encoder.encode(batch, role="query", truncate=True) for batch in batches])
    rows = {f"{threads} thread{'s' * (threads > 1)}": threads for threads in THREADS}
    print(f"| the encoder alone, in batches of 32 | {_cell(alone)} | | {_cell(alone)} |", flush=True)
    for name, threads in {"one after the other": 0, **rows}.items():
        cells = [_cell(_asked_by(searcher, mode, asked, threads)) for mode in get_args(Mode)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    searcher.close()
    store.close()


def _asked_by(searcher: Searcher, mode: Mode, asked: Sequence[str], threads: int) -> tuple[float, float]:
    """Return the rate of this many threads; 0 asks in the calling thread."""
    if not threads:
        return rate(lambda: [searcher.search(question, mode=mode) for question in asked])
    with ThreadPoolExecutor(threads) as pool:
        return rate(lambda: list(pool.map(lambda question: searcher.search(question, mode=mode), asked)))


def _cell(measured: tuple[float, float]) -> str:
    return f"{measured[0]:.0f}, {measured[1]:.2f} ms"


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        make_index(int(sys.argv[2]))
        return
    print(machine())
    asked = questions()
    for passages in [int(given) for given in sys.argv[1:]] or [5_000, 100_000]:
        measure(passages, asked)


if __name__ == "__main__":
    main()
