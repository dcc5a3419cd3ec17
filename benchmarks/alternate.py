"""Two versions of likewise on the same work, in turns: is one slower than the other?

    python -m benchmarks.alternate OTHER_CHECKOUT [ROUNDS]

OTHER_CHECKOUT is a second working tree, such as `git worktree add ../before REVISION` makes one. Each round runs the
same work with this tree and with the other in processes of their own, one after the other; the first round is left
out. Printed are medians, and the median of the rounds' ratios (this tree over the other), which a machine whose speed
drifts does not disturb. The work uses public names alone, on SciFact and on 100,000 vectors mixed from it
(benchmarks/scale.py), under $LIKEWISE_EVAL_DATA/data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
SHELL = [sys.executable, "-c", "from search.cli import main; main()"]
ROUNDS = 9
PASSAGES = 100_000
EMBEDDED = 500
QUESTIONS = 150
FILTERS = {
    "50 %": "half = 1",
    "10 %": "tenth = 1",
    "1 %": "n < 1000",
}


def milliseconds(ask: Callable[[Any], object], questions: Sequence[Any]) -> float:
    """Median over the questions, after a few that fill caches."""
    for question in questions[:5]:
        ask(question)
    times = []
    for question in questions:
        begun = time.perf_counter()
        ask(question)
        times.append(time.perf_counter() - begun)
    return 1e3 * median(times)


def build(folder: Path, corpus: str) -> None:
    """An index of PASSAGES vectors, and one of SciFact through the shell."""
    from indexer import Document, Index

    rows = np.load(folder.parent / "rows.npy", mmap_mode="r")
    with Index.create(folder / "vectors.index", dimensions=rows.shape[1]) as index:
        for start in range(0, len(rows), 20_000):
            some = range(start, min(start + 20_000, len(rows)))
            documents = [Document(str(n), f"text {n}", "", {"half": n % 2, "tenth": n % 10, "n": n}) for n in some]
            index.add(documents, vectors=rows[some.start : some.stop])
        index.compact()
    subprocess.run([*SHELL, "index", str(folder / "texts.index"), corpus], check=True, capture_output=True)


def work(folder: Path, corpus: str) -> dict[str, float]:
    """Milliseconds of one round, by what was done."""
    from indexer import Document, Index, load_encoder
    from search import Searcher

    took: dict[str, float] = {}
    rows = np.load(folder.parent / "rows.npy", mmap_mode="r")
    asked = np.load(folder.parent / "questions.npy")
    with Searcher(folder / "vectors.index") as searcher:
        took["dense, 100,000 vectors"] = milliseconds(partial(searcher.search_vector, k=10), asked)
        for name, where in FILTERS.items():
            took[f"dense, filter of {name}"] = milliseconds(partial(searcher.search_vector, k=10, where=where), asked)
    with Searcher(folder / "texts.index") as searcher:
        texts = (folder.parent / "questions.txt").read_text().splitlines()
        for mode in ("dense", "words", "hybrid"):
            took[f"search, {mode}, SciFact"] = milliseconds(partial(searcher.search, k=10, mode=mode), texts)
    with tempfile.TemporaryDirectory() as temporary:
        documents = [Document(str(n), f"text {n}", "", {"n": n}) for n in range(5000)]
        begun = time.perf_counter()
        with Index.create(Path(temporary) / "own.index", dimensions=rows.shape[1]) as index:
            for start in range(0, 5000, 100):
                index.add(documents[start : start + 100], vectors=rows[start : start + 100])
        took["add 5,000 vectors in commits of 100"] = 1e3 * (time.perf_counter() - begun)
        encoder = load_encoder("all-MiniLM-L6-v2", runtime="torch")
        encoder.encode(["warm"] * 32)
        lines = Path(corpus).read_text().splitlines()[:EMBEDDED]
        records = [Document(row["_id"], row["text"], row["title"]) for row in map(json.loads, lines)]
        begun = time.perf_counter()
        with Index.create(Path(temporary) / "texts.index", encoder) as index:
            index.add(records)
        took[f"embed and add {EMBEDDED} abstracts"] = 1e3 * (time.perf_counter() - begun)
    return took


def fresh(folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Milliseconds of a question in a process of its own."""
    took = {}
    for mode in ("dense", "words", "hybrid"):
        question = ["search", str(folder / "texts.index"), "do vaccines protect against infection", "--mode", mode]
        begun = time.perf_counter()
        subprocess.run([*SHELL, *question], check=True, capture_output=True, env=environment, cwd=folder)
        took[f"fresh process, {mode}"] = 1e3 * (time.perf_counter() - begun)
    return took


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from benchmarks.data import evaluation_data
    from benchmarks.machine import machine
    from benchmarks.scale import embeddings, mixed

    other = Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    scifact = evaluation_data() / "scifact"
    trees = {"this": ROOT, "other": other}
    with tempfile.TemporaryDirectory(prefix="likewise-alternate-") as temporary:
        top = Path(temporary)
        real, questions = embeddings()
        np.save(top / "rows.npy", np.concatenate(list(mixed(real, PASSAGES))))
        np.save(top / "questions.npy", questions[:QUESTIONS])
        texts = [json.loads(line)["text"] for line in (scifact / "queries.jsonl").read_text().splitlines()]
        (top / "questions.txt").write_text("\n".join(texts[:QUESTIONS]))
        results: dict[str, list[dict[str, float]]] = {"this": [], "other": []}

        environments = {
            name: {**os.environ, "PYTHONPATH": str(tree), "LIKEWISE_RUNTIME": "torch"} for name, tree in trees.items()
        }

        def run(name: str, what: str) -> str:
            command = [sys.executable, __file__, what, str(top / name), str(scifact / "corpus.jsonl")]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environments[name], cwd=top)
            return done.stdout

        for name in trees:
            (top / name).mkdir()
            run(name, "build")
        for number in range(rounds + 1):
            order = list(trees) if number % 2 else list(trees)[::-1]
            for name in order:
                took = json.loads(run(name, "work")) | fresh(top / name, environments[name])
                if number:
                    results[name].append(took)
    print(f"{machine()}; medians of {rounds} rounds\n")
    print("| milliseconds | this | other | this / other |\n| --- | --- | --- | --- |")
    for what in results["this"][0]:
        mine, theirs = ([took[what] for took in results[name]] for name in trees)
        ratio = median(a / b for a, b in zip(mine, theirs, strict=True))
        print(f"| {what} | {median(mine):,.2f} | {median(theirs):,.2f} | {ratio:.3f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["build"]:
        build(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1:2] == ["work"]:
        print(json.dumps(work(Path(sys.argv[2]), sys.argv[3])))
    else:
        main()
