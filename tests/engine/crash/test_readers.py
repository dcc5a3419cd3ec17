"""One writer and many readers, in processes of their own: no error, no torn document, no count that falls."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from indexer import Document, Index
from search import Searcher

ROOT = Path(__file__).parents[3]

READER = """
import sys, time
import numpy as np
from search import Searcher
searcher, counts = Searcher(sys.argv[1]), [0]
question = np.ones(8, np.float32)
print("ready", flush=True)
until = time.time() + float(sys.argv[2])
while time.time() < until or (len(set(counts)) < 4 and counts[-1] < 910):  # a busy machine takes longer
    hits = searcher.search_vector(question, 1000)
    assert hits.matched == len(hits) >= counts[-1], (hits.matched, len(hits), counts[-1])
    assert len(hits) % 7 == 0, f"a torn commit: {len(hits)}"
    counts.append(len(hits))
print(len(set(counts)))
"""


@pytest.mark.parametrize(
    "seconds",
    [
        1,
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(200)]),
    ],
)
def test_readers_see_whole_commits_and_no_count_falls(tmp_path: Path, seconds: int) -> None:
    folder = tmp_path / "x.index"
    many = 2 if seconds < 10 else 8
    with Index.create(folder, dimensions=8) as index:
        command = [sys.executable, "-W", "error", "-c", READER, str(folder), str(seconds)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(many)]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        number = 0
        generator = np.random.default_rng(0)
        while any(reader.poll() is None for reader in readers):
            if number < 130:  # 910 documents
                documents = [Document(f"{number} {i}", "text") for i in range(7)]
                index.add(documents, vectors=generator.normal(size=(7, 8)))
            number += 1
            if number % 10 == 0:
                index.compact("approximate" if number % 20 else "exact")
        for reader in readers:
            output, _ = reader.communicate(timeout=110)
            assert reader.returncode == 0
            assert int(output) > 2


def test_adding_from_several_threads(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "x.index", dimensions=4)

    def work(thread: int) -> None:
        for i in range(10):
            index.add([Document(f"{thread} {i}", "text")], vectors=np.full((1, 4), thread + 1.0))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == 40
    assert index.check().ok


def test_a_folder_renamed_or_replaced_while_it_is_open(tmp_path: Path) -> None:
    old, new = tmp_path / "x.index", tmp_path / "y.index"
    for folder, uri in ((old, "old"), (new, "new")):
        with Index.create(folder, dimensions=4) as index:
            index.add([Document(uri, "text")], vectors=np.eye(4)[:1])
    searcher = Searcher(old)
    assert searcher.search_vector(np.eye(4)[0], 1)[0].uri == "old"
    old.rename(tmp_path / "elsewhere.index")
    new.rename(old)
    assert searcher.search_vector(np.eye(4)[0], 1)[0].uri == "new"


def test_two_names_for_one_folder_share_the_lock_and_the_rows(tmp_path: Path) -> None:
    folder, link = tmp_path / "x.index", tmp_path / "link.index"
    index = Index.create(folder, dimensions=4)
    link.symlink_to(folder)
    with Searcher(link) as searcher:
        index.add([Document("a", "text")], vectors=np.eye(4)[:1])
        assert searcher.search_vector(np.eye(4)[0], 1)[0].uri == "a"
        Index.open(link).add([Document("b", "text")], vectors=np.eye(4)[1:2])
        assert index.get("b").text == "text"


def test_a_clock_that_goes_backwards_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add([Document("a", "text")], vectors=np.eye(4)[:1])
        index.compact()
        monkeypatch.setattr(time, "time", lambda: 0.0)
        index.add([Document("b", "text")], vectors=np.eye(4)[1:2])
        index.compact()
        assert [document.uri for document in index] == ["a", "b"]
        assert index.check().ok
