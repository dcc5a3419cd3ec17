"""A hundred thousand and a million passages: latency, recall, filters, memory, disk, beside FAISS used directly.

    python -m benchmarks.scale [PASSAGES...]      default: 100000 1000000

Vectors are mixed from real ones: two passages of SciFact through the default encoder, weighted, with noise, made unit.
Questions are SciFact's own, so they lie further from the passages than the passages from one another. Reads
$LIKEWISE_EVAL_DATA/data/scifact once; the embeddings are kept in the temporary folder.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer import Document, Index
from indexer.stores.addresses.open import open_store
from indexer.stores.port import Ranking
from indexer.stores.reading.store import Store
from search import Searcher

DIMENSIONS = 384
QUESTIONS = 200
CACHE = Path(tempfile.gettempdir()) / "likewise-scale"
ROWS: dict[str, list[str]] = {}
"""The measurements for each number of passages."""
FILTERS = {
    "50 %": ("half = 1", lambda i: i % 2 == 1),
    "10 %": ("tenth = 1", lambda i: i % 10 == 1),
    "1 %": ("hundredth = 1", lambda i: i % 100 == 1),
    "0.001 %": ("rare = true", lambda i: i % 100_000 == 1),
}


def embeddings() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Passages and questions of SciFact, embedded once."""
    files = CACHE / "passages.npy", CACHE / "questions.npy"
    if not all(file.exists() for file in files):
        from indexer import load_encoder

        folder = evaluation_data() / "scifact"
        encoder = load_encoder("all-MiniLM-L6-v2")
        CACHE.mkdir(exist_ok=True)
        for file, source, role in zip(files, ("corpus", "queries"), ("document", "query"), strict=True):
            records = map(json.loads, (folder / f"{source}.jsonl").read_text().splitlines())
            texts = [f"{record.get('title', '')} {record['text']}".strip() for record in records]
            np.save(file, encoder.encode(texts, role=role, truncate=True))  # type: ignore[arg-type]
    return np.load(files[0]), np.load(files[1])


def mixed(real: NDArray[np.float32], count: int) -> Iterator[NDArray[np.float32]]:
    random = np.random.default_rng(1)
    for start in range(0, count, 50_000):
        many = min(50_000, count - start)
        first, second = random.integers(len(real), size=(2, many))
        weight = random.uniform(0.55, 0.95, size=(many, 1)).astype(np.float32)
        rows = weight * real[first] + (1 - weight) * real[second]
        rows += random.normal(0, 0.012, size=rows.shape).astype(np.float32)
        yield rows / np.linalg.norm(rows, axis=1, keepdims=True)


def documents(start: int, many: int) -> list[Document]:
    return [
        Document(
            uri=str(i),
            text=f"passage number {i}",
            metadata={"half": i % 2, "tenth": i % 10, "hundredth": i % 100, "rare": i % 100_000 == 1 or None},
        )
        for i in range(start, start + many)
    ]  # fmt: skip


class Truth:
    """The ten nearest of each question by brute force, without a filter and with each."""

    def __init__(self, questions: NDArray[np.float32]) -> None:
        self._questions = questions
        self._best = {name: np.full((len(questions), 10, 2), -2.0) for name in ("none", *FILTERS)}
        self._seen = 0

    def add(self, rows: NDArray[np.float32]) -> None:
        ids = np.arange(self._seen, self._seen + len(rows))
        self._seen += len(rows)
        scores = self._questions @ rows.astype(np.float16).astype(np.float32).T
        for name, best in self._best.items():
            allowed = np.ones(len(ids), bool) if name == "none" else FILTERS[name][1](ids)
            own = np.stack([scores[:, allowed], np.broadcast_to(ids[allowed], (len(scores), allowed.sum()))], axis=2)
            joined = np.concatenate([best, own], axis=1)
            order = np.argsort(-joined[:, :, 0], axis=1)[:, :10]
            best[:] = np.take_along_axis(joined, order[:, :, None], axis=1)

    def recall(self, name: str, question: int, found: list[int]) -> float:
        best = self._best[name][question]
        right = set(best[best[:, 0] > -2, 1].astype(int).tolist())
        return len(right & set(found)) / len(right)


def measure(count: int) -> None:
    real, questions = embeddings()
    questions = np.ascontiguousarray(questions[-QUESTIONS:])
    folder = Path(tempfile.mkdtemp(prefix="likewise-scale-")) / "scale.index"
    print(f"\n### {count:,} passages of {DIMENSIONS} dimensions\n", flush=True)
    try:
        _measure(count, real, questions, folder)
    finally:
        shutil.rmtree(folder.parent)


def _measure(count: int, real: NDArray[np.float32], questions: NDArray[np.float32], folder: Path) -> None:
    index = Index.create(folder, dimensions=DIMENSIONS)
    truth, spent, start = Truth(questions), 0.0, 0
    for rows in mixed(real, count):
        truth.add(rows)
        some, begun = documents(start, len(rows)), time.perf_counter()
        index.add(some, vectors=rows)
        spent += time.perf_counter() - begun
        start += len(rows)
    _row("documents added a second, with vectors", f"{count / spent:,.0f}")
    begun = time.perf_counter()
    index.compact()
    _row("compact", f"{time.perf_counter() - begun:.1f} s")
    searcher = asked(folder, truth, questions)
    added = [Document(uri=f"new {i}", text="new") for i in range(1000)]
    visible = _timed(lambda: (index.add(added, vectors=real[:1000]), searcher.search_vector(real[0], 1)))
    _row("1,000 documents added and found", f"{visible:.0f} ms")
    begun = time.perf_counter()
    for at in range(0, 2000, 100):
        index.add([Document(uri=f"more {at + i}", text="more") for i in range(100)], vectors=real[at : at + 100])
    _row("added in commits of 100", f"{2000 / (time.perf_counter() - begun):,.0f} documents a second")


def asked(folder: Path, truth: Truth, questions: NDArray[np.float32]) -> Searcher:
    """Questions to an index that is built: how long, how right, and what memory."""
    info = Index.open(folder).info()
    segment = info.segments[0]
    _row("segment", f"{segment['kind']} {segment['parameters']}")
    _row("on disk", f"{info.bytes / 2**20:,.0f} MB, {segment['size'] / 2**20:,.0f} of them the segment")
    anonymous, before = _memory(), time.perf_counter()
    searcher = Searcher(folder)
    searcher.search_vector(questions[0], 1)
    _row("open and first answer", f"{(time.perf_counter() - before) * 1e3:.0f} ms")
    faiss.omp_set_num_threads(1)
    for name in ("none", *FILTERS):
        where = None if name == "none" else FILTERS[name][0]
        first = _timed(lambda where=where: searcher.search_vector(questions[0], 10, where=where))  # type: ignore[misc]
        passes: list[list[float]] = [[], []]  # the first reads from the disk what the second finds in memory
        found = []
        for times in passes:
            for number, question in enumerate(questions):
                begun = time.perf_counter()
                hits = searcher.search_vector(question, 10, where=where)
                times.append(time.perf_counter() - begun)
                assert len(hits) == min(10, hits.matched)
                found.append(truth.recall(name, number, [int(hit.uri) for hit in hits]))
        cold, warm = map(_ms, passes)
        _row(
            f"search, filter {name}",
            f"first {first:.1f} ms, p50 {warm} (asked for the first time {cold}), recall@10 {np.mean(found):.3f}",
        )
    for _ in range(5):
        for question in questions:
            searcher.search_vector(question, 10)
    _row("anonymous memory more than before opening", f"{(_memory() - anonymous) / 2**20:.0f} MB")
    _bare(folder, segment, searcher, questions)
    return searcher


def _bare(folder: Path, segment: dict[str, object], searcher: Searcher, questions: NDArray[np.float32]) -> None:
    """The same file by FAISS alone, without rows; and the store's ranking, without rows."""
    whole = faiss.read_index(str(folder / "segments" / f"{segment['file']}.faiss"), faiss.IO_FLAG_MMAP_IFC)
    parameters = None
    if segment["kind"] == "approximate":
        inner = faiss.downcast_index(whole.base_index)
        (_, rows, candidates), *_ = json.loads(str(segment["parameters"]))["reach"]
        probes = int(np.ceil(rows * inner.nlist / whole.ntotal))
        parameters = faiss.IndexRefineSearchParameters(
            k_factor=candidates / 10, base_index_params=faiss.SearchParametersIVF(nprobe=probes)
        )
    bare, store, opened = [], [], open_store(folder)
    for question in questions:
        bare.append(_timed(lambda q=question: whole.search(q[None, :], 10, params=parameters)) / 1e3)  # type: ignore[misc]
        store.append(_timed(lambda q=question: _ranked(opened, q)) / 1e3)  # type: ignore[misc]
    _row("without rows: the store", f"{_ms(store)}, FAISS alone {_ms(bare)}")


def _ranked(store: Store, question: NDArray[np.float32]) -> Ranking:
    with store.snapshot() as snapshot:
        return snapshot.dense(question, 10)


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


def _ms(times: list[float]) -> str:
    return f"{np.median(times) * 1e3:.2f} ms"


def _memory() -> int:
    """Anonymous bytes of this process."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no Anonymous in smaps_rollup")


def _row(what: str, value: str) -> None:
    ROWS.setdefault(what, []).append(value)
    print(f"{what}: {value}", file=sys.stderr, flush=True)


def main() -> int:
    counts = [int(given) for given in sys.argv[1:]] or [100_000, 1_000_000]
    for count in counts:
        measure(count)
    print(f"{machine()}\n\n| | {' | '.join(f'{count:,}' for count in counts)} |\n|{' --- |' * (len(counts) + 1)}")
    for what, values in ROWS.items():
        print(f"| {what} | {' | '.join(values)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
