"""A change of the model under load: SciFact from the default model to potion-base-4m and back, killed at 30 points.

`python -m benchmarks.migrate [POINTS]`, with $LIKEWISE_EVAL_DATA. Eight threads ask, with a pause of 50 ms, and a
process writes, while `likewise migrate` runs, is killed with SIGKILL and run again until it is through. A third of the
points kill `likewise migrate --back`. No question may fail, the cosines of each answer must be those of one model, and
every document that was acknowledged must be there with both models. Then the memory of a build at 25,000 and at 100,000
passages, with an encoder that costs nothing.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from indexer.encoders import load_encoder
from indexer.indexing.core import IndexCore
from indexer.migration.migrate import back
from indexer.stores.local.disk.failpoint import EXCHANGE_STEPS
from indexer.stores.reading.store import Store
from search import Searcher
from search.evaluation.measures import read_queries

READERS = 8
SIZES = (25_000, 100_000)
OLD_MODEL = "all-MiniLM-L6-v2"

NAMED_STEPS = (
    *EXCHANGE_STEPS,
    "commit.begun:3",
    "commit.written:4",
    "commit.done:5",
    "seal.recorded",
    "words.recorded",
)
"""Named points at which the process is killed; at all others it is killed after a random time."""

NAMED_STEPS_BACK = ("commit.begun", "commit.written", "commit.done", *EXCHANGE_STEPS)
"""The same for `--back`."""

WRITER = """
import sys, time
from indexer import Document, Index
from indexer.errors import RecipeMismatch
number, index = 0, Index.open(sys.argv[1])
while True:
    document = Document(f"written {number}", f"Note {number}: a document that was written while the model was changed.")
    try:
        index.add([document])
    except RecipeMismatch:
        index = Index.open(sys.argv[1])
        continue
    print(document.uri, flush=True)
    number += 1
    time.sleep(0.3)
"""

BUILD = """
import re, sys
import numpy as np
from indexer import Document, Index, Recipe
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import settings_of_new
from indexer.migration.migrate import build, open_next
from indexer.indexing.runs import after_embedding

class Random:
    def __init__(self, name, max_tokens):
        self.recipe, self.max_tokens, self.dimensions = Recipe(name, name[0] * 64, 64, max_tokens), max_tokens, 64
    def overhead(self, role="document"):
        return 2
    def offsets(self, texts):
        return [np.array([m.span() for m in re.finditer(r"\\w+", text)], np.int32).reshape(-1, 2) for text in texts]
    def encode(self, texts, role="document", truncate=False):
        rows = np.random.default_rng(len(texts)).normal(size=(len(texts), 64)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

address, count, step = sys.argv[1], int(sys.argv[2]), sys.argv[3]
old, new = Random("a", 64), Random("b", 48)
quiet = lambda *_: None
if step == "make":
    with Index.create(address, old) as index:
        for start in range(0, count, 5000):
            index.add(Document(f"d{i}", f"text {i} " + "some words of it " * 5) for i in range(start, start + 5000))
    with IndexCore.open(address, old) as core, core.store.writer() as writer:  # as every run ends
        writer.settle()
        after_embedding(core, writer)
else:
    with IndexCore.open(address, old) as main:
        other = open_next(main, settings_of_new(new)[0], new, disk=quiet)
        print(build(main, other).passages)
# getrusage counts the memory that the parent had when it started this process.
print(int(re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]) / 1024)
"""

Vectors = dict[tuple[str, int], NDArray[np.float32]]
"""The vector of each passage, by the uri of its document and its first character."""


@dataclass
class Readers:
    """Threads that ask questions, and what they were answered."""

    address: str
    questions: list[str]
    answers: list[tuple[str, list[tuple[str, int, float]]]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    def __post_init__(self) -> None:
        self._searcher, self._stop = Searcher(self.address), threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(READERS)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        chance = random.Random(number)
        while not self._stop.is_set():
            question, begun = chance.choice(self.questions), time.perf_counter()
            try:
                hits = self._searcher.search(question, 10, mode=chance.choice(["dense", "dense", "hybrid"]))
            except Exception as error:  # noqa: BLE001 - counted: none may fail
                self.errors.append(f"{type(error).__name__}: {error}")
                continue
            self.slowest_s = max(self.slowest_s, time.perf_counter() - begun)
            self.errors += [note for note in hits.notes if "cannot be read" in note]
            self.answers.append((question, [(hit.uri, hit.start, hit.cosine or 0.0) for hit in hits]))
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._searcher.close()


def vectors_of(store: Store) -> Vectors:
    """Read every passage's vector of an index."""
    return {
        (item.document.uri, span.start): row
        for item in store.export()
        if item.spans is not None and item.vectors is not None
        for span, row in zip(item.spans, item.vectors, strict=True)
    }


def explained(answer: list[tuple[str, int, float]], question: NDArray[np.float32], vectors: Vectors) -> bool:
    """Return whether one model gives all cosines of an answer."""
    for uri, start, cosine in answer:
        row = vectors.get((uri, start))
        if row is None or abs(float(row @ question) - cosine) > 5e-3:
            return False
    return True


def migrate(address: str, *arguments: str, kill_at: str = "", after_s: float | None = None) -> tuple[int, Any]:
    """Run the command, and kill it at a named point or after a time; return its exit code and the JSON it printed."""
    environment = {**os.environ, "LIKEWISE_KILL_AT": kill_at}
    child = subprocess.Popen(
        [LIKEWISE, "migrate", address, *arguments, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        out, err = child.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.communicate()
        return -9, None
    if child.returncode not in (0, 2, -9):
        raise SystemExit(f"migrate ended with {child.returncode}: {err}")
    return child.returncode, json.loads(out.splitlines()[-1]) if out else None


def under_load(folder: Path, data: Path, model: str, points: int) -> None:
    address, scifact = str(folder / "scifact.index"), data / "scifact"
    judged = ["--queries", str(scifact / "queries.jsonl"), "--qrels", str(scifact / "qrels" / "test.tsv")]
    change = ["--model", model, "--no-cache", "--yes"]
    subprocess.run([LIKEWISE, "index", address, str(scifact / "corpus.jsonl")], check=True, capture_output=True)
    questions = list(read_queries(scifact / "queries.jsonl").values())[:200]
    readers, written = Readers(address, questions), list[str]()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, address], stdout=subprocess.PIPE, text=True)

    def listen() -> None:
        assert writer.stdout is not None
        written.extend(line.strip() for line in writer.stdout)

    listener = threading.Thread(target=listen)
    listener.start()
    begun = time.perf_counter()
    kills = killed(address, change, points - points // 3)
    code, found = migrate(address, *change, *judged)
    assert code == 0, found
    assert found["switched"], found
    took, verdict = time.perf_counter() - begun, found["verdict"]
    time.sleep(3)  # the writer goes on, and what it writes has to be brought over
    kills_back = killed_back(address, points // 3)
    backs = []
    for _ in range(4):
        with IndexCore.open(address) as main:
            started = time.perf_counter()
            back(main)
            backs.append(time.perf_counter() - started)
        time.sleep(1)
    writer.kill()
    writer.wait()
    listener.join()
    readers.stop()
    migrate(address, "--back")  # now that nobody writes, each of them has every document
    migrate(address, "--back")
    command = time.perf_counter()
    migrate(address, "--back")
    command = time.perf_counter() - command
    check(address, readers, written, model)
    print(f"| killed, and run again | {kills} times, {took:.0f} s in all |")
    print(f"| `--back` killed, and run again | {kills_back} times |")
    print(f"| questions of {READERS} threads | {len(readers.answers):,}, slowest {readers.slowest_s:.1f} s |")
    print(f"| documents written meanwhile | {len(written)} |")
    print(f"| back, in a process that runs | {', '.join(f'{seconds:.2f}' for seconds in backs)} s |")
    print(f"| `likewise migrate --back` | {command:.2f} s |")
    print(f"\n```json\n{json.dumps(verdict, indent=1)}\n```\n", flush=True)


def killed(address: str, change: list[str], points: int) -> int:
    """Kill as many runs, each time beginning where the last one ended; return how many were killed."""
    chance, kills = random.Random(0), 0
    steps = [*NAMED_STEPS][-points:]
    while kills < points:
        if steps:
            code, _ = migrate(address, *change, kill_at=steps.pop())
        else:
            code, _ = migrate(address, *change, after_s=chance.uniform(1, 20))
        kills += code == -9
        if _switched(address):  # it came through, or was killed right after the switch: all over again
            migrate(address, "--back")
            migrate(address, "--drop")
    return kills


def killed_back(address: str, points: int) -> int:
    """Kill as many returns, in both directions; return how many were killed."""
    chance, kills = random.Random(1), 0
    steps = [*NAMED_STEPS_BACK][-points:]
    while kills < points:
        if steps:
            code, _ = migrate(address, "--back", kill_at=steps.pop())
        else:
            code, _ = migrate(address, "--back", after_s=chance.uniform(0.5, 5))
        kills += code == -9
        time.sleep(1)  # for the writer
    return kills


def _switched(address: str) -> bool:
    with IndexCore.open(address) as main, main.store.writer():  # a writer completes what a killed process began
        return main.store.engine.exists("previous")


def check(address: str, readers: Readers, written: list[str], model: str) -> None:
    """End the program if anything is not as it must be."""
    with IndexCore.open(address) as main:
        other = main.store.engine.open("previous")
        assert other is not None
        sides = {}
        for store in (main.store, other):
            with store.snapshot() as snapshot:
                recipe, uris, report = snapshot.settings.recipe, set(snapshot.uris()), snapshot.check(None)
            assert recipe is not None
            assert report.ok, report
            missing = set(written) - uris
            assert not missing, f"{recipe} lacks {sorted(missing)[:3]}"
            sides[str(recipe)] = (load_encoder(recipe.model), vectors_of(store))
    assert not readers.errors, readers.errors[:3]
    asked = sorted({question for question, _ in readers.answers})
    questions = {
        name: dict(zip(asked, encoder.encode(asked, role="query", truncate=True), strict=True))
        for name, (encoder, _) in sides.items()
    }
    counts = dict.fromkeys(sides, 0)
    for question, answer in readers.answers:
        made = [name for name in sides if explained(answer, questions[name][question], sides[name][1])]
        assert len(made) == 1, f"{question!r}: {made} explains {answer}"
        counts[made[0]] += 1
    assert all(counts.values()), counts
    print(f"{machine()}\n\n| | |\n| --- | --- |")
    print("| answers by model | " + ", ".join(f"{Path(name).name} {count:,}" for name, count in counts.items()) + " |")


def memory(folder: Path) -> None:
    print("| passages | peak memory of indexing them, MB | and of the build with another model |\n| --- | --- | --- |")
    for count in SIZES:
        command = [sys.executable, "-c", BUILD, str(folder / f"{count}.index"), str(count)]
        peaks = [
            float(subprocess.run([*command, step], check=True, capture_output=True, text=True).stdout.split()[-1])
            for step in ("make", "build")
        ]
        print(f"| {count:,} | {peaks[0]:,.0f} | {peaks[1]:,.0f} |", flush=True)


def main() -> None:
    data = evaluation_data()
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    model = str(data.parent / "models" / "potion-base-4m-fp32")
    with tempfile.TemporaryDirectory() as folder:
        under_load(Path(folder), data, model, points)
        memory(Path(folder))


if __name__ == "__main__":
    main()
