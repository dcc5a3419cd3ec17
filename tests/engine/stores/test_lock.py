"""One writer at a time, told apart by process and by thread; a reader waits for nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from listeners import Calling
from opened import store_of

from indexer import Document, Index
from indexer.errors import IndexLocked
from indexer.stores.local.disk.lock import WriterLock
from search import Searcher

HOLDER = """
import fcntl, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(file, fcntl.LOCK_EX)
os.ftruncate(file, 0)
os.pwrite(file, str(os.getpid()).encode(), 0)
print("held", flush=True)
time.sleep(60)
"""


@contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The lock of a folder, held by another process."""
    command = [sys.executable, "-S", "-c", HOLDER, str(folder / "LOCK")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index.create(tmp_path / "x.index", dimensions=2)
    index.add([Document("a", "text")], vectors=np.eye(2)[:1])
    return index


def test_another_process_is_named_or_waited_for(index: Index) -> None:
    lock, told = WriterLock(Path(store_of(index).address)), []
    with held(Path(store_of(index).address)) as process:
        with pytest.raises(IndexLocked, match=rf"written by process {process.pid}: try again"), lock.hold(wait=False):
            pass
        start = time.monotonic()
        threading.Timer(0.3, process.kill).start()
        with lock.hold(listener=Calling(waiting=told.append)):
            assert time.monotonic() - start >= 0.25
    (said,) = told
    assert said.startswith(f"{Path(store_of(index).address)} is being written by process {process.pid}: waiting")


def test_a_killed_holder_leaves_no_lock_behind(index: Index) -> None:
    with held(Path(store_of(index).address)) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with WriterLock(Path(store_of(index).address)).hold(wait=False):
            assert (Path(store_of(index).address) / "LOCK").read_text() == str(os.getpid())


def test_reading_waits_for_no_writer(index: Index) -> None:
    with held(Path(store_of(index).address)), Searcher(Path(store_of(index).address)) as searcher:
        assert searcher.search_vector(np.eye(2)[0], 1)[0].uri == "a"
        assert len(index) == 1
        assert index.check().ok


def test_threads_of_one_process_take_turns(index: Index) -> None:
    with store_of(index).writer():
        failures: list[BaseException] = []

        def write() -> None:
            try:
                with store_of(index).writer(wait=False):
                    pass
            except IndexLocked as error:
                failures.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        with store_of(index).writer(wait=False):  # the same thread may
            index.add([Document("b", "text")], vectors=np.eye(2)[1:])
    assert str(os.getpid()) in str(failures[0])
    other = Index.open(Path(store_of(index).address))
    with other, store_of(index).writer(), pytest.raises(IndexLocked), store_of(other).writer(wait=False):
        pass


def test_the_shell_waits_or_says_who_writes(likewise: Any, encoder: Any, tmp_path: Path, lines: Any) -> None:
    folder = tmp_path / "y.index"
    likewise("index", folder, "-", stdin=lines({"id": "a", "text": "text"}))
    more = lines({"id": "b", "text": "text"})
    with held(folder) as process:
        for arguments in (["index", folder, "-", "--no-wait"], ["remove", folder, "a", "--no-wait"]):
            likewise(*arguments, stdin=more).failed(3, f"process {process.pid}")
        likewise("compact", folder, "--no-wait").failed(3, f"process {process.pid}")
        assert likewise("index", folder, "-", "--no-wait", "--rebuild", stdin=more).code == 3
        assert likewise("search", folder, "text").code == 0
        threading.Timer(0.3, process.kill).start()
        said = likewise("index", folder, "-", stdin=more)
    assert f"being written by process {process.pid}" in said.succeeded().err
    assert likewise("info", folder, "--json").json["documents"] == 2


def test_who_waited_for_a_folder_that_was_replaced_locks_the_new_one(index: Index, tmp_path: Path) -> None:
    folder, lock = Path(store_of(index).address), WriterLock(Path(store_of(index).address))
    Index.create(tmp_path / "y.index", dimensions=2).close()
    with held(folder) as process:

        def replace() -> None:
            folder.rename(tmp_path / "old.index")
            (tmp_path / "y.index").rename(folder)
            process.kill()

        threading.Timer(0.3, replace).start()
        with lock.hold(), pytest.raises(IndexLocked), WriterLock(folder).hold(wait=False):
            pass
