"""One question in a new process, page cache warm: `likewise search` beside scripts on other libraries.

`python -m benchmarks.query_speed [CORPUS.jsonl]`; the default is SciFact's corpus (5,183 documents) of
$LIKEWISE_EVAL_DATA. The scripts load the same model with sentence-transformers and, if it is installed, with txtai,
encode the same question, and search nothing. Medians.

`python -m benchmarks.query_speed --models [NAME...]` asks models of real size (`architectures.REAL_SIZES`). Each begins
with an empty cache: the time of indexing, of the first question, and the median of later ones.
"""

from __future__ import annotations

import importlib.util
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
from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model

QUESTION = "do vaccines protect against infection"
RUNS = 5

SCRIPTS = {
    "sentence-transformers": """
import sys
from sentence_transformers import SentenceTransformer
SentenceTransformer(sys.argv[1], device="cpu").encode([sys.argv[2]])
""",
    "txtai": """
import sys
from txtai import Embeddings
Embeddings(path=sys.argv[1]).batchtransform([sys.argv[2]])
""",
}


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
        print(f"{machine()}\n\n| one question, new process | seconds |\n| --- | --- |")
        for library, script in SCRIPTS.items():
            if importlib.util.find_spec(library.replace("-", "_")) is not None:
                theirs = seconds([sys.executable, "-c", script, str(find_model(DEFAULT_MODEL)), QUESTION])
                print(f"| {library}, encoding alone | {theirs:.2f} |", flush=True)
        for mode in ("dense", "words", "hybrid"):
            ours = seconds([LIKEWISE, "search", index, QUESTION, "--mode", mode])
            print(f"| likewise search, {mode} | {ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
