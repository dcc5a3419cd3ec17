"""The resources of open indexes: file descriptors are bounded, and unused resources are released."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Document, Index
from indexer.errors import StorageError
from indexer.stores.local.catalog import connections, views
from indexer.stores.local.catalog.views import Views
from indexer.stores.local.segments import files as segment_files
from indexer.stores.words import tantivy_index
from search import Searcher

ROWS = np.eye(4, dtype=np.float32)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of one document, d0, with a segment and a word index."""
    folder = tmp_path_factory.mktemp("one") / "x.index"
    with Index.create(folder, dimensions=4) as index:
        index.add([Document("d0", "text")], vectors=ROWS[:1])
        index.compact()
    return folder


@pytest.fixture
def made(one: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies of that index, each in a folder of its own."""
    return lambda name: Path(shutil.copytree(one, tmp_path / name))


def descriptors() -> list[int]:
    """The numbers of all open files of this process, without the one that lists them."""
    numbers = []
    for entry in list(Path("/dev/fd").iterdir()):
        with suppress(OSError):
            os.fstat(int(entry.name))
            numbers.append(int(entry.name))
    return numbers


def held_at_most(count: int) -> bool:
    """Return whether at most this many files are open. Threads of tantivy open a file for a moment twice a second."""
    return any(len(descriptors()) <= count or time.sleep(0.01) for _ in range(500))


def filled() -> list[int]:
    """Files opened until the process may open no more."""
    holes = []
    with suppress(OSError):
        while True:
            holes.append(os.open(os.devnull, os.O_RDONLY))
    return holes


@contextmanager
def allowed(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(autouse=True)
def none_idle() -> None:
    """Other tests leave searchers behind, whose connections are not counted here."""
    gc.collect()
    connections.close_idle()


def ask_together(snapshots: Views, threads: int) -> None:
    """Views of so many threads, all open at the same time."""
    barrier = threading.Barrier(threads, timeout=110)

    def ask() -> None:
        with snapshots.view() as view:
            barrier.wait()
            assert view.state.documents == 1

    workers = [threading.Thread(target=ask) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@pytest.mark.slow
def test_idle_connections_of_many_indexes_and_threads_are_bounded(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_MAX_IDLE_DESCRIPTORS", 30)
    indexes = [Views(made(f"{number}.index")) for number in range(8)]
    before = len(descriptors())
    for _ in range(2):
        for snapshots in indexes:
            ask_together(snapshots, 6)
            assert held_at_most(before + 30)
    # The last one that was asked keeps its connections: nothing is opened for its next question.
    assert len(indexes[-1]._idle) == 6
    for snapshots in indexes:  # one connection for each fits
        ask_together(snapshots, 1)
    assert [len(snapshots._idle) for snapshots in indexes] == [1] * 8
    for snapshots in indexes:
        snapshots.close()
    assert held_at_most(before)


def test_more_threads_than_may_wait_are_answered_and_leave_nothing(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_MAX_IDLE_DESCRIPTORS", 12)
    snapshots = Views(made("x.index"))
    before = len(descriptors())
    ask_together(snapshots, 10)
    assert len(snapshots._idle) <= 4
    assert held_at_most(before + 12)
    ask_together(snapshots, 3)
    assert len(snapshots._idle) == 3


def test_views_that_overlap_open_one_connection_for_each_thread_however_low_the_limit(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = list[Path](), views.open_catalog

    def counted(catalog: Path, mode: str, folder: Path) -> sqlite3.Connection:
        opened.append(catalog.parent)
        return real(catalog, mode, folder)

    monkeypatch.setattr(connections, "_MAX_IDLE_DESCRIPTORS", 12)
    monkeypatch.setattr(views, "open_catalog", counted)
    unused, asked = Views(made("unused.index")), Views(made("asked.index"))
    before = len(descriptors())
    ask_together(unused, 2)
    with asked.view():
        for _ in range(5):
            ask_together(asked, 10)
        assert opened.count(asked.folder) == 11
        assert len(unused._idle) == 0  # these go first, as closing them frees something
    assert held_at_most(before + 12)

    with suppress(ZeroDivisionError), asked.view():
        ask_together(asked, 10)
        raise ZeroDivisionError  # its connection is closed, and was the last one that was lent
    assert held_at_most(before + 12)

    with asked.view():
        ask_together(asked, 10)
        assert connections.close_idle() == 10


def test_the_bound_follows_the_limit_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, limit in ((256, 42), (1024, 170), (20_000, 170), (resource.RLIM_INFINITY, 170)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert connections._max_idle_connections() == limit


def test_an_open_index_that_is_not_asked_holds_connections_and_nothing_else(
    made: Callable[[str], Path],
) -> None:
    folder = made("x.index")
    before = len(descriptors())
    with Searcher(folder) as searcher:
        assert searcher.search_vector(ROWS[0], 1)[0].uri == "d0"
        assert searcher.search("text", 1, mode="words")[0].uri == "d0"
        connections.close_idle()
        assert held_at_most(before)
        assert searcher.search("text", 1, mode="words")[0].uri == "d0"


def test_idle_connections_make_room_when_no_file_can_be_opened(made: Callable[[str], Path]) -> None:
    indexes = [Views(made(f"{number}.index")) for number in range(5)]
    folder = made("new.index")
    for snapshots in indexes:
        ask_together(snapshots, 1)
    with Searcher(folder) as searcher, allowed(max(descriptors()) + 1):
        holes = filled()
        try:
            assert searcher.search_vector(ROWS[0], 1)[0].uri == "d0"
            assert searcher.search("text", 1, mode="words")[0].uri == "d0"
        finally:
            for hole in holes:
                os.close(hole)
    assert [len(snapshots._idle) for snapshots in indexes] == [0] * 5


@pytest.mark.parametrize("mode", ["dense", "words"])
def test_too_few_descriptors_are_an_error_or_the_same_answer_and_no_damage(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    monkeypatch.setattr(segment_files, "_MAX_READ_BYTES", 0)  # mapped, as a large one is
    folder, refusals, answer = made("x.index"), list[str](), list[str]()
    with Searcher(folder) as searcher:  # imports what a question needs
        assert [len(searcher.search("text", 1, mode="words")), len(searcher.search_vector(ROWS[0], 1))] == [1, 1]
    highest = max(descriptors())
    with allowed(highest + 1):
        holes = filled()
    try:
        for limit in (3, *range(highest + 1, highest + 65)):  # threads of other tests may take some too
            with Searcher(folder) as searcher, allowed(limit):
                try:
                    hits = (
                        searcher.search("text", 1, mode=mode) if mode == "words" else searcher.search_vector(ROWS[0], 1)
                    )
                    answer = [hit.uri for hit in hits]
                    break
                except StorageError as error:
                    refusals.append(str(error))
    finally:
        for hole in holes:
            os.close(hole)
    assert answer == ["d0"]
    assert refusals
    assert all("this process" in refusal for refusal in refusals)


def test_a_mapped_file_of_positions_is_the_same_as_one_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.ids"
    file.write_bytes(bytes(range(256)))
    assert segment_files._map(file).tolist() == list(range(256))
    monkeypatch.setattr(segment_files, "_MAX_READ_BYTES", 0)
    assert segment_files._map(file).tolist() == list(range(256))


def mapped(inodes: set[int]) -> set[int]:
    """Those of the files that this process has mapped; a deleted file is known by its inode too."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return inodes & {int(line.split()[4]) for line in lines}


def word_files(folder: Path) -> set[int]:
    return {path.stat().st_ino for path in (folder / "words").rglob("*") if path.suffix == ".idx"}


needs_maps = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of mapped files")


@needs_maps
@pytest.mark.parametrize("how", ["replaced", "compacted", "closed"])
def test_word_files_that_were_replaced_are_let_go_of_at_the_next_question_of_any_kind(
    made: Callable[[str], Path], how: str
) -> None:
    folder, other = made("x.index"), made("y.index")
    files = word_files(folder)
    with Searcher(folder) as searcher:
        for _ in range(2):
            assert searcher.search("text", 1, mode="words")[0].uri == "d0"
            assert mapped(files) == files
        if how == "replaced":
            folder.rename(folder.with_name("old.index"))
            other.rename(folder)
        elif how == "compacted":
            with Index.open(folder) as index:
                index.add([Document("d1", "more")], vectors=ROWS[1:2])
                index.compact()
        else:
            store_of(searcher).close()
        assert searcher.search_vector(ROWS[0], 1)[0].uri == "d0"
        assert mapped(files) == set()
        assert searcher.search("text", 1, mode="words")[0].uri == "d0"
        assert mapped(files) == (files if how == "closed" else set())


@needs_maps
def test_a_question_under_way_keeps_the_words_it_began_with(made: Callable[[str], Path]) -> None:
    folder = made("x.index")
    files = word_files(folder)
    with Index.open(folder) as index, Searcher(folder) as searcher:
        with store_of(searcher).snapshot() as snapshot:
            words = snapshot._view.words()
            index.add([Document("d1", "more text")], vectors=ROWS[1:2])
            index.compact()
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(searcher.search, "text", 2, mode="words").result().matched == 2
            assert snapshot._view.words() is words
            assert snapshot.words("text", 2).matched == 1
            assert mapped(files) == files
        del words, snapshot
        assert searcher.search("text", 2, mode="words").matched == 2
        assert mapped(files) == set()


def test_what_writing_for_readers_freed_is_given_back_and_a_sealed_index_writes_nothing(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, trimmed, locked = [0.0], list[float](), list[bool]()

    def trim(pad: int) -> None:
        locked.append(words_lock.locked())
        trimmed.append(clock[0])
        clock[0] += 1  # it takes a second

    monkeypatch.setattr(tantivy_index, "_TRIM", trim)
    monkeypatch.setattr(tantivy_index, "_next_trim", 0.0)
    monkeypatch.setattr(tantivy_index, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    folder = made("x.index")
    with Index.open(folder) as index, Searcher(folder) as searcher:
        with store_of(searcher).snapshot() as snapshot:
            words_lock = snapshot._view.reader._lock
        assert searcher.search("text", 1, mode="words").matched == 1
        assert trimmed == []
        for number in range(4):
            index.add([Document("d1", f"version {number}")], vectors=ROWS[1:2])
            for _ in range(2):
                assert searcher.search(f"{number}", 1, mode="words").matched == 1
            clock[0] += 4
    assert trimmed == [0, 13]  # not before ten seconds have passed
    assert locked == [False, False]  # others may open their words meanwhile
