"""Several writers at once: no update is lost, every visible state has its own number, and no deadlock comes out."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attacks
import numpy as np
import pytest
from postgres_server import new_address, remove_index

from indexer import Document, Index
from indexer.errors import IndexLocked
from indexer.records import Span, Stamp
from indexer.settings import Settings
from indexer.stores.addresses.open import create_store, open_store
from indexer.stores.hashes import row_hash
from indexer.stores.port import Batch, EmbeddedDocument, Hashes, LedgerRow, RunOutcome
from likewise.postgres import connections, tables
from likewise.postgres import writer as writing
from likewise.postgres.commit import Commit

SETTINGS = Settings(4)
ROW = np.eye(4, dtype=np.float32)[:1]


@pytest.fixture
def address() -> Iterator[str]:
    address = new_address()
    create_store(address, SETTINGS).close()
    yield address
    store: Any = open_store(address)
    remove_index(store.engine)
    store.close()


def embedded(uri: str, text: str = "a b", **metadata: Any) -> EmbeddedDocument:
    document = Document(uri, text, metadata=metadata)
    hashes = Hashes(text.encode().ljust(16)[:16], row_hash(document))
    return EmbeddedDocument(document, hashes, (Span(0, len(text), tokens=2),), ROW)


def together(count: int, work: Callable[[int], None]) -> None:
    """Run work in threads; raise what one of them raised."""
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_writers_of_the_same_documents_and_files_in_any_order(address: str) -> None:
    def write(number: int) -> None:
        chance = random.Random(number)
        store = open_store(address)  # each as a process of its own
        with store.writer() as writer:
            run = writer.begin_run()
            for step in range(12):
                names = chance.sample([f"u{i}" for i in range(12)], 6)
                files = [f"/f{name[1:]}" for name in names]
                rows = [LedgerRow(file, uri, "indexed") for file, uri in zip(files, names, strict=True)]
                if chance.random() < 0.25:
                    writer.remove(names[:3])
                elif chance.random() < 0.3:
                    writer.put(Batch([embedded(uri, writer=number) for uri in names]))
                else:
                    stamps = {file: Stamp(step, step, step, step) for file in files}
                    documents = [embedded(uri, f"text {number} {step}", **{f"f{number}": step}) for uri in names]
                    writer.put(Batch(documents, rows, stamps, run))
            writer.end_run(run, RunOutcome(read=tuple(files), unchanged=tuple(files[:2])))
        store.close()

    together(4, write)
    with Index.open(address) as index:
        assert index.check().ok, index.check().problems
        assert len(index) == len(list(index)) == len({document.uri for document in index})


def test_every_visible_state_has_a_version_of_its_own(address: str) -> None:
    seen: list[tuple[Any, tuple[str, ...]]] = []
    done = threading.Event()

    def work(number: int) -> None:
        store = open_store(address)
        if number < 3:
            with store.writer() as writer:
                for step in range(15):
                    writer.put(Batch([embedded(f"{number} {step}")]))
            if number == 0:
                done.set()
        else:
            while not done.is_set():
                with store.snapshot() as snapshot:
                    uris = tuple(sorted(snapshot.uris()))
                    assert len(uris) == snapshot.documents == snapshot.passages
                    assert snapshot.dense(ROW[0], 100).matched == len(uris)
                    seen.append((snapshot.version, uris))
        store.close()

    together(5, work)
    assert len({version for version, _ in seen}) == len({uris for _, uris in seen}) == len(set(seen))


def test_counts_are_those_of_all_writers(address: str) -> None:
    def write(number: int) -> None:
        with open_store(address).writer() as writer:
            for step in range(10):
                writer.put(Batch([embedded(f"{number} {step}"), embedded("all", f"text {number} {step}")]))
            writer.remove([f"{number} 0", "unknown"])

    together(4, write)
    with open_store(address).snapshot() as snapshot:
        assert snapshot.documents == snapshot.passages == 4 * 9 + 1
        assert snapshot.info().tokens == 2 * 37


def test_a_change_of_nothing_is_no_new_state(address: str) -> None:
    store = open_store(address)
    with store.writer() as writer:
        writer.put(Batch([embedded("a")]))
        with store.snapshot() as snapshot:
            version = snapshot.version
        assert writer.remove(["unknown"]) == 0
        writer.put(Batch())
        writer.change(lambda settings: settings)
        with store.snapshot() as snapshot:
            assert snapshot.version == version
        writer.remove(["a"])
        with store.snapshot() as snapshot:
            assert snapshot.version != version
    store.close()


@pytest.mark.slow
def test_a_client_that_stops_in_a_transaction_holds_nobody_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(writing, "ANSWER_SECONDS", 1.0)
    held, stopped = open_store(address), threading.Event()
    finish = Commit.finish
    stops = [True]

    def stop(commit: Any) -> None:
        finish(commit)  # from here on other writers wait
        if stops.pop() if stops else False:
            stopped.set()
            time.sleep(2.5)

    monkeypatch.setattr(Commit, "finish", stop)

    def write() -> None:
        with held.writer() as writer:
            writer.put(Batch([embedded("late")]))

    thread = threading.Thread(target=write)
    thread.start()
    stopped.wait()
    other = open_store(address)
    for _ in range(3):
        try:
            with other.writer() as writer:
                writer.put(Batch([embedded("other")]))
            break
        except IndexLocked as error:
            assert "another writer held the same rows" in str(error)
    thread.join()
    with other.snapshot() as snapshot:
        assert sorted(snapshot.uris()) == ["late", "other"]  # the server ended it, and it was run again
    held.close()
    other.close()


def test_indexes_never_share_an_advisory_lock(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = open_store(address)
    with store.snapshot() as snapshot:
        taken = snapshot._view.state.row.tables.removeprefix("likewise_")
    tokens = iter([taken, "0123456789abcdef"])
    monkeypatch.setattr(tables.secrets, "token_hex", lambda _: next(tokens))
    with store._connections.connection() as connection:
        assert tables._new_schema(connection) == "likewise_0123456789abcdef"
    store.close()


_WRITER = """
import random, sys, time
import numpy as np
from indexer import Document, Index
number, seconds = int(sys.argv[2]), float(sys.argv[3])
chance, index, end, step = random.Random(number), Index.open(sys.argv[1]), time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end:
    own = [f"{number} {step} {i}" for i in range(5)]
    shared = [f"shared {i}" for i in chance.sample(range(8), 3)]
    documents = [Document(uri, f"text {number} {step}", metadata={"n": step}) for uri in [*own, *shared]]
    chance.shuffle(documents)
    index.add(documents, vectors=np.random.default_rng(step).normal(size=(8, 4)).astype(np.float32))
    if step % 5 == 4:
        index.remove([f"{number} {step - 1} 0"])
    step += 1
print(step)
"""

_READER = """
import sys, time
import numpy as np
from search import Searcher
end, asked, searcher = time.monotonic() + float(sys.argv[2]), 0, Searcher(sys.argv[1])
while time.monotonic() < end:
    hits = searcher.search_vector(np.random.default_rng(asked).normal(size=4).astype(np.float32), 5)
    assert len(hits) == min(5, hits.matched), (len(hits), hits.matched)
    words = searcher.search("text", 5, mode="words")
    assert len(words) == min(5, words.matched)
    asked += 1
print(asked)
"""


@pytest.mark.slow
@pytest.mark.timeout(attacks.TIMEOUT_S)
def test_four_writers_and_eight_readers(address: str) -> None:
    seconds = attacks.SECONDS
    commands = [["-c", _WRITER, address, str(number), str(seconds)] for number in range(4)]
    commands += [["-c", _READER, address, str(seconds)] for _ in range(8)]
    running = [
        subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 12, [error for _, error in outputs if error]
    steps = [int(output) for output, _ in outputs[:4]]
    expected: Counter[str] = Counter()
    for number, count in enumerate(steps):
        expected[str(number)] = 5 * count - sum(step % 5 == 4 for step in range(count))
    with Index.open(address) as index:
        found = Counter(document.uri.split()[0] for document in index)
        found.pop("shared", None)
        assert found == expected
        assert index.check().ok, index.check().problems
