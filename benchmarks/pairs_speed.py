"""The most similar pairs of 10,000 sentences: likewise against float32 sentence-transformers, side by side.

    python -m benchmarks.pairs_speed [--sentences 10000] [--repeats 3]

The first distinct sentences of STS-B train and dev, from $LIKEWISE_EVAL_DATA; the default model, the same threads,
models loaded and warm, in turns, medians. util.paraphrase_mining keeps up to 500,000 pairs of the 100 nearest of
each sentence; likewise is asked for 20 pairs, and for 500,000, and finds exactly the best.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer import Document
from indexer.encoders import load_encoder
from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model
from indexer.stores.pairs import nearest_pairs
from likewise.evaluation.pairs import pairs_of_texts
from likewise.evaluation.sts import read_sts

MANY = 500_000
COMPARED = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    folder = evaluation_data() / "sts"
    from sentence_transformers import SentenceTransformer, util

    texts = sentences(folder, arguments.sentences)
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    plain = SentenceTransformer(str(find_model(DEFAULT_MODEL)), device="cpu")
    fast = load_encoder(DEFAULT_MODEL)
    vectors = fast.encode(texts)
    plain.encode(texts[:500])
    contenders: dict[str, Callable[[], Any]] = {
        "sentence-transformers float32, paraphrase_mining": lambda: util.paraphrase_mining(plain, texts),
        "likewise, 20 pairs": lambda: pairs_of_texts(documents, fast, 20),
        f"likewise, {MANY:,} pairs": lambda: pairs_of_texts(documents, fast, MANY),
        "of which: embedding": lambda: fast.encode(texts),
        "of which: 20 pairs of vectors": lambda: nearest_pairs(vectors, 20),
        f"of which: {MANY:,} pairs of vectors": lambda: nearest_pairs(vectors, MANY),
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, Any] = {}
    for _ in range(arguments.repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            results[name] = run()
            taken[name].append(time.perf_counter() - start)
    reference = statistics.median(next(iter(taken.values())))
    print(f"{machine()}; {len(texts):,} sentences\n\n| | seconds | of the first |\n| --- | --- | --- |")
    for name, times in taken.items():
        seconds = statistics.median(times)
        print(f"| {name} | {seconds:.2f} ({min(times):.2f} to {max(times):.2f}) | {seconds / reference:.3f} |")
    mined, own = (results[name] for name in list(contenders)[0:3:2])
    theirs = {(min(i, j), max(i, j)) for _, i, j in mined[:COMPARED]}
    ours = {(int(pair.first.uri), int(pair.second.uri)) for pair in own.pairs[:COMPARED]}
    apart = np.abs([pair.score - score for pair, (score, _, _) in zip(own.pairs, mined[:COMPARED], strict=False)]).max()
    print(
        f"\nBest {COMPARED:,} pairs: {len(theirs & ours) / COMPARED:.1%} the same, scores at most {apart:.4f} apart "
        f"(likewise embeds in {str(fast.transformer.dtype).removeprefix('torch.')})"  # type: ignore[attr-defined]
    )


def sentences(folder: Path, count: int) -> list[str]:
    """The first distinct sentences of STS-B, train and then dev, each pair's first before its second."""
    found: dict[str, None] = {}
    for name in ("train", "dev"):
        judged = read_sts(folder / f"stsb-{name}.tsv")
        found |= dict.fromkeys(text for pair in zip(judged.first, judged.second, strict=True) for text in pair)
    return list(found)[:count]


if __name__ == "__main__":
    main()
