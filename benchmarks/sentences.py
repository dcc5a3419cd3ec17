"""The cost of `--explain`: the nearest sentence of each of ten hits, encoded when the hits are shown.

`python -m benchmarks.sentences` with $LIKEWISE_EVAL_DATA set: SciFact, 50 of its questions in a searcher that is open.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.answers import questions
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from search import Searcher
from search.explain import sentences

_ASKED = 50


def main() -> None:
    data = evaluation_data()
    collection = data / "scifact"
    rows: dict[bool, list[float]] = {False: [], True: []}
    counts = []
    with tempfile.TemporaryDirectory() as temporary:
        index = str(Path(temporary) / "bench.index")
        command = [LIKEWISE, "index", index, str(collection / "corpus.jsonl")]
        subprocess.run(command, check=True, capture_output=True)
        with Searcher(index) as searcher:
            for question in questions(collection)[:_ASKED]:
                for explain in (False, True, False, True):  # the first time of each length makes kernels ready
                    begun = time.perf_counter()
                    hits = searcher.search(question, 10, explain=explain)
                    rows[explain].append(time.perf_counter() - begun)
                counts.append(sum(len(sentences(hit.text)) for hit in hits))
    plain, explained = (statistics.median(rows[explain]) * 1e3 for explain in (False, True))
    print(f"{machine()}\n\n| | |\n| --- | --- |\n| sentences of ten hits, median | {statistics.median(counts):.0f} |")
    print(f"| search | {plain:.1f} ms |\n| search with explain | {explained:.1f} ms |")
    print(f"| slowest with explain | {max(rows[True]) * 1e3:.0f} ms |")


if __name__ == "__main__":
    main()
