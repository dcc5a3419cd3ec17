"""What conditions cost: phrases, required and excluded words beside the same question without them, in both stores.

    python -m benchmarks.phrases [PASSAGES]        default: 100000

Texts are mixed from SciFact as in benchmarks.words_speed, vectors are random, of 384 dimensions. A phrase is two or
three words in a row of a text; frequent ones are the most frequent words of the texts. Times are medians over the
questions, each the fastest of several rounds, of the store alone: rows are not fetched and no text is embedded. The
server is that of $LIKEWISE_TEST_DSN, or one of its own. Reads $LIKEWISE_EVAL_DATA/data/scifact once.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks import words_speed
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.postgres import server
from indexer import Document, Index
from indexer.records import Vector
from indexer.stores.addresses.open import open_store
from indexer.stores.port import Condition, Conditions
from indexer.stores.reading.store import Store
from indexer.stores.words.exact import exact_words
from search.evaluation.measures import read_queries

DIMENSIONS = 384
QUESTIONS, ROUNDS = 20, 3
FREQUENT = 12
"""Number of words that count as frequent."""


def conditions_of(texts: Sequence[str]) -> dict[str, list[Conditions]]:
    """Return QUESTIONS conditions of each kind."""
    chance = random.Random(1)
    rows = [exact_words(text) for text in chance.sample(texts, 2000)]
    most = [word for word, _ in Counter(word for row in rows for word in row).most_common(FREQUENT)]
    frequent = frozenset(most)
    pairs = [(first, second) for row in rows for first, second in pairwise(row)]
    common = Counter(pair for pair in pairs if frequent.issuperset(pair)).most_common(10)

    def of(words: Sequence[str], *, excluded: bool = False) -> Conditions:
        return (Condition(" ".join(words), tuple(words), excluded),)

    def rare(length: int) -> list[str]:
        row = chance.choice([row for row in rows if len(row) > length])
        start = chance.randrange(len(row) - length)
        return row[start : start + length]

    return {
        "no condition": [()] * QUESTIONS,
        "a phrase": [of(rare(chance.choice((2, 3)))) for _ in range(QUESTIONS)],
        "without a phrase": [of(rare(2), excluded=True) for _ in range(QUESTIONS)],
        "a word": [of(rare(1)) for _ in range(QUESTIONS)],
        "a frequent word": [of([chance.choice(most)]) for _ in range(QUESTIONS)],
        "without a frequent word": [of([chance.choice(most)], excluded=True) for _ in range(QUESTIONS)],
        "a phrase of frequent words": [of(chance.choice(common)[0]) for _ in range(QUESTIONS)],
        "without a phrase of frequent words": [of(chance.choice(common)[0], excluded=True) for _ in range(QUESTIONS)],
    }


def fastest(
    store: Store, questions: Sequence[str], vectors: Vector, kinds: Mapping[str, Sequence[Conditions]]
) -> dict[str, list[float]]:
    """Return the milliseconds of a dense question, of one by words and of the candidates of a hybrid one, by kind.

    Each is the median over the questions of the fastest of ROUNDS calls. A round asks all kinds, so that what else the
    machine does slows all of them down.
    """
    took = {kind: np.full((3, QUESTIONS), np.inf) for kind in kinds}
    with store.snapshot() as snapshot:
        for _ in range(ROUNDS):
            for number in range(QUESTIONS):
                vector, question = vectors[number], questions[number]
                for kind, of_kind in kinds.items():
                    given = of_kind[number]
                    asked: list[Callable[[], object]] = [
                        partial(snapshot.dense, vector, 10, conditions=given),
                        partial(snapshot.words, question, 10, conditions=given),
                        partial(snapshot.candidates, vector, question, 100, None, "document", False, given),
                    ]
                    for mode, ask in enumerate(asked):
                        begun = time.perf_counter()
                        ask()
                        took[kind][mode, number] = min(took[kind][mode, number], time.perf_counter() - begun)
    return {kind: (1e3 * np.median(times, axis=1)).tolist() for kind, times in took.items()}


def main() -> None:
    passages = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    collection = evaluation_data() / "scifact"
    lines = (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    corpus = [Document(str(row["_id"]), row["text"]) for row in map(json.loads, lines)]
    documents = [document for document, _ in words_speed.mixed(corpus)[:passages]]
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(len(documents), DIMENSIONS)).astype(np.float32)
    questions = list(read_queries(collection / "queries.jsonl").values())[:QUESTIONS]
    rows = chance.normal(size=(QUESTIONS, DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kinds = conditions_of([document.text for document in documents])
    print(f"{machine()}, {len(documents):,} passages")
    print("| store | | dense | words | candidates of hybrid |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder, server() as uri:
        for name, address in (("folder", f"{folder}/x.index"), ("PostgreSQL", f"{uri}&index=phrases")):
            with Index.create(address, dimensions=DIMENSIONS) as index:
                for start in range(0, len(documents), 10_000):
                    index.add(documents[start : start + 10_000], vectors=vectors[start : start + 10_000])
                begun = time.perf_counter()
                index.compact()
                compacted = time.perf_counter() - begun
            store = open_store(address)
            begun = time.perf_counter()
            with store.snapshot() as snapshot:
                snapshot.words("warm", 1)
            opened = time.perf_counter() - begun
            for kind, times in fastest(store, questions, rows, kinds).items():
                print(f"| {name} | {kind} | {' | '.join(f'{ms:.1f} ms' for ms in times)} |", flush=True)
            print(f"\n{name}: compaction {compacted:.0f} s, first question by words {opened:.1f} s", flush=True)
            store.close()
        size = words_speed.size(Path(folder) / "x.index" / "words")
        text = sum(len(document.text.encode()) for document in documents)
        print(f"the word index has {size / 1e6:.0f} MB, {size / text:.2f} of the texts", flush=True)
        shutil.rmtree(Path(folder) / "x.index" / "words")
        store = open_store(f"{folder}/x.index")
        used = time.process_time()
        with store.snapshot() as snapshot:
            snapshot.words("warm", 1)
        store.close()
        print(f"it is made again of all texts in {time.process_time() - used:.0f} s of CPU time")


if __name__ == "__main__":
    main()
