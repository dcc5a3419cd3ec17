"""How many documents a second one run feeds to its workers and commits, and what a worker process costs.

    python -m benchmarks.workers driver [PASSAGES]        default: 6000 passages in each run
    python -m benchmarks.workers memory [DOCUMENTS]       default: 200000 documents of one passage, in a folder
    python -m benchmarks.workers embed [TEXTS]            default: 200 texts of 200 words

The workers of the first two return stored vectors at once, so everything that is measured is the work of the run:
reading records, comparing hashes, commits with their derived files. `memory` prints the memory that is the process's
own, without mapped files, which the system takes back when it needs room. `embed` embeds with all-MiniLM-L6-v2, by the
run itself and by one worker process, alternately. PostgreSQL is the server that LIKEWISE_TEST_DSN names, or the tests'
own. The processor time is that of this process, so it says little about a run into PostgreSQL.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from indexer import Document, Embedded, Index
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedder import Embedder
from indexer.indexing.ingest import Run
from indexer.listener import Commit, Listener
from indexer.records import Span
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
from likewise.shell.indexing.runs import limit_arenas
from likewise.workers import ProcessWorkers

WORDS = np.array([f"word{number}" for number in range(5000)])
PASSAGE_WORDS = 60
ROUNDS = 3


def own_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


class Stored:
    """Workers that return vectors at once: equal parts of the text, and rows of one random matrix."""

    window = 8

    def __init__(self, embedder: Embedder, passages: int) -> None:
        self._recipe, self._passages = embedder.recipe, passages
        rows = np.random.default_rng(1).normal(size=(50_000, self._recipe.dimensions)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._next = 0

    def submit(self, documents: Sequence[Document]) -> Future[list[Embedded]]:
        future = Future[list[Embedded]]()
        future.set_result([self._embedded(document) for document in documents])
        return future

    def _embedded(self, document: Document) -> Embedded:
        ends = np.linspace(0, len(document.text), self._passages + 1).astype(int).tolist()
        spans = tuple(Span(start, end, tokens=80) for start, end in pairwise(ends))
        first = self._next % (len(self._rows) - self._passages)
        self._next += self._passages
        return Embedded(spans, self._rows[first : first + self._passages], self._recipe.identity)

    def close(self) -> None:
        pass


class Memory(Listener):
    """Notes the memory of the process each time a number of documents is committed, and when the last one was."""

    def __init__(self, step: int) -> None:
        self.by_documents: dict[int, float] = {}
        self.last = 0.0
        self._step = step

    def committed(self, commit: Commit) -> None:
        self.by_documents.setdefault(commit.done // self._step * self._step, own_mb())
        self.last = time.perf_counter()


def text(number: int, words: int) -> str:
    return " ".join(np.random.default_rng(number).choice(WORDS, words).tolist())


def driver(address: str, documents: int, passages: int, words: int) -> dict[str, Any]:
    """Feed documents of so many passages of so many words to workers that have their vectors, in this process."""
    limit_arenas()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "records.jsonl"
        with source.open("w") as lines:
            for number in range(documents):
                record = {"id": f"d{number}", "text": text(number, words * passages), "year": number % 50}
                lines.write(json.dumps(record) + "\n")
        memory = Memory(documents // 20)
        store = Index.create(address, language="en")._core.store
        core = IndexCore(store, None, Context(listener=memory, workers=lambda embedder: Stored(embedder, passages)))
        options = ReadOptions()
        began, processor = time.perf_counter(), time.process_time()
        with core.writer() as writer:
            Run(core, writer, options).feed(open_sources([str(source)], options, holds_store))
        return {
            "per_second": documents / (memory.last - began),
            "processor_ms": 1000 * (time.process_time() - processor) / documents,
            "memory": memory.by_documents,
        }


def in_process(address: str, *numbers: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.workers", "--driver", address, *map(str, numbers)]
    ran: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return ran


def drivers(passages_in_all: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres_server import new_address

    print("| store | passages per document | documents/s | processor time of the run, ms per document |")
    print("| --- | ---: | ---: | ---: |", flush=True)
    for store in ("folder", "PostgreSQL"):
        for passages in (1, 3, 10):
            documents = passages_in_all // passages
            with tempfile.TemporaryDirectory() as folder:
                address = str(Path(folder) / "x.index") if store == "folder" else new_address()
                row = in_process(address, documents, passages, PASSAGE_WORDS)
            rates = f"{row['per_second']:,.0f} | {row['processor_ms']:.2f}"
            print(f"| {store} | {passages} | {rates} |", flush=True)


def memories(documents: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        row = in_process(str(Path(folder) / "x.index"), documents, 1, 20)
    print(f"{row['per_second']:,.0f} documents/s\n\n| documents | MB |\n| ---: | ---: |")
    for number, mb in row["memory"].items():
        print(f"| {int(number):,} | {mb:.0f} |")


def embedding(texts: int) -> tuple[list[float], list[float]]:
    """Passages a second by this process and by one worker process, in turns; models are loaded before."""
    rates: tuple[list[float], list[float]] = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(-1, ROUNDS):
            for kind in (0, 1):
                with Index.create(Path(folder) / f"{turn}-{kind}.index", language="en") as index:
                    workers = ProcessWorkers(index.embedder, 1) if kind else None
                    index.add(Document("first", text(10**6, 100)), workers=workers)
                    documents = [Document(f"d{turn}-{n}", text(turn * texts + n + texts, 200)) for n in range(texts)]
                    began = time.perf_counter()
                    index.add(documents, workers=workers)
                    spent = time.perf_counter() - began
                    if workers is not None:
                        workers.close()
                    if turn >= 0:
                        rates[kind].append(index.info().passages / spent)
    return rates


def main() -> None:
    kind, *given = sys.argv[1:]
    if kind == "--driver":
        print(json.dumps(driver(given[0], *map(int, given[1:]))))
        return
    print(f"{machine()}\n")
    count = int(given[0]) if given else {"driver": 6_000, "memory": 200_000, "embed": 200}[kind]
    if kind == "driver":
        drivers(count)
    elif kind == "memory":
        memories(count)
    else:
        here, worker = embedding(count)
        print("| embedded by | passages/s, each time |\n| --- | --- |")
        for name, rates in (("this process", here), ("one worker process", worker)):
            print(f"| {name} | {', '.join(f'{rate:.1f}' for rate in rates)} |")
        shares = sorted(one / other for one, other in zip(worker, here, strict=True))
        print(f"\nOne worker process: {shares[len(shares) // 2]:.0%} of the rate of the run itself.")


if __name__ == "__main__":
    main()
