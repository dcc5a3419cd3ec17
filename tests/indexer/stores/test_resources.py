"""What open indexes hold of the machine: file descriptors are bounded, and what is not used is let go of."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.errors import StorageError
from indexer.stores import connecting, sealed
from indexer.stores.snapshot import Snapshots
from indexer.stores.temporary import temporary
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
    connecting.close_idle()


def ask_together(snapshots: Snapshots, threads: int) -> None:
    """Views of so many threads, all open at the same time."""
    barrier = threading.Barrier(threads, timeout=60)

    def ask() -> None:
        with snapshots.view() as view:
            barrier.wait()
            assert view.state.documents == 1

    workers = [threading.Thread(target=ask) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_idle_connections_of_many_indexes_and_threads_are_bounded(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_IDLE_DESCRIPTORS", 30)
    indexes = [Snapshots(made(f"{number}.index")) for number in range(8)]
    before = len(descriptors())
    for _ in range(2):
        for snapshots in indexes:
            ask_together(snapshots, 6)
            assert len(descriptors()) <= before + 30
    # The last one that was asked keeps its connections: nothing is opened for its next question.
    assert len(indexes[-1]._idle) == 6
    for snapshots in indexes:  # one connection for each fits
        ask_together(snapshots, 1)
    assert [len(snapshots._idle) for snapshots in indexes] == [1] * 8
    for snapshots in indexes:
        snapshots.close()
    assert len(descriptors()) == before


def test_more_threads_than_may_wait_are_answered_and_leave_nothing(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_IDLE_DESCRIPTORS", 12)
    snapshots = Snapshots(made("x.index"))
    before = len(descriptors())
    ask_together(snapshots, 10)
    assert len(snapshots._idle) <= 4
    assert len(descriptors()) <= before + 12
    ask_together(snapshots, 3)
    assert len(snapshots._idle) == 3


def test_the_bound_follows_the_limit_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, connections in ((256, 21), (1024, 85), (20_000, 170), (resource.RLIM_INFINITY, 170)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert connecting._limit() == connections


def test_an_open_index_that_is_not_asked_holds_connections_and_nothing_else(
    made: Callable[[str], Path],
) -> None:
    folder = made("x.index")
    owner = Snapshots(folder)
    temporary(owner, "likewise-")  # the lock of the temporary folder, which all indexes share
    before = len(descriptors())
    with Searcher(folder) as searcher:
        assert searcher.search_vector(ROWS[0], 1)[0].uri == "d0"
        assert searcher.search("text", 1, mode="words")[0].uri == "d0"
        connecting.close_idle()
        assert len(descriptors()) == before
        assert searcher.search("text", 1, mode="words")[0].uri == "d0"


def test_idle_connections_make_room_when_no_file_can_be_opened(made: Callable[[str], Path]) -> None:
    indexes = [Snapshots(made(f"{number}.index")) for number in range(5)]
    folder = made("new.index")
    for snapshots in indexes:
        ask_together(snapshots, 1)
    with Searcher(folder) as searcher, allowed(max(descriptors()) + 1):
        holes = [os.open(os.devnull, os.O_RDONLY) for _ in range(max(descriptors()) + 1 - len(descriptors()))]
        with pytest.raises(OSError, match="Too many open files"):
            os.open(os.devnull, os.O_RDONLY)
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
    monkeypatch.setattr(sealed, "_READ_AT_ONCE", 0)  # mapped, as a large one is
    folder, outcomes = made("x.index"), []
    with Searcher(folder) as searcher:  # imports what a question needs
        assert [len(searcher.search("text", 1, mode="words")), len(searcher.search_vector(ROWS[0], 1))] == [1, 1]
    highest = max(descriptors())
    holes = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest + 1 - len(descriptors()))]
    try:
        for free in range(12):
            with Searcher(folder) as searcher, allowed(highest + 1 + free):
                try:
                    hits = (
                        searcher.search("text", 1, mode=mode) if mode == "words" else searcher.search_vector(ROWS[0], 1)
                    )
                    outcomes.append([hit.uri for hit in hits])
                except StorageError as error:
                    assert "this process" in str(error)
                    outcomes.append([])
    finally:
        for hole in holes:
            os.close(hole)
    assert outcomes[0] == []
    assert outcomes[-1] == ["d0"]
    assert outcomes == sorted(outcomes)


def test_a_mapped_file_of_positions_is_the_same_as_one_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.ids"
    file.write_bytes(bytes(range(256)))
    assert sealed._mapped(file).tolist() == list(range(256))
    monkeypatch.setattr(sealed, "_READ_AT_ONCE", 0)
    assert sealed._mapped(file).tolist() == list(range(256))
