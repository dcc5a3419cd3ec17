"""From a question to its printed hits at the prompt of `likewise search`, warm.

    python -m benchmarks.prompt [PASSAGES]      default: 100000

The index is that of serve.py: windows of the collections in $LIKEWISE_EVAL_DATA/data, ten hits each. The answering
function of the prompt prints to a pseudo-terminal of 80 columns; what a person types, and drawing the next prompt, are
not in the times. Every question is asked once per mode, after ten others that warm the encoder and the caches.
"""

from __future__ import annotations

import os
import pty
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial

import numpy as np
from prompt_toolkit import PromptSession
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

from benchmarks import serve
from benchmarks.machine import machine
from search import Hits, Query, Searcher
from search.cli.hits.hits import Presentation, print_hits, stem_of
from search.cli.hits.prompt import Prompt
from search.query import Mode

QUESTIONS = 200
WARMING = 10
HITS = 10
MODES: tuple[Mode, ...] = ("dense", "hybrid", "words")


@contextmanager
def on_a_terminal() -> Iterator[None]:
    """Let standard output be a pseudo-terminal whose other end is read and forgotten."""
    reading, writing = pty.openpty()

    def drain() -> None:
        try:
            while os.read(reading, 1 << 16):
                pass
        except OSError:  # the other end is closed
            os.close(reading)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        with os.fdopen(writing, "w") as terminal, redirect_stdout(terminal):
            yield
    finally:
        thread.join()


def milliseconds(searcher: Searcher, mode: Mode, questions: list[str]) -> tuple[list[float], list[float]]:
    """Return how long the prompt takes for each question, and the CPU time of all threads."""
    stem = stem_of(searcher.language)

    def show(hits: Hits, first_rank: int) -> None:
        print_hits(hits, False, Presentation(stem=stem, first_rank=first_rank))

    prompt = Prompt(searcher, partial(Query), show, k=HITS, mode=mode, where=None)
    session: PromptSession[str] = PromptSession(input=DummyInput(), output=DummyOutput())
    times, cpu_times = [], []
    with on_a_terminal():
        for number, question in enumerate(questions):
            begun, cpu_begun = time.perf_counter(), time.process_time()
            prompt._obey(question, session)
            if number >= WARMING:
                times.append(1e3 * (time.perf_counter() - begun))
                cpu_times.append(1e3 * (time.process_time() - cpu_begun))
    return times, cpu_times


def main() -> None:
    passages = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    folder = serve.build(passages)
    os.environ |= {"COLUMNS": "80", "TERM": "xterm"}
    questions = serve.questions()[: WARMING + QUESTIONS]
    print(f"{machine()}\n\n{passages:,} passages, {HITS} hits, milliseconds\n")
    print("| mode | p50 | p90 | most | CPU, p50 | CPU, p90 |\n| --- | --- | --- | --- | --- | --- |")
    with Searcher(folder) as searcher:
        for mode in MODES:
            times, cpu_times = milliseconds(searcher, mode, questions)
            cells = [*np.percentile(times, [50, 90, 100]), *np.percentile(cpu_times, [50, 90])]
            print(f"| {mode} | {' | '.join(f'{cell:.1f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
