"""One writer and eight reader processes on one index: no error, no torn document, no count that falls by itself.

    python -m benchmarks.readers [SECONDS]      default: 600

The writer adds, replaces, removes, seals and compacts; a document of version v has v % 5 + 1 passages that all say v.
Every reader asks for all passages again and again, warnings as errors, and checks what it sees of each document.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.machine import machine
from indexer import Document, Index
from indexer.exchange import Embedded
from indexer.indexing.core import IndexCore
from indexer.records import Span
from indexer.stores.addresses.open import open_store
from indexer.stores.port import Batch

DIMENSIONS, DOCUMENTS, READERS = 16, 300, 8


def document(name: int, version: int) -> tuple[Document, Embedded]:
    """Every passage is the text's next word, which is the version; vectors are of no interest here."""
    words = version % 5 + 1
    each = f"v{version} "
    spans = tuple(Span(at * len(each), (at + 1) * len(each) - 1) for at in range(words))
    rows = np.random.default_rng(version).normal(size=(words, DIMENSIONS)).astype(np.float32)
    return Document(f"d{name}", each * words), Embedded(spans, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def write(folder: Path, seconds: float) -> Counter[str]:
    """Counts of operations. Every seventh document is removed, and comes back later."""
    chance, done, version = random.Random(0), Counter[str](), 0
    until = time.monotonic() + seconds
    with IndexCore.open(folder) as core:
        index = Index(core)
        while time.monotonic() < until:
            version += 1
            some = chance.sample(range(DOCUMENTS), 20)
            match chance.choice(["put"] * 8 + ["remove", "compact", "approximate", "settle"]):
                case "put":
                    with core.store.writer() as writer:
                        writer.put(Batch(core.prepare([(document(name, version), None) for name in some]).work))
                    done["documents put"] += len(some)
                case "remove":
                    there = [f"d{name}" for name in some if f"d{name}" in index]
                    done["documents removed"] += index.remove(there)
                case "settle":
                    with core.store.writer() as writer:
                        writer.settle()
                    done["runs settled"] += 1
                case kind:
                    index.compact("auto" if kind == "compact" else kind)
                    done["compactions"] += 1
    return done


def read(folder: Path, seconds: float) -> int:
    """How often everything was asked for. Raises AssertionError for a document that is half there."""
    asked, until = 0, time.monotonic() + seconds
    question = np.ones(DIMENSIONS, np.float32)
    with closing(open_store(folder)) as store:
        while time.monotonic() < until:
            with store.snapshot() as snapshot:
                found = snapshot.dense(question / 4, 10_000, unit="passage")
                passages = snapshot.passages_by_id(found.passages.tolist())
            assert len(passages) == found.matched
            by_uri: dict[str, list[str]] = {}
            for passage in passages:
                by_uri.setdefault(passage.uri, []).append(passage.text)
            for uri, texts in by_uri.items():
                version = int(texts[0][1:])
                assert texts == [f"v{version}"] * (version % 5 + 1), (uri, texts)
            asked += 1
    return asked


def main() -> int:
    seconds = float((sys.argv[1:] or ["600"])[0])
    root = str(Path(__file__).parent.parent)
    with tempfile.TemporaryDirectory(prefix="likewise-readers-") as parent:
        folder = Path(parent) / "shared.index"
        Index.create(folder, dimensions=DIMENSIONS).close()
        command = [sys.executable, "-W", "error", "-m", "benchmarks.readers", "read", str(folder), str(seconds)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
        readers = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(READERS)
        ]
        done = write(folder, seconds)
        asked = [int(reader.communicate(timeout=120)[0] or -1) for reader in readers]
        failed = sum(reader.returncode != 0 for reader in readers)
        report = Index.open(folder).check()
    print(f"{machine()}\n\n| {READERS} readers, {seconds:.0f} s | |\n| --- | --- |")
    print("".join(f"| {what} | {many:,} |\n" for what, many in sorted(done.items())), end="")
    print(f"| answers checked | {sum(asked):,} |\n| readers that failed | {failed} |\n| check | {report.ok} |")
    return 1 if failed or not report.ok else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        print(read(Path(sys.argv[2]), float(sys.argv[3])))
        sys.exit(0)
    sys.exit(main())
