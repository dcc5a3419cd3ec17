"""Requests per second of `likewise serve`, beside searches in process and the encoder alone, in one run.

    python -m benchmarks.serve [PASSAGES]      default: 100000

Passages are windows of two to four sentences of the collections in $LIKEWISE_EVAL_DATA/data, questions are SciFact's
own. The first 5,000 passages are embedded; the vectors of the others are mixed from theirs, because this measures speed
alone. The index is kept in the temporary folder. The clients are one process on the same cores: each
sends its next question when the last one is answered. Medians of three rounds; every answer that is not 200 is counted.
`--minutes N` asks with 32 clients for N minutes instead, and prints memory and descriptors.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.scale import mixed
from indexer import Document, Index
from indexer.passages.sentences import sentence_ends
from search import Searcher

WINDOW_SENTENCES = (3, 2, 4)
EMBEDDED = 5000
ROUNDS = 3
ROUND_S = 4.0
CLIENTS = (1, 8, 32, 128)
MODES = ("dense", "hybrid")
CACHE = Path(tempfile.gettempdir()) / "likewise-serve"
_START = "from search.cli import main; main()"
_UNBATCHED = f"import search.question_batches; search.question_batches.BATCH_QUESTIONS = 1; {_START}"


def windows() -> Iterator[str]:
    """Three sentences of a document, then those from its next sentence on, in all collections; then two, then four."""
    files = sorted(evaluation_data().rglob("corpus.jsonl"))
    for sentences, corpus in itertools.product(WINDOW_SENTENCES, files):
        for line in corpus.read_text(encoding="utf-8").splitlines():
            text = json.loads(line)["text"]
            ends = [0, *sentence_ends(text), len(text)]
            for first, last in zip(ends, ends[sentences:], strict=False):
                yield text[first:last].strip()[:1000]


def build(passages: int) -> Path:
    """Return an index of this many passages; it is made when it does not exist yet."""
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


@contextmanager
def serving(folder: Path, program: str = _START) -> Iterator[tuple[int, int]]:
    """Start the service; gives its port and process."""
    command = [sys.executable, "-c", program, "serve", f"bench={folder}", "--port", "0", "--no-access-log"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            match = re.search(r":(\d+)$", process.stderr.readline().strip())
            assert match is not None
            yield int(match[1]), process.pid
        finally:
            process.terminate()


def posts(path: str, bodies: list[bytes]) -> list[bytes]:
    """Return a request for each body."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    return [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]


def load(port: int, requests: list[bytes], clients: int, seconds: float) -> tuple[list[float], int]:
    """Ask from another process, with this many clients for this many seconds; return latencies (s) and the failures."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_load, (port, requests, clients, seconds))


def _load(port: int, requests: list[bytes], clients: int, seconds: float) -> tuple[list[float], int]:
    return asyncio.run(_ask_for(port, requests, clients, seconds))


async def _ask_for(port: int, requests: list[bytes], clients: int, seconds: float) -> tuple[list[float], int]:
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
    return latencies, failed


def searches(mode: str) -> list[bytes]:
    """Return a request for each question."""
    bodies = [json.dumps({"query": question, "k": 10, "mode": mode}).encode() for question in questions()]
    return posts("/v1/indexes/bench/search", bodies)


def in_process(folder: Path) -> None:
    """Print the encoder's rate, and the rate and latency of sequential searches."""
    asked = questions()
    with Searcher(folder) as searcher:
        encoder = searcher.encoder
        rates = []
        for _ in range(ROUNDS + 1):
            begun = time.perf_counter()
            for start in range(0, 320, 32):
                encoder.encode(asked[start : start + 32], role="query", truncate=True)
            rates.append(320 / (time.perf_counter() - begun))
        print(f"| encoder alone, batches of 32 | | {median(rates[1:]):.0f} | | | |")
        for mode in MODES:
            rates, middles = [], []
            for _ in range(ROUNDS + 1):
                latencies = []
                end = time.perf_counter() + ROUND_S
                while time.perf_counter() < end:
                    begun = time.perf_counter()
                    searcher.search(asked[len(latencies) % len(asked)], 10, mode=mode)  # type: ignore[arg-type]
                    latencies.append(time.perf_counter() - begun)
                rates.append(len(latencies) / ROUND_S)
                middles.append(median(latencies))
            print(f"| {mode}, in process | 1 | {median(rates[1:]):.0f} | {median(middles[1:]) * 1000:.1f} | | |")


def over_http(folder: Path) -> None:
    """Print rates and latencies per mode and number of clients, with and without batching, in turns."""
    with serving(folder) as (batched, _), serving(folder, _UNBATCHED) as (single, _):
        for mode, clients in itertools.product(MODES, CLIENTS):
            rounds: dict[str, list[tuple[float, float, float, int]]] = {"batched": [], "one by one": []}
            for _ in range(ROUNDS):
                for name, port in (("batched", batched), ("one by one", single)):
                    latencies, failed = load(port, searches(mode), clients, ROUND_S)
                    middle, late = np.percentile(latencies, [50, 99]) * 1000
                    rounds[name].append((len(latencies) / ROUND_S, middle, late, failed))
            for name, measured in rounds.items():
                rate, middle, late = (median(values) for values in list(zip(*measured, strict=True))[:3])
                failures = sum(failed for *_, failed in measured)
                print(
                    f"| {mode}, {name} | {clients} | {rate:.0f} | {middle:.1f} | {late:.1f} | {failures} |", flush=True
                )


def soak(folder: Path, minutes: float) -> None:
    """Print memory and descriptors of the service every minute under 32 clients, and every failure."""
    with serving(folder) as (port, process):
        print("| minute | requests | failed | resident MB | descriptors |\n| --- | --- | --- | --- | --- |")
        begun = time.perf_counter()
        while time.perf_counter() - begun < minutes * 60:
            latencies, failed = load(port, searches("hybrid"), 32, min(60.0, minutes * 60))
            status = Path(f"/proc/{process}/status").read_text()
            resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
            descriptors = len(list(Path(f"/proc/{process}/fd").iterdir()))
            minute = (time.perf_counter() - begun) / 60
            print(f"| {minute:.1f} | {len(latencies)} | {failed} | {resident:.0f} | {descriptors} |", flush=True)


def main() -> None:
    arguments = sys.argv[1:]
    minutes = float(arguments.pop(arguments.index("--minutes") + 1)) if "--minutes" in arguments else 0.0
    numbers = [argument for argument in arguments if argument != "--minutes"]
    folder = build(int(numbers[0]) if numbers else 100_000)
    print(f"{machine()}\n")
    if minutes:
        soak(folder, minutes)
        return
    print("| | clients | per second | p50 ms | p99 ms | failed |\n| --- | --- | --- | --- | --- | --- |")
    in_process(folder)
    over_http(folder)


if __name__ == "__main__":
    main()
