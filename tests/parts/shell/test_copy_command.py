"""likewise copy: an equal index in another place, all of it or nothing that anybody sees."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from listeners import Calling
from postgres_server import new_address

import indexer.stores.addresses.copying
from indexer import Document, Index
from indexer.errors import BadInput, NotAnIndex
from indexer.listener import Commit
from indexer.stores.addresses.copying import Copied, copy
from indexer.stores.addresses.open import is_store, is_uri, open_store
from search import Searcher

DOCUMENTS = [Document(f"d{n}", f"text {n}", metadata={"year": 2000 + n, "tags": ["a", f"t{n}"]}) for n in range(10)]
VECTORS = np.random.default_rng(1).normal(size=(10, 6)).astype(np.float32)

KILLED = """
import os, signal, sys
from contextlib import closing
import indexer.stores.addresses.copying
from indexer.listener import Listener
from indexer.stores.addresses.open import open_store

class Stopping(Listener):
    def committed(self, commit):
        if commit.position >= 6:
            os.kill(os.getpid(), signal.SIGKILL)

indexer.stores.addresses.copying.BATCH_DOCUMENTS = 2
with closing(open_store(sys.argv[1])) as store:
    indexer.stores.addresses.copying.copy(store, sys.argv[2], Stopping())
"""

TORCHLESS = """
import sys
from likewise.shell import main

try:
    main(["copy", *sys.argv[1:], "--json"])
finally:
    assert not {"torch", "openvino", "transformers", "tokenizers"} & set(sys.modules)
"""

PLACES: dict[str, Callable[[Path], str]] = {
    "folder": lambda folder: str(folder / "copy.index"),
    "database": lambda folder: new_address(),
}


@pytest.fixture(params=PLACES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address where nothing is yet."""
    return PLACES[request.param](tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    address = str(tmp_path / "source.index")
    with Index.create(address, dimensions=6) as index:
        index.add(DOCUMENTS, vectors=VECTORS)
    return address


@pytest.fixture
def far(source: str, target: str) -> str:
    """The source, in a database if the target is a folder: a copy of it can be continued."""
    if is_uri(target):
        return source
    address = new_address()
    copied(source, address)
    return address


def copied(source: str, target: str, committed: Callable[[Commit], Any] = lambda commit: None) -> Copied:
    with closing(open_store(source)) as store:
        return copy(store, target, Calling(committed=committed))


def answers(address: str) -> list[Any]:
    with Searcher(address) as searcher:
        hits = [searcher.search_vector(vector, k=4, where="year >= 2002") for vector in VECTORS]
        words = searcher.search("text 3", mode="words", k=3)
        return [[(hit.uri, hit.score) for hit in each] for each in hits] + [[hit.uri for hit in words]]


@pytest.mark.parametrize("middle", ["folder", pytest.param("database", marks=pytest.mark.slow)])
def test_a_copy_of_a_copy_answers_as_the_original(middle: str, source: str, target: str, tmp_path: Path) -> None:
    between = PLACES[middle](tmp_path / "between")
    assert copied(source, between) == Copied(copied=10, removed=0, documents=10, passages=10)
    assert copied(between, target).documents == 10
    assert answers(target) == answers(source)
    with Index.open(target) as index:
        assert list(index) == DOCUMENTS
        assert index.check().problems == ()
        assert "did not finish" not in " ".join(index.check().notes)


def test_a_copy_that_failed_is_nowhere_and_goes_on(far: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer.stores.addresses.copying, "BATCH_DOCUMENTS", 2)

    def fail(commit: Commit) -> None:
        if commit.position == 4:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        copied(far, target, fail)
    assert not is_store(target)
    with pytest.raises(NotAnIndex):
        Searcher(target).info()
    with Index.open(far) as index:
        index.remove(["d0"])
    told: list[tuple[int, int | None]] = []
    assert copied(far, target, lambda commit: told.append((commit.position, commit.total))) == replace(
        copied(far, target), copied=6, removed=1
    )
    assert told == [(5, 9), (7, 9), (9, 9)]


@pytest.mark.parametrize("target", ["database", pytest.param("folder", marks=pytest.mark.slow)], indirect=True)
def test_a_copy_that_was_killed_goes_on(
    likewise: Callable[..., Any], environment: SimpleNamespace, far: str, target: str
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, far, target], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert likewise("info", target).code == 2
    likewise("copy", far, target, "--json").reported(0, copied=4, documents=10)
    assert answers(target) == answers(far)


def test_what_an_interrupted_copy_of_another_index_left_is_thrown_away(far: str, target: str, tmp_path: Path) -> None:
    def fail(commit: Commit) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        copied(far, target, fail)
    wide = new_address() if is_uri(far) else str(tmp_path / "wide.index")
    with Index.create(wide, dimensions=7) as index:
        index.add([Document("wide", "wide")], vectors=np.ones((1, 7), np.float32))
    assert copied(wide, target) == Copied(1, 0, 1, 1)


def test_an_index_that_exists_gets_what_it_lacks_and_loses_nothing(source: str, target: str, tmp_path: Path) -> None:
    copied(source, target)
    with Index.open(source) as index:
        index.add([Document("new", "new")], vectors=np.ones((1, 6), np.float32))
    assert copied(source, target).copied == 1
    with Index.open(target) as index:
        index.add([Document("own", "own")], vectors=np.ones((1, 6), np.float32))
    with pytest.raises(BadInput, match=r"1 document.* does not have, such as own: nothing was copied"):
        copied(source, target)
    with pytest.raises(BadInput, match="is the index that is to be copied"):
        copied(source, source)
    with Index.create(tmp_path / "wide.index", dimensions=7):
        pass
    with pytest.raises(BadInput, match="has another model, or other passages"):
        copied(source, str(tmp_path / "wide.index"))
    with Index.open(target) as index:
        assert len(index) == 12


def test_a_document_that_changes_while_it_is_copied_is_copied_again(
    far: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer.stores.addresses.copying, "BATCH_DOCUMENTS", 2)

    def change(commit: Commit) -> None:
        if commit.position == 2:
            with Index.open(far) as index:
                index.add(
                    [replace(DOCUMENTS[1], text="other"), replace(DOCUMENTS[9], text="other")], vectors=VECTORS[:2]
                )

    done = copied(far, target, change)
    assert (done.documents, done.copied) == (10, 12)
    with Index.open(target) as index:
        assert [index.get(uri).text for uri in ("d1", "d9")] == ["other", "other"]
        assert index.check().ok


def test_a_folder_is_copied_into_a_new_folder(likewise: Callable[..., Any], source: str, tmp_path: Path) -> None:
    copy, taken = tmp_path / "copy.index", tmp_path / "taken"
    numbers = {"copied": 10, "documents": 10, "passages": 10, "notes": []}
    assert likewise("copy", source, copy, "--json").json == {"copy": str(copy), **numbers}
    assert likewise("remove", source, "d3").code == 0
    assert likewise("info", copy, "--json").json["documents"] == 10
    taken.mkdir()
    (taken / "file").write_text("kept")
    likewise("copy", source, taken).failed(2)
    assert (taken / "file").read_text() == "kept"


def test_nothing_is_embedded_and_no_model_is_loaded(environment: SimpleNamespace, source: str, target: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", TORCHLESS, source, target], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["copied"] == 10


def test_the_ledger_and_what_was_learned_are_copied(likewise: Callable[..., Any], tmp_path: Path, target: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Bread\n\nKnead the dough.\n")
    (tmp_path / "notes" / "r.jsonl").write_text('{"id": "r", "text": "yeast"}\n{"id": \n')
    original = tmp_path / "notes.index"
    assert likewise("index", original, tmp_path / "notes", "--recall", "0.9").code == 1
    assert likewise("copy", original, target).code == 0
    ledgers = [likewise("info", address, "--ledger", "--json").out.splitlines() for address in (original, target)]
    assert sorted(ledgers[0]) == sorted(ledgers[1])
    assert likewise("status", target, "--json").json == likewise("status", original, "--json").json
    assert likewise("index", target, tmp_path / "notes", "--json").json["unchanged"] == 2
    with Index.open(target) as index:
        assert index.settings.recall == 0.9


def test_a_copy_says_where_nothing_is(likewise: Callable[..., Any], tmp_path: Path, target: str) -> None:
    likewise("copy", tmp_path / "nothing.index", target).failed(2, "nothing.index: there is no index here")
    assert not is_store(target)
