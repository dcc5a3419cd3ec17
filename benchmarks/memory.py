"""Peak memory of `likewise index` as a collection grows: 20,000 and 60,000 passages of about 45 tokens each.

`python -m benchmarks.memory`. The records are sentences of data/collection, drawn at random; each run is a process of
its own with a new index. What is bounded grows with the batch and not with the collection.
"""

from __future__ import annotations

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
    child = subprocess.Popen([LIKEWISE, "index", str(folder / f"{count}.index"), str(source)])
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_maxrss / 1024


def main() -> None:
    drawn = sentences()
    print(f"{machine()}\n\n| passages | peak memory, MB |\n| --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for count in SIZES:
            print(f"| {count:,} | {peak_megabytes(count, drawn, Path(folder)):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
