"""How soon the map is drawn in a browser, and how smoothly it moves, without a GPU.

    python -m benchmarks.map_drawing [POINTS]      default: 100000

Chromium has to be installed. The index has one vector per document and random places around forty centres.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from playwright.sync_api import sync_playwright

from benchmarks.machine import machine
from benchmarks.serve import serving
from indexer import Document, Index
from indexer.stores.addresses.open import open_store
from likewise.map.file import Map, write_map
from likewise.map.regions import Region

ROUNDS = 5
STEPS = 90


def build(folder: Path, points: int) -> None:
    random = np.random.default_rng(0)
    centres = random.uniform(0.1, 0.9, (40, 2))
    places = np.clip(centres[random.integers(40, size=points)] + random.normal(0, 0.05, (points, 2)), 0, 1)
    documents = [Document(str(number), f"document {number}", f"Title {number}") for number in range(points)]
    with Index.create(folder, dimensions=2) as index:
        index.add(documents, vectors=random.normal(size=(points, 2)))
    regions = tuple(Region(x, y, 0, points // 40, ("some", "terms")) for x, y in centres)
    store = open_store(str(folder))
    record = write_map(store.derived(), Map(tuple(each.uri for each in documents), places.astype(np.float32), regions))
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, map=record))
    store.close()


def main() -> None:
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    chromium = subprocess.run(["which", "chromium"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bench.index"
        build(folder, points)
        with serving(folder) as service, sync_playwright() as playwright:
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            first, rates = [], []
            for _ in range(ROUNDS):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                begun = time.perf_counter()
                page.goto(f"http://127.0.0.1:{service.port}/?view=map")
                page.wait_for_selector("#map-regions li")
                page.wait_for_selector("#map-canvas[data-drawn]")
                first.append(time.perf_counter() - begun)
                page.mouse.move(640, 450)
                page.mouse.down()
                before = int(page.get_attribute("#map-canvas", "data-drawn") or 0)
                begun = time.perf_counter()
                for step in range(STEPS):
                    page.mouse.move(640 + step, 450 + step % 7)
                drawn = int(page.get_attribute("#map-canvas", "data-drawn") or 0) - before
                rates.append(drawn / (time.perf_counter() - begun))
                page.close()
            browser.close()
    print(f"{machine()}, {points:,} points\n\n| | |\n| --- | --- |")
    print(f"| from the address to the first frame | {median(first) * 1000:.0f} ms |")
    print(f"| frames per second while it is dragged | {median(rates):.0f} |")


if __name__ == "__main__":
    main()
