"""Twenty questions to the PEPs: whether the passages of reStructuredText lead to the right document.

`python -m benchmarks.peps [FOLDER]`; the default is $LIKEWISE_EVAL_DATA/data/peps. peps_questions.tsv has the questions
with the numbers of the PEPs that answer them; they were written before any result was seen. Printed are how many of
them have a right PEP first, and within the first three, and the speed of indexing in elapsed and in processor time,
all of it included: reading, cutting, embedding, measuring the index and compiling its encoder.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from search import Mode, Searcher

QUESTIONS = Path(__file__).with_name("peps_questions.tsv")
DEPTH = 10
_NUMBERED = re.compile(r"pep-(\d{4})\.rst")


def questions() -> list[tuple[str, set[int]]]:
    """Return the questions with the numbers of the PEPs that answer them."""
    rows = (line.split("\t") for line in QUESTIONS.read_text(encoding="utf-8").splitlines())
    return [(question, {int(number) for number in numbers.split()}) for question, numbers in rows]


def rank(uris: list[str], right: set[int]) -> int | None:
    """Return the rank, from 1, of the first right PEP among the uris of hits; None where there is none."""
    numbers = [int(match[1]) if (match := _NUMBERED.search(uri)) else None for uri in uris]
    return next((place for place, number in enumerate(numbers, 1) if number in right), None)


def index(folder: Path, address: str) -> tuple[float, float]:
    """Index a folder through the shell. Return the elapsed and the processor time in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([LIKEWISE, "index", address, str(folder)], check=True, capture_output=True)
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else evaluation_data(" and no folder was given") / "peps"
    asked = questions()
    with tempfile.TemporaryDirectory() as temporary:
        address = str(Path(temporary) / "peps.index")
        elapsed, processor = index(folder, address)
        info = subprocess.run([LIKEWISE, "info", address, "--json"], check=True, capture_output=True, text=True)
        documents, passages = (json.loads(info.stdout)[name] for name in ("documents", "passages"))
        print(
            f"{machine()}\n\n{documents} documents, {passages} passages: {elapsed:.0f} s elapsed and {processor:.0f} s"
        )
        print(f"of processor time, {passages / elapsed:.0f} and {passages / processor:.0f} passages per second\n")
        ranks = {}
        with Searcher(address) as searcher:
            for mode in get_args(Mode):
                answers = searcher.search_many([question for question, _ in asked], DEPTH, mode=mode)
                ranks[mode] = [
                    rank([hit.uri for hit in hits], right) for hits, (_, right) in zip(answers, asked, strict=True)
                ]
    print("| mode | right PEP first | within the first three |\n| --- | --- | --- |")
    for mode, places in ranks.items():
        first, three = (sum(place is not None and place <= depth for place in places) for depth in (1, 3))
        print(f"| {mode} | {first} of {len(asked)} | {three} of {len(asked)} |")
    print(f"\n| question | {' | '.join(ranks)} |\n| --- |{' --- |' * len(ranks)}")
    for (question, _), *places in zip(asked, *ranks.values(), strict=True):
        print(f"| {question} | {' | '.join(str(place or '-') for place in places)} |")


if __name__ == "__main__":
    main()
