"""The savings and the robustness of the cache of vectors.

    python -m benchmarks.cache [KILLS]      default: 50

The first 5,000 documents of SciFact, in $LIKEWISE_EVAL_DATA, with a cache folder of its own, through the shell. Then
eight processes index 500 of them at once with an empty cache, and a process that indexes all is killed with SIGKILL
again and again, each time going on where the last one ended. Every index must have the vectors of one that was made
without the cache, and every row of the cache its checksum.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from indexer.cache.vector_cache import VectorCache, default_path
from indexer.indexing.core import IndexCore

DOCUMENTS, FEW = 5000, 500
PROCESSES = 8
MIN_CACHED_COSINE = 0.9999
"""Texts that are embedded in other batches differ by less."""


def index(path: Path, source: Path, *options: str) -> float:
    """Index a source; return how many seconds the command took."""
    begun = time.perf_counter()
    subprocess.run([LIKEWISE, "index", str(path), str(source), *options], check=True, capture_output=True)
    return time.perf_counter() - begun


def lowest_cosine(path: Path, reference: Path) -> float:
    """Return the lowest cosine of a passage's vectors in two indexes of the same passages."""
    sides = []
    for folder in (path, reference):
        with IndexCore.open(folder) as core:
            exported = {item.document.uri: item.vectors for item in core.store.export()}
            sides.append({uri: rows for uri, rows in exported.items() if rows is not None})
    ours, theirs = sides
    assert ours.keys() <= theirs.keys()
    assert ours
    return min(float(np.sum(rows * theirs[uri], axis=1).min()) for uri, rows in ours.items())


def sound_rows() -> int:
    """Return how many rows the cache has, each with its checksum, in a file that SQLite finds sound."""
    with sqlite3.connect(default_path()) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        keys = [key for (key,) in connection.execute("SELECT key FROM vector")]
    cache = VectorCache()
    assert len(cache.get(keys)) == len(keys), cache.problems
    assert not cache.problems
    cache.close()
    return len(keys)


def saved(folder: Path, all_: Path) -> None:
    first = index(folder / "first.index", all_)
    later = [index(folder / f"later{number}.index", all_) for number in range(3)]
    rebuilt = index(folder / "first.index", all_, "--rebuild")
    renamed = all_.rename(folder / "renamed.jsonl")
    moved = index(folder / "first.index", renamed, "--prune", "--yes")
    renamed.rename(all_)
    without = index(folder / "without.index", all_, "--no-cache")
    for path in ("later0.index", "without.index"):
        assert lowest_cosine(folder / path, folder / "without.index") > MIN_CACHED_COSINE
    print(f"| index {DOCUMENTS:,} documents, cache empty | {first:.1f} s |")
    print(f"| without the cache | {without:.1f} s |")
    second = sorted(later)[1]
    print(f"| a second index over the same files | {second:.1f} s, {second / first:.2f} of the first |")
    print(f"| `--rebuild` | {rebuilt:.1f} s |\n| after the file was renamed | {moved:.1f} s |", flush=True)


def at_once(folder: Path, few: Path) -> None:
    VectorCache().clear()
    alone = index(folder / "alone.index", few)
    VectorCache().clear()
    begun = time.perf_counter()
    paths = [folder / f"process{number}.index" for number in range(PROCESSES)]
    running = [subprocess.Popen([LIKEWISE, "index", str(path), str(few)], stderr=subprocess.DEVNULL) for path in paths]
    assert [process.wait() for process in running] == [0] * PROCESSES
    together = time.perf_counter() - begun
    assert min(lowest_cosine(path, folder / "without.index") for path in paths) > MIN_CACHED_COSINE
    print(f"| {FEW} documents, one process | {alone:.1f} s |")
    print(f"| {PROCESSES} processes at once | {together:.1f} s, {sound_rows():,} rows in the cache |", flush=True)


def killed(folder: Path, all_: Path, kills: int) -> None:
    chance, numbers, done = random.Random(0), itertools.count(), 0
    VectorCache().clear()
    path = folder / f"killed{next(numbers)}.index"
    completed = 0
    while done < kills:
        process = subprocess.Popen([LIKEWISE, "index", str(path), str(all_)], stderr=subprocess.DEVNULL)
        try:
            process.wait(chance.uniform(0.5, 6))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            done += 1
            sound_rows()
            continue
        assert process.returncode == 0
        completed += 1
        assert lowest_cosine(path, folder / "without.index") > MIN_CACHED_COSINE
        path = folder / f"killed{next(numbers)}.index"
        if completed % 2 == 0:  # in turn with and without the vectors of the last one
            VectorCache().clear()
    index(path, all_)
    assert lowest_cosine(path, folder / "without.index") > MIN_CACHED_COSINE
    print(f"| killed, and run again | {done} times, {completed + 1} indexes completed, {sound_rows():,} rows |")


def main() -> None:
    records = (evaluation_data() / "scifact" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        all_, few, one = folder / "all.jsonl", folder / "few.jsonl", folder / "one.jsonl"
        for path, count in ((all_, DOCUMENTS), (few, FEW), (one, 1)):
            path.write_text("\n".join(json.dumps(json.loads(line)) for line in records[:count]), encoding="utf-8")
        index(folder / "one.index", one)  # compiles the model
        VectorCache().clear()
        print(f"{machine()}, load {os.getloadavg()[0]:.1f}\n\n| | |\n| --- | --- |", flush=True)
        saved(folder, all_)
        at_once(folder, few)
        killed(folder, all_, kills)
        shutil.rmtree(folder / "cache")


if __name__ == "__main__":
    main()
