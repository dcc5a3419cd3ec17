"""What multilingual-e5-small costs beside all-MiniLM-L6-v2: a question, a service, and indexing.

    python -m benchmarks.two_models [FOLDER]

FOLDER is a judged collection (BEIR form); the default is $LIKEWISE_EVAL_DATA/data/xquad/de. A question in a new process
is the best of seven, by CPU seconds and by peak resident memory. The service has two workers and has answered for three
seconds; shared memory counts once. Tokens per CPU second are of documents of at most 256 tokens in one thread, the best
of five rounds. The models take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from benchmarks.serve import load, posts, serving
from indexer.encoders.load import load_encoder
from indexer.encoders.recipes.locate import DEFAULT_MODEL, MULTILINGUAL_MODEL

MODELS = DEFAULT_MODEL, MULTILINGUAL_MODEL
DOCUMENTS = 96
MB = 1 << 20


def question(index: Path, text: str) -> tuple[float, float]:
    """Return the CPU seconds and the peak resident MB of a question in a new process."""
    with subprocess.Popen([LIKEWISE, "search", index, text], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MB


def service(index: Path, texts: list[str]) -> float:
    """Return the MB of a service with two workers that has answered questions."""
    with serving(index, "--workers", "2") as running:
        requests = posts("/v1/search", [json.dumps({"query": text}).encode() for text in texts])
        if failed := load(running.port, requests, clients=4, seconds=3).failed:
            raise RuntimeError(f"{failed} questions failed")
        return running.megabytes()


def speeds(texts: list[str]) -> tuple[float, ...]:
    """Return the tokens per CPU second of each model."""
    encoders = [load_encoder(model, runtime="torch", max_tokens=256) for model in MODELS]
    counts = [sum(map(len, encoder.offsets(texts))) for encoder in encoders]
    seconds = [float("inf")] * len(MODELS)
    for _ in range(5):
        for number, encoder in enumerate(encoders):
            begun = time.process_time()
            encoder.encode(texts, truncate=True)
            seconds[number] = min(seconds[number], time.process_time() - begun)
    return tuple(count / each for count, each in zip(counts, seconds, strict=True))


def row(name: str, values: tuple[float, ...], shown: Callable[[float], str]) -> None:
    first, second = values
    print(f"| {name} | {shown(first)} | {shown(second)} | {second / first:.2f} |", flush=True)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else evaluation_data(" and no folder was given") / "xquad" / "de"
    corpus, asked = (
        [json.loads(line)["text"] for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{machine()}\n\n| | {' | '.join(MODELS)} | ratio |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        indexes = [Path(temporary) / f"{model}.index" for model in MODELS]
        for model, index in zip(MODELS, indexes, strict=True):
            command = [LIKEWISE, "index", index, folder / "corpus.jsonl", "--model", model]
            subprocess.run(command, check=True, capture_output=True)
        runs = [[question(index, asked[0]) for index in indexes] for _ in range(8)][1:]  # the first fills caches
        row(
            "a question in a new process, CPU s",
            tuple(min(run[at][0] for run in runs) for at in (0, 1)),
            "{:.2f}".format,
        )
        row("its memory, MB", tuple(min(run[at][1] for run in runs) for at in (0, 1)), "{:.0f}".format)
        row("a service with two workers, MB", tuple(service(index, asked) for index in indexes), "{:.0f}".format)
        sizes = tuple(sum(file.stat().st_size / MB for file in (index / "encoder").iterdir()) for index in indexes)
        row("compiled model in the index, MB", sizes, "{:.0f}".format)
    row("tokens per CPU second, torch", speeds(corpus[:DOCUMENTS]), "{:.0f}".format)


if __name__ == "__main__":
    main()
