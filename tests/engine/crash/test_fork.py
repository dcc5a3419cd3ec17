"""A server that opens a searcher and forks its workers: they answer as it does, and see what is committed later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hardware import needs_fork

from indexer import Document, Index

pytestmark = needs_fork

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "2"}  # forking is hard only for who has threads, on one core too
ROWS = np.random.default_rng(0).normal(size=(3000, 32)).astype(np.float32)

WORKERS = """
import faulthandler, os, sys
import numpy as np
from indexer import Document, Index
from search import Searcher
rows = np.load(sys.argv[2])
def answers():
    return [(hit.uri, hit.score) for row in rows[:5] for hit in searcher.search_vector(row, 20)]
searcher = Searcher(sys.argv[1])
expected = answers(), [hit.uri for hit in searcher.search("text", 5, mode="words")]
for number in range(3):
    with Index.open(sys.argv[1]) as index:
        index.add([Document("new", f"version {number}", metadata={"n": number})], vectors=rows[:1])
    if (child := os.fork()) == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        found = [hit for hit in searcher.search_vector(rows[0], 2) if hit.uri == "new"]
        assert [hit.text for hit in found] == [f"version {number}"], found
        with Index.open(sys.argv[1]) as index:
            index.remove(["new"])
        assert (answers(), [hit.uri for hit in searcher.search("text", 5, mode="words")]) == expected
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert answers() == expected[0]
"""


@pytest.mark.parametrize("kind", ["exact", pytest.param("approximate", marks=pytest.mark.slow)])
def test_forked_workers_answer_as_their_parent(tmp_path: Path, kind: str) -> None:
    with Index.create(tmp_path / "x.index", dimensions=32) as index:
        index.add([Document(str(i), f"the text of {i}") for i in range(len(ROWS))], vectors=ROWS)
        index.compact(kind)
    np.save(tmp_path / "rows.npy", ROWS)
    command = [sys.executable, "-c", WORKERS, str(tmp_path / "x.index"), str(tmp_path / "rows.npy")]
    subprocess.run(command, check=True, timeout=120, env=ENVIRONMENT)


FOLLOWERS = """
import faulthandler, os, sys, time
import numpy as np
from indexer import Document, Index
from search import Searcher
searcher = Searcher(sys.argv[1])
assert len(searcher.search("text", 5, mode="words")) == 5
children = []
for number in range(3):
    if (child := os.fork()) == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        while not len(searcher.search("lasting", 5, mode="words")):
            time.sleep(0.01)
        assert searcher.search("text", 5, mode="words").matched == 3000
        sys.exit(0)
    children.append(child)
with Index.open(sys.argv[1]) as index:
    index.add([Document("new", "lasting")], vectors=np.ones((1, 32), np.float32))
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
assert searcher.search("lasting", 5, mode="words").matched == 1
assert searcher.search("text", 5, mode="words").matched == 3000
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_forked_workers_follow_the_words_each_on_its_own(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=32) as index:
        index.add([Document(str(i), f"the text of {i}") for i in range(len(ROWS))], vectors=ROWS)
        index.compact()
    command = [sys.executable, "-W", "error::UserWarning", "-c", FOLLOWERS, str(tmp_path / "x.index")]
    subprocess.run(command, check=True, timeout=120, env=ENVIRONMENT)


HOLDER = """
import faulthandler, os, sys
import numpy as np
from indexer import Document, Index
from indexer.errors import IndexLocked
index = Index.open(sys.argv[1])
go, ready = os.pipe(), os.pipe()
row = np.ones((1, 32), np.float32)
with index._core.store.writer():
    if (child := os.fork()) == 0:
        faulthandler.dump_traceback_later(100, exit=True)
        try:
            with index._core.store.writer(wait=False):
                os._exit(7)
        except IndexLocked:
            os.write(ready[1], b"locked")
        os.read(go[0], 1)
        index.add([Document("child", "of the child")], vectors=row)
        os._exit(0)
    assert os.read(ready[0], 6) == b"locked"
with index._core.store.writer(wait=False):
    index.add([Document("parent", "of the parent")], vectors=row)
os.write(go[1], b".")
assert os.waitpid(child, 0)[1] == 0
assert "child" in index and "parent" in index
assert index.check().ok
"""


def test_a_child_forked_by_a_writer_neither_writes_with_it_nor_keeps_its_lock(tmp_path: Path) -> None:
    Index.create(tmp_path / "x.index", dimensions=32).close()
    subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path / "x.index")], check=True, timeout=120, env=ENVIRONMENT)


LEAVERS = """
import faulthandler, os, sys
import numpy as np
from indexer import Document, Index
faulthandler.dump_traceback_later(100, exit=True)
index = Index.open(sys.argv[1])
parent, row = os.getpid(), np.ones((1, 32), np.float32)
def work(how):
    with index._core.store.writer():
        if os.fork() == 0:
            if how == "reads":
                with index._core.store.snapshot() as snapshot:
                    snapshot.ledger_counts()
            return  # the child leaves the block as its parent does
    os.wait()
for how in ("leaves", "reads"):
    work(how)
    if os.getpid() != parent:
        index.add([Document(how, "of the child")], vectors=row)
        os._exit(0)
    index.add([Document(f"after {how}", "of the parent")], vectors=row)
def read():
    with index._core.store.snapshot():
        if os.fork() == 0:
            index.info()
            return
    assert os.wait()[1] == 0
read()
if os.getpid() != parent:
    assert index.info().documents == 4
    os._exit(0)
assert sorted(document.uri for document in index) == ["after leaves", "after reads", "leaves", "reads"]
assert index.check().ok
"""


def test_a_child_may_leave_the_block_that_it_was_forked_in(tmp_path: Path) -> None:
    Index.create(tmp_path / "x.index", dimensions=32).close()
    subprocess.run([sys.executable, "-c", LEAVERS, str(tmp_path / "x.index")], check=True, timeout=120, env=ENVIRONMENT)


CLOSERS = """
import faulthandler, os, sys, threading
from search import Searcher
searcher = Searcher(sys.argv[1])
assert len(searcher.search("text", 5, mode="words")) == 5
with searcher._store.snapshot() as snapshot:
    locks = [searcher._store._views._lock, snapshot._view.reader._lock]
held, done = threading.Event(), threading.Event()
def hold():
    with locks[0], locks[1]:
        held.set()
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
if (child := os.fork()) == 0:
    faulthandler.dump_traceback_later(20, exit=True)
    searcher._store.close()
    assert len(searcher.search("text", 5, mode="words")) == 5
    searcher.close()
    os._exit(0)
done.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
assert len(searcher.search("text", 5, mode="words")) == 5
searcher.close()
"""


def test_a_child_closes_what_another_thread_of_its_parent_was_using(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=32) as index:
        index.add([Document(str(i), f"the text of {i}") for i in range(10)], vectors=ROWS[:10])
        index.compact()
    subprocess.run([sys.executable, "-c", CLOSERS, str(tmp_path / "x.index")], check=True, timeout=120, env=ENVIRONMENT)


ASKED = """
import faulthandler, os, sys
import numpy as np
from search import Searcher
searcher = Searcher(sys.argv[1])
questions = ["why is my bread stale", *(f"question {number}" for number in range(40))]
def vectors():
    with searcher._store.snapshot() as snapshot:
        return searcher.answering.questions.encode(snapshot, questions)[0]
expected = vectors()
assert searcher.search("why is my bread stale", 1)[0].uri == "bread"
for _ in range(2):
    if (child := os.fork()) == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        assert np.abs(vectors() - expected).max() < 1e-3
        assert [hit.uri for hit in searcher.search("why is my bread stale", 2, mode="hybrid")] == ["bread", "star"]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert (searcher.search("why is my bread stale", 1)[0].uri, "torch" in sys.modules) == ("bread", sys.argv[2] == "torch")
"""


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["torch", pytest.param("openvino", marks=pytest.mark.needs("speed"))])
def test_workers_forked_after_a_question_embed_questions_as_their_parent(tmp_path: Path, runtime: str) -> None:
    with Index.create(tmp_path / "x.index") as index:
        index.add([Document("bread", "Bread goes stale as its starch crystallises."), Document("star", "Stars fuse.")])
        if runtime == "openvino":
            index.compile()
    command = [sys.executable, "-c", ASKED, str(tmp_path / "x.index"), runtime]
    subprocess.run(command, check=True, timeout=120, env=ENVIRONMENT)
