"""A disk that is full and a folder that may not be written: said clearly, and nothing that was committed is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hardware import needs_root
from opened import store_of

from indexer import Document, Index
from indexer.errors import DiskFull, StorageError
from indexer.stores.local.segments import files as segment_files

ROOT = Path(__file__).parents[3]

WRITER = """
import resource, signal, sys
import numpy as np
from indexer import Document, Index
from indexer.errors import StorageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
index = Index.open(sys.argv[1])
try:
    for number in range(1000):
        index.add([Document(f"{number} {i}", "text " * 50) for i in range(50)], vectors=np.ones((50, 64)) + number)
        print(number, flush=True)
except StorageError as error:
    print(error, flush=True)
"""


READER = """
import mmap, os, sys, urllib.parse
import faiss
import numpy as np
import indexer.stores.local.store, indexer.stores.local.writer
from search import Searcher
os.setuid(65534)  # after the imports: the interpreter may lie where nobody else may read
searcher = Searcher(sys.argv[1])
print(searcher.search_vector(np.eye(4)[0], 1)[0].uri)
"""


def test_a_full_disk_keeps_what_was_committed(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    Index.create(folder, dimensions=64).close()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER, str(folder), str(600_000)]  # no file may grow beyond this
    output = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110, check=True).stdout
    *committed, error = output.splitlines()
    assert "what was committed before is kept" in error
    assert len(committed) > 1
    with Index.open(folder) as index:
        assert len(index) == 50 * len(committed)
        assert index.check().ok
        index.add([Document("after", "there is space again")], vectors=np.ones((1, 64)))
        assert "after" in index


def test_a_segment_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add([Document("a", "text")], vectors=np.eye(4)[:1])

        def full(file: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(segment_files.os, "fsync", full)
            with pytest.raises(DiskFull, match="No space left on device"):
                index.compact()
        faiss_error = "faiss::write_index(...): write error: 1 != 2 (No space left on device)\n"
        with monkeypatch.context() as patch:
            patch.setattr(segment_files, "sync", lambda _: (_ for _ in ()).throw(RuntimeError(faiss_error)))
            with pytest.raises(StorageError, match=r"written \(No space left on device\); free some space and run"):
                index.compact()
        assert list((tmp_path / "x.index" / "segments").iterdir()) == []
        index.compact()
        assert index.check().ok


@needs_root
def test_a_folder_that_may_not_be_written_is_searched(open_path: Path) -> None:
    folder = open_path / "x.index"
    with Index.create(folder, dimensions=4) as index:
        index.add([Document("a", "text")], vectors=np.eye(4)[:1])
        index.compact()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", READER, str(folder)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=110,
    )
    assert (said.stdout, said.returncode) == ("a\n", 0), said.stderr


COPIER = """
import resource, signal, sys
from indexer import Index
from indexer.errors import StorageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Index.open(sys.argv[1]) as index:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        index.copy(sys.argv[2])
    except StorageError as error:
        print(error)
"""


def test_a_copy_that_does_not_fit_is_said_of_the_copy_and_leaves_nothing(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=64) as index:
        index.add([Document(str(i), "text " * 50) for i in range(500)], vectors=np.ones((500, 64)))
    command = [sys.executable, "-c", COPIER, str(tmp_path / "x.index"), str(tmp_path / "copy.index")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110, check=True).stdout
    assert said.startswith(f"{tmp_path / 'copy.index'}: cannot be made (")
    assert [path.name for path in tmp_path.iterdir()] == ["x.index"]
    assert Index.open(tmp_path / "x.index").check().ok


FOLLOWER = """
import mmap, os, sys, urllib.parse
import faiss
import numpy as np
import indexer.stores.local.store, indexer.stores.local.writer
from search import Searcher
os.setuid(65534)
searcher = Searcher(sys.argv[1])
for line in sys.stdin:
    hits = searcher.search_vector(np.eye(4)[0], 1)
    print(hits[0].uri, *hits.notes, flush=True)
"""


@pytest.mark.slow
@needs_root
def test_who_may_not_write_sees_what_is_committed_all_the_same(open_path: Path) -> None:
    folder = open_path / "x.index"
    Index.create(folder, dimensions=4).close()
    folder.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FOLLOWER, str(folder)]
    with (
        subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment) as reader,
        Index.open(folder) as index,
    ):
        assert reader.stdin is not None
        assert reader.stdout is not None
        for number in range(12):
            document = Document(f"d{number}", "text")
            with store_of(index).writer() if number % 3 == 0 else nullcontext():  # while its log is there, and after
                index.add([document], vectors=np.eye(4)[:1])
                index.remove([f"d{number - 1}"] if number else [])
                if number % 4 == 0:
                    index.compact()
                reader.stdin.write("next\n")
                reader.stdin.flush()
                assert reader.stdout.readline() == f"d{number}\n"
        reader.stdin.close()
