"""The map against principal components: how many neighbours it keeps, how long it takes, and the names of its regions.

    python -m benchmarks.maps [INDEX...]      default: indexes of $LIKEWISE_EVAL_DATA/data/scifact and peps, made here

Share of a document's ten nearest by cosine that are among its fifty nearest on the map, over 1,000 documents.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE
from indexer.records import Vector
from indexer.stores.addresses.open import open_store
from indexer.stores.words.analysis import stored_analysis
from likewise.map.draw import document_vectors
from likewise.map.projection import principal_components, project
from likewise.map.regions import find_regions


def neighbours_kept(vectors: Vector, places: NDArray[np.floating], sample: int = 1000) -> float:
    """Return the share of documents' ten nearest by cosine that are among their fifty nearest on the map.

    Args:
        sample: how many documents to look at.
    """
    chosen = np.random.default_rng(0).permutation(len(vectors))[:sample]
    kept = []
    for document in chosen:
        cosines = vectors @ vectors[document]
        distances = ((places - places[document]) ** 2).sum(axis=1)
        cosines[document], distances[document] = -np.inf, np.inf
        near = np.argsort(-cosines)[:10]
        on_map = np.argsort(distances)[:50]
        kept.append(np.isin(near, on_map).mean())
    return float(np.mean(kept))


def report(index: Path) -> None:
    store = open_store(str(index))
    documents, vectors = document_vectors(store)
    project(vectors[:100])  # compiles
    begun = time.perf_counter()
    places = project(vectors)
    seconds = time.perf_counter() - begun
    kept, plain = neighbours_kept(vectors, places), neighbours_kept(vectors, principal_components(vectors))
    print(f"| {index.stem} | {len(documents):,} | {seconds:.0f} | {kept:.2f} | {plain:.2f} |\n", flush=True)
    for region in find_regions(places, documents, vectors, stored_analysis("en")):
        if region.level < 2:
            print(f"{'  ' * region.level}* {', '.join(region.terms)} ({region.documents})")
    print()


def main() -> None:
    print(f"{machine()}\n\n| index | documents | seconds | neighbours kept | principal components |")
    print("| --- | --- | --- | --- | --- |")
    if sys.argv[1:]:
        for argument in sys.argv[1:]:
            report(Path(argument))
        return
    for name, source in (("scifact", "scifact/corpus.jsonl"), ("peps", "peps")):
        with tempfile.TemporaryDirectory() as folder:
            index = Path(folder) / f"{name}.index"
            subprocess.run([LIKEWISE, "index", index, evaluation_data() / source], check=True, capture_output=True)
            report(index)


if __name__ == "__main__":
    main()
