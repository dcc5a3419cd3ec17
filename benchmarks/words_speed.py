"""Searching by words: quality by document and by passage, latency, and what the word index costs to build and keep.

    python -m benchmarks.words_speed [FOLDER]      default: $LIKEWISE_EVAL_DATA/data

Passages are cut as the default model reads them, and not embedded. The second table asks 100,000 passages mixed from
the first collection's, with and without a filter; latencies are medians of the whole call, rows not fetched.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.data import folder_asked
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, load_encoder
from indexer.filters.parse import parse
from indexer.filters.tree import Where
from indexer.passages.cut import PassageSettings, cut
from indexer.records import Span
from indexer.settings import Settings
from indexer.stores.addresses.open import create_store
from indexer.stores.hashes import row_hash
from indexer.stores.port import Batch, EmbeddedDocument, Hashes, Ranking, Unit
from indexer.stores.reading.store import Store
from likewise.evaluation.measures import evaluate, read_qrels, read_queries

LANGUAGES = {"xquad/de": "de", "xquad/ar": "ar"}
MANY = 100_000

Cut = tuple[Document, Sequence[Span]]


def filled(folder: Path, language: str, documents: Iterable[Cut]) -> tuple[Store, float]:
    """A store of these documents with one and the same vector for all, and the seconds that its word index took."""
    store = create_store(folder, Settings(2, language=language))
    row = np.ones((1, 2), np.float32) / np.sqrt(2)
    work = [
        EmbeddedDocument(
            document,
            Hashes(document.uri.encode(), row_hash(document)),
            tuple(spans),
            np.repeat(row, len(spans), axis=0),
        )
        for document, spans in documents
    ]
    with store.writer() as writer:
        writer.put(Batch(work))
        begun = time.perf_counter()
        writer.settle()
    return store, time.perf_counter() - begun


def words(store: Store, text: str, k: int, where: Where | None = None, unit: Unit = "document") -> Ranking:
    with store.snapshot() as snapshot:
        return snapshot.words(text, k, where, unit)


def median(ask: Callable[[str], object], questions: Sequence[str]) -> float:
    """Milliseconds."""
    took = []
    for question in questions:
        begun = time.perf_counter()
        ask(question)
        took.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(took)


def ndcg(store: Store, collection: Path, unit: Unit) -> float:
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
    run = {}
    for query in qrels.judged:
        with store.snapshot() as snapshot:
            found = snapshot.words(queries[query], 10 if unit == "document" else 60, None, unit)
            uris = dict.fromkeys(passage.uri for passage in snapshot.passages_by_id(found.passages.tolist()))
        run[query] = [(uri, -float(rank)) for rank, uri in enumerate(uris)][:10]
    return evaluate(run, qrels, ["nDCG@10"]).averages["nDCG@10"]


def size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def judge(collection: Path, name: str, settings: PassageSettings) -> list[Document]:
    """Print the collection's line of the first table."""
    encoder = load_encoder("all-MiniLM-L6-v2")
    lines = (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    documents = [Document(str(row["_id"]), row["text"], row.get("title") or "") for row in rows]
    spans = cut(documents, encoder, settings, 0)
    with tempfile.TemporaryDirectory() as folder:
        store, seconds = filled(Path(folder) / "x.index", LANGUAGES.get(name, "en"), zip(documents, spans, strict=True))
        questions = list(read_queries(collection / "queries.jsonl").values())[:500]
        text = sum(len(document.text.encode()) for document in documents)
        words(store, questions[0], 10)
        print(
            f"| {name} | {len(documents):,} | {sum(map(len, spans)):,} | {ndcg(store, collection, 'document'):.4f} "
            f"| {ndcg(store, collection, 'passage'):.4f} | {median(lambda q: words(store, q, 10), questions):.2f} "
            f"| {seconds:.1f} | {size(Path(store.address) / 'words') / text:.2f} |",
            flush=True,
        )
        store.close()
    return documents


def mixed(documents: Sequence[Document]) -> list[Cut]:
    """MANY documents of one passage, each of two halves of others."""
    chance = random.Random(0)
    pieces = [document.text[at : at + 450] for document in documents for at in range(0, len(document.text), 450)]
    texts = (f"{chance.choice(pieces)} {chance.choice(pieces)}" for _ in range(MANY))
    return [
        (Document(str(number), text, metadata={"n": number, "chance": chance.random()}), (Span(0, len(text)),))
        for number, text in enumerate(texts)
    ]


def filtered(store: Store, questions: Sequence[str], where: str) -> float:
    condition = parse(where)
    words(store, questions[0], 10, condition)
    return median(lambda question: words(store, question, 10, condition), questions)


def scale(documents: Sequence[Document], questions: Sequence[str]) -> None:
    """Print the second table."""
    with tempfile.TemporaryDirectory() as folder:
        store, seconds = filled(Path(folder) / "x.index", "en", mixed(documents))
        begun = time.perf_counter()
        words(store, questions[0], 10)
        first = time.perf_counter() - begun
        print(f"\n| {MANY:,} passages | milliseconds |\n| --- | --- |")
        print(f"| word index, built in | {1e3 * seconds:,.0f} |\n| first question | {1e3 * first:.1f} |")
        print(f"| 10 best documents | {median(lambda q: words(store, q, 10), questions):.2f} |")
        print(f"| 10 best passages | {median(lambda q: words(store, q, 10, None, 'passage'), questions):.2f} |")
        for share in (50, 10, 1, 0.1, 0.01):
            scattered = filtered(store, questions, f"chance < {share / 100}")
            print(f"| 10 best, filter of {share} %, scattered | {scattered:.2f} |")
        print(f"| 10 best, filter of 50 %, in a row | {filtered(store, questions, f'n < {MANY // 2}'):.2f} |")
        with store.writer() as writer:
            writer.remove(["1"])
        begun = time.perf_counter()
        words(store, questions[0], 10)
        print(f"| first question after a removal | {1e3 * (time.perf_counter() - begun):.1f} |")
        print(f"| 10 best, with a removed document | {median(lambda q: words(store, q, 10), questions):.2f} |")
        store.close()


def main() -> None:
    folder = folder_asked()
    columns = (
        "collection",
        "documents",
        "passages",
        "nDCG@10",
        "by passage",
        "ms, median",
        "s to build",
        "bytes / text",
    )
    print(f"{machine()}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    found = {path: judge(path, str(path.relative_to(folder)), PassageSettings(256)) for path in collections(folder)}
    largest = max(found, key=lambda path: len(found[path]))
    scale(found[largest], list(read_queries(largest / "queries.jsonl").values())[:100])


if __name__ == "__main__":
    main()
