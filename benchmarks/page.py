"""From the last key to the first hit on the page, in a browser, with 100,000 passages served on loopback; and from the
address of a question to its hits on a slow line, with an empty cache.

    python -m benchmarks.page [PASSAGES]      default: 100000

Reads $LIKEWISE_EVAL_DATA and needs Chromium (LIKEWISE_TEST_CHROMIUM, or on PATH) and playwright. Texts and vectors are
mixed from SciFact as in hybrid_speed.py; the index has the default model, which embeds the questions. The index is kept
in the temporary folder. A question is typed key by key; time counts from the last key to the frame that draws its hits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

from benchmarks import scale, words_speed
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer import Document, Index
from search import Searcher

QUESTIONS = 40
KEY_MS = 40
"""Milliseconds between two keys: a fast typist's, so that requests are cancelled as they would be."""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
"""A slow line: milliseconds per round trip, and bytes per second."""
ADDRESSES = 7

FIRST_HIT = """new MutationObserver(() => {
    if (window.firstHit || !document.querySelector("#hits > li")) return;
    requestAnimationFrame(() => { window.firstHit ??= performance.now(); });
}).observe(document, { childList: true, subtree: true });"""

MEASURE = """() => {
    const field = document.querySelector("#question");
    const list = document.querySelector("#hits");
    window.measured = null;
    field.addEventListener("input", () => { window.lastKey = performance.now(); window.measured = null; });
    new MutationObserver(() => {
        const key = window.lastKey;
        requestAnimationFrame(() => setTimeout(() => {
            if (key === window.lastKey && window.measured === null && list.dataset.question === field.value.trim()) {
                window.measured = performance.now() - key;
            }
        }));
    }).observe(list, { childList: true, attributes: true });
}"""


def make_index(passages: int) -> Path:
    """Return an index of the default model with this many passages, made at the first call."""
    folder = scale.CACHE / f"page-{passages}.index"
    if folder.exists():
        return folder
    real, _ = scale.embeddings()
    corpus = map(json.loads, (evaluation_data() / "scifact" / "corpus.jsonl").read_text().splitlines())
    texts = [document for document, _ in words_speed.mixed([Document(row["_id"], row["text"]) for row in corpus])]
    texts = [
        Document(text.uri, text.text, metadata={"year": 1970 + number % 50, "half": "ab"[number % 2], "doi": text.uri})
        for number, text in enumerate(texts[:passages])
    ]
    making = folder.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    with Index.create(making) as index:
        start = 0
        for rows in scale.mixed(real, len(texts)):
            index.add(texts[start : start + len(rows)], vectors=rows)
            start += len(rows)
        index.compact()
    return making.rename(folder)


@contextmanager
def serving(index: Path) -> Iterator[str]:
    """Serve an index in a process of its own, and give its address."""
    command = [sys.executable, "-c", "from likewise.shell import main; main()", "serve", str(index), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if match := re.search(r"http://\S+", line):
                yield match[0]
                break
    finally:
        process.terminate()
        process.wait()


def on_a_slow_line(browser: Browser, address: str) -> float:
    """Return the milliseconds from an address to its hits, with an empty cache."""
    with browser.new_context() as context:
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", SLOW)
        page.add_init_script(FIRST_HIT)
        page.goto(address, wait_until="commit")
        while not (drawn := page.evaluate("window.firstHit ?? 0")):
            time.sleep(0.05)
    return float(drawn)


def main() -> None:
    passages = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    chromium = os.environ.get("LIKEWISE_TEST_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("benchmarks.page: there is no Chromium: install one, or name it in LIKEWISE_TEST_CHROMIUM")
    index = make_index(passages)
    with Searcher(index) as searcher:
        begun = time.perf_counter()
        for field in searcher.info().fields:
            searcher.values(field)
        listing = time.perf_counter() - begun
    queries = evaluation_data() / "scifact" / "queries.jsonl"
    questions = [json.loads(line)["text"] for line in queries.read_text().splitlines()][-QUESTIONS:]
    with serving(index) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("#question:enabled")
        page.evaluate(MEASURE)
        times = []
        for question in questions:
            asked = " ".join(question.split()[:6])
            page.fill("#question", "")
            page.focus("#question")
            page.keyboard.type(asked, delay=KEY_MS)
            while (measured := page.evaluate("window.measured")) is None:  # the policy forbids wait_for_function
                time.sleep(0.02)
            times.append(measured)
            time.sleep(0.5)
        slow = sorted(on_a_slow_line(browser, f"{address}/?q={quote(question)}") for question in questions[:ADDRESSES])
        browser.close()
    times = sorted(times[5:])
    print(f"{machine()}\n\n| {passages:,} passages, hybrid, 10 hits | ms |\n| --- | --- |")
    print(f"| last key to first hits drawn, median | {statistics.median(times):.0f} |")
    print(f"| the same, nine of ten | {times[int(0.9 * len(times))]:.0f} |")
    print(
        f"| address to hits at 400 ms per round trip and 50 kB/s, empty cache, median | {statistics.median(slow):.0f} |"
    )
    print(f"| listing the fields with their values, once per commit | {1e3 * listing:.0f} |")


if __name__ == "__main__":
    main()
