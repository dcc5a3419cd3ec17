"""The time of a commit with and without the file that keeps the number of the last commit (docs/format.md).

    python -m benchmarks.commits [COMMITS]      default: 400 of each kind

One writer commits batches of 100 passages with their vectors, and empty batches that change one number. Every second
commit leaves the file out, so that a disk whose speed drifts disturbs both alike. The last rows are what a reader pays.
The folder is made in the working folder, whose disk is measured.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from benchmarks.machine import machine
from indexer import Document, Index
from indexer.stores.addresses.open import open_store
from indexer.stores.local.catalog.generation import GenerationFile, read_generation

COMMITS = 400
ROWS, DIMENSIONS = 100, 384
READS = 20_000


def milliseconds(commits: int, commit: Callable[[int], object]) -> tuple[float, float, float]:
    """Medians of a commit with the file and without it, and of the difference between two neighbours."""
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * commits + 10):
        with_file = number % 2 == 0
        with patch.object(GenerationFile, "write", GenerationFile.write if with_file else _leave_out):
            begun = time.perf_counter()
            commit(number)
            spent = time.perf_counter() - begun
        if number >= 10:  # the first ones fill caches
            took[with_file].append(1e3 * spent)
    differences = [a - b for a, b in zip(took[True], took[False], strict=True)]
    return median(took[True]), median(took[False]), median(differences)


def _leave_out(file: object, generation: object) -> None:
    pass


def microseconds(read: Callable[[], object]) -> float:
    begun = time.perf_counter()
    for _ in range(READS):
        read()
    return 1e6 * (time.perf_counter() - begun) / READS


def main() -> None:
    commits = int((sys.argv[1:] or [str(COMMITS)])[0])
    rows = np.random.default_rng(0).normal(size=(ROWS, DIMENSIONS)).astype(np.float32)
    print(
        f"{machine()}\n\n| milliseconds per commit | with the file | without | difference |\n| --- | --- | --- | --- |"
    )
    with tempfile.TemporaryDirectory(prefix="commits-", dir=Path.cwd()) as parent:
        folder = Path(parent) / "x.index"
        with Index.create(folder, dimensions=DIMENSIONS) as index, index.lock():

            def add(number: int) -> None:
                index.add([Document(f"{number} {row}", f"text {row}") for row in range(ROWS)], vectors=rows)

            print("| 100 passages | {:.2f} | {:.2f} | {:.2f} |".format(*milliseconds(commits, add)))
        store = open_store(folder)
        with store.writer() as writer:
            print(
                "| one number | {:.2f} | {:.2f} | {:.2f} |".format(*milliseconds(commits, lambda _: writer.begin_run()))
            )

        def snapshot() -> None:
            with store.snapshot():
                pass

        print("\n| microseconds of a reader | |\n| --- | --- |")
        print(f"| a snapshot, with reading the file | {microseconds(snapshot):.1f} |")
        print(f"| reading the file | {microseconds(lambda: read_generation(folder)):.1f} |")
        store.close()


if __name__ == "__main__":
    main()
