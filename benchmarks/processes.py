"""Memory of processes that search: one, and four workers that are forked after a question or started by themselves.

`python -m benchmarks.processes`. Proportional set sizes (PSS), in which memory that processes share counts once; Linux.
The index is data/collection; questions are answered by its compiled encoder, or by torch where it has none.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE

COLLECTION = Path(__file__).parents[1] / "data" / "collection"
WORKERS = 4

WORKER = """
import os, re, sys
from pathlib import Path
from search import Searcher

def megabytes(process="self"):
    return int(re.search(r"^Pss:\\s+(\\d+)", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)[1]) / 1024

def ask(mode):
    for question in ("why has my bread gone stale", "what do dogs fear"):
        searcher.search(question, 10, mode=mode)

address, *modes = sys.argv[1:]
searcher = Searcher(address)
for mode in modes:
    ask(mode)
"""

ALONE = WORKER + "print(megabytes())"

FORKED = (
    WORKER
    + f"""
ready, go = os.pipe(), os.pipe()
children = []
for _ in range({WORKERS}):
    if (child := os.fork()) == 0:
        os.close(go[1])
        ask("dense"), ask("hybrid")
        os.write(ready[1], b".")
        os.read(go[0], 1)
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(ready[0], 1)
print(sum(map(megabytes, [os.getpid(), *children])))
os.close(go[1])
for child in children:
    os.waitpid(child, 0)
"""
)

SPAWNED = WORKER + "print(flush=True); input(); print(megabytes(), flush=True); input()"


def spawned(address: str) -> float:
    """Megabytes of workers that were started one by one, all of them alive."""
    command = [sys.executable, "-c", SPAWNED, address, "dense", "hybrid"]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(WORKERS)
    ]
    total = 0.0
    for answered in (False, True):
        for worker in workers:
            assert worker.stdin
            assert worker.stdout
            if answered:
                worker.stdin.write("\n")
                worker.stdin.flush()
                total += float(worker.stdout.readline())
            else:
                worker.stdout.readline()
    for worker in workers:
        worker.communicate("\n")
    return total


def one(program: str, *arguments: str) -> float:
    """Megabytes that a program prints last."""
    done = subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compiled, plain = str(Path(folder) / "compiled.index"), str(Path(folder) / "plain.index")
        subprocess.run([LIKEWISE, "index", compiled, str(COLLECTION)], check=True, capture_output=True)
        subprocess.run([LIKEWISE, "copy", compiled, plain], check=True, capture_output=True)
        for file in (Path(plain) / "encoder").iterdir():
            file.unlink()
        (Path(plain) / "encoder").rmdir()
        print(f"{machine()}\n\n| what runs | MB, compiled encoder | MB, torch |\n| --- | --- | --- |")
        for name, modes in (
            ("a searcher, opened", ()),
            ("after questions by words", ("words",)),
            ("after questions in every mode", ("words", "dense", "hybrid")),
        ):
            sizes = [one(ALONE, address, *modes) for address in (compiled, plain)]
            print(f"| {name} | {sizes[0]:.0f} | {sizes[1]:.0f} |", flush=True)
        forked = [one(FORKED, address, "dense", "hybrid") for address in (compiled, plain)]
        print(f"| {WORKERS} workers forked after a question, with their parent | {forked[0]:.0f} | {forked[1]:.0f} |")
        started = [spawned(address) for address in (compiled, plain)]
        print(f"| {WORKERS} workers started by themselves | {started[0]:.0f} | {started[1]:.0f} |")


if __name__ == "__main__":
    main()
