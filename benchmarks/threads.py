"""Questions per second that several threads ask one searcher, which embeds those asked at the same time together.

`python -m benchmarks.threads`. The index is data/collection; ten hits per question, with the compiled encoder.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from search import Searcher

COLLECTION = Path(__file__).parents[1] / "data" / "collection"
QUESTIONS = [f"what should I do about {number} dogs that bark at night" for number in range(300)]
ROUNDS = 3


def per_second(ask: Callable[[], object]) -> float:
    """Median over rounds; one round before them fills caches."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        ask()
        times.append(time.perf_counter() - start)
    return len(QUESTIONS) / median(times[1:])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "bench.index")
        subprocess.run([LIKEWISE, "index", address, str(COLLECTION)], check=True, capture_output=True)
        print(f"{machine()}\n\n| questions | per second |\n| --- | --- |")
        with Searcher(address) as searcher:
            for threads in (1, 2, 8, 32):
                with ThreadPoolExecutor(threads) as pool:
                    rate = per_second(lambda pool=pool: list(pool.map(searcher.search, QUESTIONS)))  # type: ignore[misc]
                print(f"| `search` from {threads} thread{'s' * (threads > 1)} | {rate:.0f} |", flush=True)
            print(f"| `search_many` | {per_second(lambda: searcher.search_many(QUESTIONS, 10)):.0f} |")


if __name__ == "__main__":
    main()
