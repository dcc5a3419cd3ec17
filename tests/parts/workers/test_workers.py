"""Workers that embed for an index: late, out of order, lost, refused. The index equals that of a run without them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of
from postgres_server import new_address
from word_encoder import WordEncoder

from indexer import BadInput, Document, Embedded, Index, ModelError, RecipeMismatch, TextTooLong, WorkersLost
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedder import Embedder
from indexer.indexing.runs import Outcome, index_sources
from indexer.listener import Listener
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
from likewise.cache.user_cache import UserCache
from likewise.cache.vector_cache import VectorCache
from likewise.workers import wire
from likewise.workers.pool import Pool, WorkerLost

KILLER = "kill7"


def documents_of(count: int) -> list[Document]:
    chance = random.Random(5)
    return [
        Document(
            f"d{number:03}",
            " ".join(f"word{chance.randrange(300)}" for _ in range(chance.randrange(3, 90))),
            f"Title {number}",
            {"n": number},
        )
        for number in range(count)
    ]


DOCUMENTS = documents_of(60)


@pytest.fixture(params=["folder", pytest.param("database", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "x.index") if request.param == "folder" else new_address()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """About five documents in a batch, so that many are under way."""
    monkeypatch.setattr(IndexCore, "batch_characters", 3000)


@dataclass
class Plan:
    """What workers in threads of this process do with each batch.

    Attributes:
        act: called with the number of the worker and of the request, and the request; what it returns is the answer.
        starts: how many workers were started.
    """

    act: Callable[[int, int, bytes], bytes | None] = lambda worker, request, data: None
    starts: int = 0
    requests: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, number: int) -> _InThread:
        with self.lock:
            self.starts += 1
            return _InThread(self, self.starts)


class _InThread:
    def __init__(self, plan: Plan, number: int) -> None:
        self._plan, self._number, self._answer = plan, number, wire.Answering().answer
        self._closed = threading.Event()

    def ask(self, request: bytes, seconds: float) -> bytes:
        with self._plan.lock:
            self._plan.requests.append(self._number)
            count = len(self._plan.requests)
        if self._closed.is_set():
            raise WorkerLost("closed")
        acted = self._plan.act(self._number, count, request)
        return self._answer(request) if acted is None else acted

    def close(self) -> None:
        self._closed.set()


def stored(index: Any) -> str:
    """Everything that an index has: documents, passages, vectors, hashes, the ledger and the measurements."""
    snapshot = snapshot_of(index)
    store = getattr(index, "_core", index).store
    items = [(item, np.asarray(item.vectors).tolist()) for item in store.export()]
    with store.snapshot() as opened:
        ledger = sorted(map(repr, opened.ledger()))
        settings = opened.settings
    return repr([items, sorted(snapshot.hashes().items()), ledger, settings])


def serial(path: Path, encoder: WordEncoder, documents: Sequence[Document] = DOCUMENTS) -> str:
    with Index.create(path, encoder) as index:
        index.add(documents)
        return stored(index)


def lost(*_: object) -> None:
    raise WorkerLost("signal 9")


def is_documents(data: bytes) -> bool:
    return "documents" in wire.unpack(data)[0]


def scenario_late(chance: random.Random) -> Callable[..., None]:
    """Each answer waits until some other requests have come, or all have."""
    pause = threading.Event()

    def act(worker: int, request: int, data: bytes) -> None:
        pause.wait(chance.random() / 50)

    return act


def scenario_dying(chance: random.Random) -> Callable[..., None]:
    return lambda worker, request, data: lost() if chance.random() < 0.25 else None


def scenario_wrong(chance: random.Random) -> Callable[..., bytes | None]:
    """Some answers have a wrong width, too few documents, another recipe, or are an error of a library."""

    def act(worker: int, request: int, data: bytes) -> bytes | None:
        if not is_documents(data) or chance.random() < 0.8:
            return None
        count = len(wire.unpack(data)[0]["documents"])
        narrow = np.ones((count, 3), np.float32)
        passages = [[[0, 4, "", 1, "", None]]] * count
        return chance.choice(
            [
                wire.pack({"recipe": "", "passages": passages, "notes": []}, narrow),
                wire.pack({"recipe": "another", "passages": passages, "notes": []}, np.ones((count, 64), np.float32)),
                wire.pack({"recipe": "", "passages": [], "notes": []}),
                wire.pack({"recipe": "", "passages": []}),
                wire.pack({"lost": "RuntimeError: CUDA out of memory"}),
                wire.pack({}) + b"123",
                b"?",
            ]
        )

    return act


@pytest.mark.parametrize("scenario", [scenario_late, scenario_dying, scenario_wrong])
def test_the_index_equals_that_of_a_run_without_workers(
    scenario: Callable[[random.Random], Any], address: str, tmp_path: Path, encoder: WordEncoder
) -> None:
    expected = serial(tmp_path / "serial.index", encoder)
    plan = Plan(scenario(random.Random(3)))
    with Index.create(address, encoder) as index:
        pool = Pool(index.embedder, plan.start, 3)
        try:
            changes = index.add(DOCUMENTS, workers=pool)
        finally:
            pool.close()
        assert changes.added == tuple(document.uri for document in DOCUMENTS)
        assert stored(index) == expected
        seen = len(encoder.seen)
        assert index.add(DOCUMENTS, workers=pool).unchanged == changes.added  # the pool is closed, and nobody asks it
        assert len(encoder.seen) == seen


def test_several_batches_are_under_way(tmp_path: Path, encoder: WordEncoder) -> None:
    """No worker answers its first batch before three workers embed at once."""
    together = threading.Barrier(3, timeout=110)
    waited: set[int] = set()

    def act(worker: int, request: int, data: bytes) -> None:
        if is_documents(data) and worker not in waited:
            waited.add(worker)
            together.wait()

    plan = Plan(act)
    with Index.create(tmp_path / "x.index", encoder) as index:
        pool = Pool(index.embedder, plan.start, 3)
        try:
            index.add(DOCUMENTS, workers=pool)
        finally:
            pool.close()
        assert len(index) == len(DOCUMENTS)
    assert not together.broken


def run(core: IndexCore, source: Path) -> Outcome:
    options = ReadOptions()
    with core.writer() as writer:
        return index_sources(core, writer, [(options, open_sources([str(source)], options, holds_store))])


def a_run(
    address: str | Path,
    encoder: WordEncoder,
    source: Path,
    plan: Plan | None = None,
    workers: int = 3,
    cache: UserCache | None = None,
) -> tuple[Outcome, str]:
    """Index a source, with workers if there is a plan; return what was done and what is stored."""
    with ExitStack() as stack:

        def make(embedder: Embedder) -> Pool:
            assert plan is not None
            pool = Pool(embedder, plan.start, workers)
            stack.callback(pool.close)
            return pool

        context = Context(cache=cache, workers=None if plan is None else make)
        index = Index.open(address) if _exists(address) else Index.create(address, encoder)
        core = stack.enter_context(IndexCore(index._core.store, encoder, context))
        outcome = run(core, source)
        return outcome, stored(core)


def _exists(address: str | Path) -> bool:
    from indexer.stores.addresses.open import is_store

    return is_store(address)


@pytest.fixture
def source(tmp_path: Path, lines: Callable[..., str]) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    records = [{"id": document.uri, "text": document.text, "title": document.title} for document in DOCUMENTS]
    records[40] = {**records[3], "text": "the last record of an id counts"}
    (folder / "records.jsonl").write_text(lines(*records, {"id": "no text"}))
    for number in range(20):
        (folder / f"{number}.md").write_text(f"# Heading {number}\n\n" + DOCUMENTS[number].text)
    (folder / "empty.txt").write_text("")
    return folder


@pytest.mark.parametrize("address", ["folder", "database"], indirect=True)
def test_a_run_with_workers_leaves_the_same_index_and_ledger(
    address: str, tmp_path: Path, source: Path, encoder: WordEncoder
) -> None:
    outcome, expected = a_run(tmp_path / "serial.index", encoder, source)
    plan = Plan(scenario_dying(random.Random(8)))
    with_workers, found = a_run(address, encoder, source, plan)
    assert found == expected
    assert with_workers.summary == outcome.summary
    assert (outcome.summary.indexed, outcome.summary.failed) == (79, 0)
    starts = plan.starts
    again, _ = a_run(address, encoder, source, plan)
    assert (again.summary.indexed, again.summary.failed) == (0, 0)
    assert plan.starts == starts  # nothing to embed: no worker is started


def test_the_document_that_ends_workers_is_failed_and_all_others_are_indexed(
    address: str, source: Path, encoder: WordEncoder
) -> None:
    (source / "bad.txt").write_text(f"a text with {KILLER} in it")
    plan = Plan(lambda worker, request, data: lost() if KILLER.encode() in data else None)
    outcome, _ = a_run(address, encoder, source, plan)
    assert (outcome.summary.indexed, outcome.summary.failed) == (79, 1)
    with Index.open(address, encoder) as index:
        (row,) = (row for row in snapshot_of(index).ledger("failed") if row.file.endswith("bad.txt"))
        assert row.reason.text() == (
            "embedding it ended each worker that tried (signal 9): split it, or index it without workers"
        )
    outcome, _ = a_run(address, encoder, source)
    assert (outcome.summary.indexed, outcome.summary.failed) == (1, 0)


def test_a_document_that_the_model_finds_too_long_fails_alone_and_ends_no_worker(
    tmp_path: Path, encoder: WordEncoder
) -> None:
    def refuse(texts: Sequence[str]) -> None:
        for index, text in enumerate(texts):
            if "endless" in text:
                raise TextTooLong(index, 40, 32)

    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b", "c", "d"):
        (source / f"{name}.txt").write_text("an endless text" if name in "bd" else f"a text of {name}")
    encoder.ask = refuse
    outcome, expected = a_run(tmp_path / "serial.index", encoder, source)
    file = VectorCache(tmp_path / "vectors.db")
    for number, plan in enumerate((None, Plan())):
        ran, found = a_run(tmp_path / f"{number}.index", encoder, source, plan, cache=UserCache(file))
        assert found == expected
        assert ran.summary == outcome.summary
        assert plan is None or plan.starts <= 3
    file.close()
    assert (outcome.summary.indexed, outcome.summary.failed) == (2, 2)
    with Index.open(tmp_path / "serial.index", encoder) as index:
        rows = [row for row in snapshot_of(index).ledger("failed") if row.file.endswith(".txt")]
        assert [(Path(row.file).name, row.reason.arguments) for row in rows] == [
            ("b.txt", ("17",)),
            ("d.txt", ("17",)),
        ]
        pool = Pool(index.embedder, Plan().start, 2)
        with pytest.raises(BadInput, match=r"^new: the model finds a passage of 10 characters too long"):
            index.add([Document("good", "a text"), Document("new", "an endless")], workers=pool)
        pool.close()
        with pytest.raises(BadInput, match=r"^new: the model finds a passage of 10 characters too long"):
            index.add([Document("new", "an endless")], embedded=index.embedder.embed([Document("new", "an endless")]))


def test_added_documents_that_end_workers_are_refused_by_name(tmp_path: Path, encoder: WordEncoder) -> None:
    plan = Plan(lambda worker, request, data: lost() if KILLER.encode() in data else None)
    with Index.create(tmp_path / "x.index", encoder) as index:
        pool = Pool(index.embedder, plan.start, 2)
        try:
            with pytest.raises(BadInput, match=r"^bad: embedding it ended each worker that tried \(signal 9\)"):
                index.add([Document("good", "a text"), Document("bad", KILLER)], workers=pool)
        finally:
            pool.close()
        assert len(index) == 0


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lost, r"no worker is left \(signal 9\): what was committed is kept"),
        *(
            pytest.param(act, message, marks=pytest.mark.slow)
            for act, message in (
                (lambda *_: wire.pack({"fingerprint": "0" * 64}, np.ones(64, np.float32)), "has other files"),
                (lambda *_: wire.pack({}), "has other files"),
                (lambda *_: b"?", "it answers with something that is no message"),
                (
                    lambda *_: wire.pack({"error": "ModelError", "message": "model 'x' is not here"}),
                    "model 'x' is not here",
                ),
            )
        ),
    ],
)
def test_without_a_worker_the_run_ends_and_the_next_continues(
    act: Callable[..., bytes | None], message: str, address: str, tmp_path: Path, source: Path, encoder: WordEncoder
) -> None:
    _, expected = a_run(tmp_path / "serial.index", encoder, source)

    def fail_later(worker: int, request: int, data: bytes) -> bytes | None:
        return act() if request > 12 else None

    for plan in (Plan(lambda *_: act()), Plan(fail_later) if act is lost else Plan(lambda *_: act())):
        with pytest.raises(WorkersLost, match=message) as ended:
            a_run(address, encoder, source, plan)
        assert ended.value.exit_code == 3
    outcome, _ = a_run(address, encoder, source, Plan())
    assert outcome.summary.indexed + outcome.summary.unchanged == 79
    assert outcome.summary.indexed < 79 or act is not lost  # what was committed is kept
    with Index.open(address, encoder) as index:
        assert sorted(document.uri for document in index) == sorted(set(_uris(expected)))


def test_a_worker_that_the_system_does_not_start_is_named(tmp_path: Path, encoder: WordEncoder) -> None:
    def refused(number: int) -> _InThread:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with Index.create(tmp_path / "x.index", encoder) as index:
        pool = Pool(index.embedder, refused, 2)
        with pytest.raises(WorkersLost, match=r"no worker is left \(.*Resource temporarily unavailable\)"):
            index.add(DOCUMENTS, workers=pool)
        pool.close()


class _Broken(Listener):
    def workers(self, busy: int, workers: int) -> None:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_progress_that_cannot_be_shown_ends_the_run(tmp_path: Path, encoder: WordEncoder) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        pool = Pool(index.embedder, Plan().start, 2, listener=_Broken())
        with pytest.raises((BrokenPipeError, WorkersLost)):
            index.add(DOCUMENTS, workers=pool)
        pool.close()


def _uris(text: str) -> list[str]:
    import re

    return re.findall(r"EmbeddedDocument\(document=Document\(uri='([^']+)'", text)


def test_a_worker_with_other_vectors_is_refused_and_the_others_go_on(tmp_path: Path, encoder: WordEncoder) -> None:
    turned = np.roll(Embedder.probe(_Fake(encoder)), 1)

    def act(worker: int, request: int, data: bytes) -> bytes | None:
        if worker == 1 and not is_documents(data):
            return wire.pack({"fingerprint": encoder.recipe.fingerprint}, turned)
        return None

    with Index.create(tmp_path / "x.index", encoder) as index:
        plan = Plan(act)
        pool = Pool(index.embedder, plan.start, 2)
        try:
            index.add(DOCUMENTS, workers=pool)
        finally:
            pool.close()
        assert stored(index) == serial(tmp_path / "serial.index", encoder)
        (note,) = pool.notes
        assert note.startswith(("worker 1 is refused", "worker 2 is refused"))
        assert "its vector of a probe text has the cosine" in note
        assert plan.starts == 2


@dataclass
class _Fake:
    encoder: WordEncoder


def test_an_error_of_the_model_is_an_error_of_the_run(tmp_path: Path, encoder: WordEncoder) -> None:
    plan = Plan(
        lambda worker, request, data: (
            wire.pack({"error": "NothingKnown", "message": "its weights are broken"}) if is_documents(data) else None
        )
    )
    with Index.create(tmp_path / "x.index", encoder) as index:
        pool = Pool(index.embedder, plan.start, 2)
        try:
            with pytest.raises(ModelError, match="its weights are broken"):
                index.add(DOCUMENTS, workers=pool)
        finally:
            pool.close()


class Returning:
    """Workers of a user's own: only what the interface names."""

    def __init__(self, embed: Callable[[Sequence[Document]], list[Embedded]]) -> None:
        self._embed = embed
        self.closed = False

    def submit(self, documents: Sequence[Document]) -> Future[list[Embedded]]:
        future = Future[list[Embedded]]()
        future.set_result(self._embed(documents))
        return future

    def close(self) -> None:
        self.closed = True


def test_workers_of_a_users_own_need_two_methods_and_are_checked(tmp_path: Path, encoder: WordEncoder) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        embedder = index.embedder
        own = Returning(embedder.embed)
        index.add(DOCUMENTS, workers=own)
        assert stored(index) == serial(tmp_path / "serial.index", encoder)
        assert not own.closed  # by their owner only
        new = Document("new", "some words")
        (good,) = embedder.embed(new)
        for wrong, error, message in (
            ([], BadInput, "returned 0 results for 1 documents"),
            ([replace(good, recipe="other")], RecipeMismatch, "new: its vectors were made by another recipe"),
            ([replace(good, vectors=good.vectors[:, :5])], BadInput, r"shape \(1, 5\)"),
        ):
            with pytest.raises(error, match=message):
                index.add(new, workers=Returning(lambda _, wrong=wrong: wrong))  # type: ignore[misc]
        assert "new" not in index


def test_the_cache_is_asked_first_and_filled(tmp_path: Path, source: Path, encoder: WordEncoder) -> None:
    file = VectorCache(tmp_path / "vectors.db")
    cache = UserCache(file)
    _, expected = a_run(tmp_path / "serial.index", encoder, source)
    plan = Plan()
    assert a_run(tmp_path / "first.index", encoder, source, plan, cache=cache)[1] == expected
    sent = len(plan.requests)
    assert sent > 10
    (source / "new.txt").write_text("a document that the cache does not know")
    outcome, _ = a_run(tmp_path / "second.index", encoder, source, plan, workers=1, cache=cache)
    assert outcome.summary.indexed == 80
    assert len(plan.requests) == sent + 2  # the worker's first answer, and a batch of one document
    file.close()


def test_a_rebuild_uses_the_workers(tmp_path: Path, make_encoder: Callable[..., WordEncoder]) -> None:
    from likewise.shell.indexing.rebuild import rebuild_index

    encoder, other = make_encoder(), make_encoder(name="others", weights="2")
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(DOCUMENTS)
    with Index.create(tmp_path / "direct.index", other) as direct:
        direct.add(DOCUMENTS)
    plan = Plan(scenario_dying(random.Random(4)))
    pools: list[Pool] = []

    def make(embedder: Embedder) -> Pool:
        pools.append(Pool(embedder, plan.start, 3))
        return pools[-1]

    with IndexCore.open(tmp_path / "x.index", context=Context(workers=make)) as old:
        settings = replace(old.settings, recipe=other.recipe)
        with rebuild_index(old, lambda: (settings, other)):
            pass
    pools[0].close()
    with Index.open(tmp_path / "x.index") as index, Index.open(tmp_path / "direct.index") as direct:
        assert index.recipe == other.recipe
        assert snapshot_of(index).hashes() == snapshot_of(direct).hashes()
        assert len(plan.requests) > 6
