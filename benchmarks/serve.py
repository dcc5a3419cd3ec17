"""Requests per second of `likewise serve` and the CPU of a request, beside one thread in process, in one run.

    python -m benchmarks.serve                      the table: words, dense and hybrid at 1, 8 and 32 clients
    python -m benchmarks.serve --beside CHECKOUT    the same with the service of another working tree, in turns
    python -m benchmarks.serve --threads            32 clients by the number of threads that search, in one worker
    python -m benchmarks.serve --workers            32 clients by the number of workers, with their memory
    python -m benchmarks.serve --minutes N          32 clients for N minutes, with memory and descriptors
    python -m benchmarks.serve --passages N ...     with N passages mixed from the collections instead of SciFact

SciFact's documents and questions under $LIKEWISE_EVAL_DATA/data, ten hits each. The clients are one process on the same
cores: each sends its next question when the last one is answered. CPU is the time of all processes of the service;
other programs on the machine change it less than the rates. Medians of rounds; in each round everything is measured
once. Answers that are not 200 are counted on standard error. The index is kept in the temporary folder.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import psutil

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from benchmarks.scale import mixed
from indexer import Document, Index
from indexer.passages.sentences import sentence_ends
from search import Searcher
from search.query.query import Mode

ROOT = Path(__file__).parents[1]
WINDOW_SENTENCES = (3, 2, 4)
EMBEDDED = 5000
ROUNDS = 3
ROUND_S = 4.0
CLIENTS = (1, 8, 32)
THREADS = (1, 2, 4, 8, 16, 32)
WORKERS = (1, 2, 3, 4)
MODES = get_args(Mode)
CACHE = Path(tempfile.gettempdir()) / "likewise-serve"
_START = "from likewise.shell import main; main()"


def windows() -> Iterator[str]:
    """Three sentences of a document, then those from its next sentence on, in all collections; then two, then four."""
    files = sorted(evaluation_data().rglob("corpus.jsonl"))
    for sentences, corpus in itertools.product(WINDOW_SENTENCES, files):
        for line in corpus.read_text(encoding="utf-8").splitlines():
            text = json.loads(line)["text"]
            ends = [0, *sentence_ends(text), len(text)]
            for first, last in zip(ends, ends[sentences:], strict=False):
                yield text[first:last].strip()[:1000]


def scifact() -> Path:
    """Return the index of SciFact; it is made when it does not exist yet."""
    folder = CACHE / "scifact.index"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        making = str(CACHE / "making.index")
        for command in (["index", making, evaluation_data() / "scifact" / "corpus.jsonl"], ["compile", making]):
            subprocess.run([LIKEWISE, *command], check=True, capture_output=True)
        Path(making).rename(folder)
    return folder


def build(passages: int) -> Path:
    """Return an index of this many passages. 5,000 are embedded, and the other vectors are mixed from theirs."""
    folder = CACHE / f"{passages}.index"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        texts = itertools.islice(dict.fromkeys(filter(None, windows())), passages)
        documents = [Document(str(number), text, metadata={"n": number}) for number, text in enumerate(texts)]
        if len(documents) < passages:
            sys.exit(f"the collections have {len(documents)} windows only")
        making = CACHE / "making.index"
        with Index.create(making) as index:
            index.add(documents[:EMBEDDED])
            with Searcher(making) as searcher:
                real = np.concatenate([searcher.vectors(document.uri) for document in documents[:EMBEDDED]])
            vectors = np.concatenate(list(mixed(real, passages - EMBEDDED)))
            for start in range(EMBEDDED, passages, 5000):
                index.add(documents[start : start + 5000], vectors=vectors[start - EMBEDDED :][:5000])
            index.compact()
            index.compile()
        making.rename(folder)
    return folder


def questions() -> list[str]:
    lines = (evaluation_data() / "scifact" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


@dataclass(frozen=True)
class Service:
    """A running service."""

    port: int
    process: psutil.Process

    def processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]

    def cpu_s(self) -> float:
        """Return the seconds of CPU of all its processes."""
        times = [process.cpu_times() for process in self.processes()]
        return sum(each.user + each.system for each in times)

    def megabytes(self) -> float:
        """Return the memory of all its processes; shared memory counts once (PSS, Linux)."""
        return sum(process.memory_full_info().pss for process in self.processes()) / 2**20


@contextmanager
def serving(folder: Path, *options: str, program: str = _START, tree: Path = ROOT) -> Iterator[Service]:
    """Start the service of a working tree."""
    command = [sys.executable, "-c", program, "serve", f"bench={folder}", "--port", "0", "--no-access-log", *options]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tree) as process:
        assert process.stderr is not None
        try:
            match = re.search(r":(\d+)$", process.stderr.readline().strip())
            assert match is not None
            yield Service(int(match[1]), psutil.Process(process.pid))
        finally:
            process.terminate()


def posts(path: str, bodies: list[bytes]) -> list[bytes]:
    """Return a request for each body."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    return [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]


@dataclass(frozen=True)
class Load:
    """The measurements of clients: seconds of each answer, and failures."""

    latencies: list[float]
    failed: int


def load(port: int, requests: list[bytes], clients: int, seconds: float) -> Load:
    """Ask from another process, with this many clients for this many seconds."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_load, (port, requests, clients, seconds))


def _load(port: int, requests: list[bytes], clients: int, seconds: float) -> Load:
    return asyncio.run(_ask_for(port, requests, clients, seconds))


async def _ask_for(port: int, requests: list[bytes], clients: int, seconds: float) -> Load:
    latencies: list[float] = []
    failed = 0
    order = itertools.cycle(requests)
    end = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            request = next(order)
            begun = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None
            await reader.readexactly(int(length[1]))
            latencies.append(time.perf_counter() - begun)
            failed += not head.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(latencies, failed)


def searches(mode: str, **members: Any) -> list[bytes]:
    """Return a request for each question, with more members."""
    bodies = [json.dumps({"query": question, "k": 10, "mode": mode, **members}).encode() for question in questions()]
    return posts("/v1/indexes/bench/search", bodies)


@dataclass(frozen=True)
class Measured:
    """One round of one row: per second, milliseconds of an answer, and of CPU for a request."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    failed: int


def ask(service: Service, mode: str, clients: int) -> Measured:
    """Ask a service for one round."""
    before = service.cpu_s()
    done = load(service.port, searches(mode), clients, ROUND_S)
    cpu, count = service.cpu_s() - before, len(done.latencies)
    p50, p99 = np.percentile(done.latencies, [50, 99]) * 1000
    return Measured(count / ROUND_S, p50, p99, cpu / count * 1e3, done.failed)


def ask_in_process(searcher: Searcher, mode: Mode) -> Measured:
    """Ask in this process, in one thread, for one round."""
    latencies = []
    started, end = time.process_time(), time.perf_counter() + ROUND_S
    asked = itertools.cycle(questions())
    while time.perf_counter() < end:
        begun = time.perf_counter()
        searcher.search(next(asked), 10, mode=mode)
        latencies.append(time.perf_counter() - begun)
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    cpu_ms = (time.process_time() - started) / len(latencies) * 1e3
    return Measured(len(latencies) / ROUND_S, p50, p99, cpu_ms, 0)


def in_turns(rows: dict[str, Callable[[], Measured]], first: str) -> None:
    """Measure every row in each round, and print medians; ratios are medians of the ratios within a round."""
    rounds = [{name: measure() for name, measure in rows.items()} for _ in range(ROUNDS + 1)][1:]
    for name in rows:
        own = [measured[name] for measured in rounds]
        times = median(measured[name].cpu_ms / measured[first].cpu_ms for measured in rounds)
        rate, p50, p99, cpu = (
            median(getattr(one, member) for one in own) for member in ("rate", "p50_ms", "p99_ms", "cpu_ms")
        )
        print(f"| {name} | {rate:.0f} | {p50:.1f} | {p99:.1f} | {cpu:.2f} | {times:.2f} |", flush=True)
        if failed := sum(one.failed for one in own):
            print(f"{name}: {failed} requests failed", file=sys.stderr)


def table(folder: Path, trees: dict[str, Path], options: Sequence[str]) -> None:
    """Print a row for one thread in process, and for each service and number of clients."""
    print("| | per second | p50 ms | p99 ms | CPU ms | times in process |\n| --- | --- | --- | --- | --- | --- |")
    with Searcher(folder) as searcher, ExitStack() as stack:
        services = {name: stack.enter_context(serving(folder, *options, tree=tree)) for name, tree in trees.items()}
        for mode in MODES:
            one = f"{mode}, one thread in process"
            rows: dict[str, Callable[[], Measured]] = {one: lambda mode=mode: ask_in_process(searcher, mode)}
            for clients, (name, service) in itertools.product(CLIENTS, services.items()):
                rows[f"{mode}{name}, {clients} client{'s' * (clients > 1)}"] = (
                    lambda mode=mode, clients=clients, service=service: ask(service, mode, clients)
                )
            in_turns(rows, one)


def by_threads(folder: Path) -> None:
    """Print 32 clients by the number of threads of one worker that search."""
    print("| 32 clients, per second (CPU ms) | " + " | ".join(MODES) + " |\n| --- | --- | --- | --- |")
    for threads in THREADS:
        program = f"import likewise.service.http.app as app; app.SEARCH_THREADS = {threads}; {_START}"
        with serving(folder, "--workers", "1", program=program) as service:
            print(f"| {threads} | {' | '.join(_cells(service))} |", flush=True)


def by_workers(folder: Path) -> None:
    """Print 32 clients by the number of workers."""
    print("| 32 clients, per second (CPU ms) | " + " | ".join(MODES) + " | MB |\n| --- | --- | --- | --- | --- |")
    for workers in WORKERS:
        with serving(folder, "--workers", str(workers)) as service:
            cells = _cells(service)
            print(f"| {workers} | {' | '.join(cells)} | {service.megabytes():.0f} |", flush=True)


def _cells(service: Service) -> list[str]:
    cells = []
    for mode in MODES:
        rounds = [ask(service, mode, 32) for _ in range(ROUNDS + 1)][1:]
        cells.append(f"{median(one.rate for one in rounds):.0f} ({median(one.cpu_ms for one in rounds):.2f})")
    return cells


def soak(folder: Path, minutes: float) -> None:
    """Print memory and descriptors of the service every minute under 32 clients, and every failure."""
    with serving(folder) as service:
        print("| minute | requests | failed | resident MB | descriptors |\n| --- | --- | --- | --- | --- |")
        begun = time.perf_counter()
        while time.perf_counter() - begun < minutes * 60:
            done = load(service.port, searches("hybrid"), 32, min(60.0, minutes * 60))
            resident = sum(process.memory_info().rss for process in service.processes()) / 2**20
            descriptors = sum(process.num_fds() for process in service.processes())
            minute = (time.perf_counter() - begun) / 60
            print(
                f"| {minute:.1f} | {len(done.latencies)} | {done.failed} | {resident:.0f} | {descriptors} |", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("options", nargs="*", help="options of likewise serve, after --")
    given = parser.parse_args()
    folder = build(given.passages) if given.passages else scifact()
    print(f"{machine()}\n")
    if given.threads:
        by_threads(folder)
    elif given.workers:
        by_workers(folder)
    elif given.minutes:
        soak(folder, given.minutes)
    else:
        trees = {"": ROOT} if given.beside is None else {" now": ROOT, " before": given.beside.resolve()}
        table(folder, trees, given.options)


if __name__ == "__main__":
    main()
