"""Peak memory of `likewise index` as a collection grows: 20,000 and 60,000 passages of about 45 tokens each.

`python -m benchmarks.memory`. The records are sentences of data/collection, drawn at random; each run is a process of
its own with a new index. What is bounded grows with the batch and not with the collection.

`python -m benchmarks.memory --mail MODEL` does so for mailboxes of 20,000, 60,000 and 100,000 messages of 560 bytes,
and once more for each when nothing has changed. With a model of static vectors it takes minutes, not hours.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import tempfile
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE

SIZES = (20_000, 60_000)
MAILBOXES = (20_000, 60_000, 100_000)
WORDS = (
    "sea ship harbour wind sail rope anchor deck captain storm island map lighthouse wave tide coast fish net boat crew"
)
COLLECTION = Path(__file__).parents[1] / "data" / "collection"


def sentences() -> list[str]:
    files = sorted([*COLLECTION.rglob("*.md"), *COLLECTION.rglob("*.txt"), *COLLECTION.glob("*.jsonl")])
    text = " ".join(file.read_text(encoding="utf-8") for file in files)
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+", text) if 40 < len(part) < 160]


def peak_megabytes(count: int, drawn: list[str], folder: Path) -> float:
    chance = random.Random(count)
    source = folder / f"{count}.jsonl"
    with source.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(chance.sample(drawn, 2))
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    return peak_of_run(str(folder / f"{count}.index"), str(source))


def peak_of_run(*arguments: str) -> float:
    child = subprocess.Popen([LIKEWISE, "index", *arguments])
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_maxrss / 1024


def write_mailbox(file: Path, count: int) -> None:
    chance, words = random.Random(1), WORDS.split()
    with file.open("w", encoding="utf-8") as stream:
        for number in range(count):
            body = "\n".join(" ".join(chance.choices(words, k=10)) for _ in range(6))
            stream.write(
                f"From a@example.org Wed May  1 10:00:00 2024\nFrom: A {number % 50} <a{number % 50}@example.org>\n"
                f"To: b@example.org\nSubject: {' '.join(chance.choices(words, k=4))}\n"
                f"Date: Wed, 1 May 2024 10:00:00 +0200\nMessage-ID: <2024.{number}.{number * 7919}@mail.example.org>\n"
                f"\n{body}\n\n"
            )


def compare_mailboxes(model: str, folder: Path) -> None:
    print(f"{machine()}\n\n| messages | peak memory, MB | nothing has changed, MB |\n| --- | --- | --- |")
    for count in MAILBOXES:
        write_mailbox(folder / f"{count}.mbox", count)
        index, source = str(folder / f"{count}.index"), str(folder / f"{count}.mbox")
        first, again = peak_of_run(index, source, "--model", model), peak_of_run(index, source)
        print(f"| {count:,} | {first:,.0f} | {again:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mail", metavar="MODEL", help="measure mailboxes, with this model")
    if model := parser.parse_args().mail:
        with tempfile.TemporaryDirectory() as folder:
            compare_mailboxes(model, Path(folder))
        return
    drawn = sentences()
    print(f"{machine()}\n\n| passages | peak memory, MB |\n| --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for count in SIZES:
            print(f"| {count:,} | {peak_megabytes(count, drawn, Path(folder)):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
