"""A word index that is damaged, lags, is copied or was never made changes no answer and is mended by itself."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of, store_of, writer_of

from indexer import Changes, Document, Index
from indexer.stores.addresses.open import open_store
from indexer.stores.local.disk.failpoint import STEPS
from indexer.stores.local.words import files as word_files

Answers = list[tuple[list[int], list[float], int]]
QUESTIONS = ["number 7", "document seven", "tail", "odd 13", "the seventh"]


def texts(count: int) -> list[Document]:
    names = ["seven", "seventh", "odd", "even"]
    return [Document(f"d{i}", f"document number {i} {names[i % 4]} " * (1 + i % 5)) for i in range(count)]


def add(index: Index, documents: list[Document]) -> Changes:
    return index.add(documents, vectors=np.ones((len(documents), 2), np.float32))


def make(folder: Path) -> Path:
    """An index whose word index has dead rows and a tail."""
    with Index.create(folder, dimensions=2) as index:
        add(index, texts(60))
        index.compact()
        index.remove(["d3", "d5"])
        writer_of(index).settle()
        index.remove(["d8"])
        add(index, [Document("tail", "not in the word index")])
    return folder


def answers(folder: Path) -> Answers:
    store = open_store(folder)
    try:
        rankings = [snapshot_of(store).words(question, 20) for question in QUESTIONS]
        return [(r.passages.tolist(), r.scores.tolist(), r.matched) for r in rankings]
    finally:
        store.close()


def notes(folder: Path) -> tuple[str, ...]:
    """The notes of the second of two snapshots after it has ranked by words."""
    store = open_store(folder)
    try:
        for _ in range(2):
            with store.snapshot() as snapshot:
                assert snapshot.notes == ()
                snapshot.words("number", 1)
                found = snapshot.notes
        return found
    finally:
        store.close()


def close(found: Answers) -> list[tuple[list[int], Any, int]]:
    """The same rankings, with scores that may differ in their last digit: tantivy sums single floats."""
    return [(ids, pytest.approx(scores, abs=1.5e-4), matched) for ids, scores, matched in found]


def files(folder: Path) -> list[Path]:
    with sqlite3.connect(folder / "catalog.db") as catalog:
        name, recorded = catalog.execute("SELECT name, files FROM word_index").fetchone()
    catalog.close()
    return [folder / "words" / name / file for file in json.loads(recorded)]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.Random(len(data)).randrange(len(data))] ^= 4
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "harm", [flip, *(pytest.param(harm, marks=pytest.mark.slow) for harm in (truncate, Path.unlink))]
)
def test_no_damage_changes_an_answer(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    sound = make(tmp_path / "sound.index")
    expected = close(answers(sound))
    for number, path in enumerate(files(sound)):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        harm(folder / path.relative_to(sound))
        assert answers(folder) == expected, path
        (note,) = notes(folder)
        assert re.match("word index .*; answering from the catalog until the next writer rebuilds it$", note)
        shutil.rmtree(folder)


def test_damage_is_a_problem_of_check_and_repaired(tmp_path: Path, likewise: Callable[..., Any]) -> None:
    folder = make(tmp_path / "x.index")
    expected = close(answers(folder))
    flip(files(folder)[0])
    with Index.open(folder) as index:
        (problem,) = index.check().problems
        assert "does not match its checksum" in problem
        report = index.check(repair=True)
        assert (report.problems, report.notes) == ((), ("rebuilt the word index",))
        assert index.check().ok
    assert answers(folder) == expected
    shutil.rmtree(folder / "words")
    with Index.open(folder) as index:
        assert "cannot be read" in index.check().problems[0]
        add(index, [Document("next", "the writer after that")])
        assert index.check().ok
        assert snapshot_of(index).words("writer", 3).matched == 1
    assert likewise("check", folder).code == 0


def test_content_that_changed_under_the_same_stamp_is_found_by_check_alone(tmp_path: Path) -> None:
    folder = make(tmp_path / "x.index")
    flip(files(folder)[0])
    with sqlite3.connect(folder / "catalog.db") as catalog:
        now = word_files.stamp_of(files(folder))
        catalog.execute("UPDATE word_index SET stamp = ?", (now,))
    catalog.close()
    with Index.open(folder) as index:
        assert not index.check().ok
        assert index.check(repair=True).ok


def test_a_lagging_word_index_is_a_note(tmp_path: Path) -> None:
    with Index.open(make(tmp_path / "x.index")) as index:
        report = index.check()
        assert report.problems == ()
        assert report.notes[0].startswith("the word index lags 1 passage behind")
        index.compact()
        assert index.check().notes == ()


def test_a_long_tail_is_caught_up_while_adding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_files.catch_up, "__defaults__", (50, None))
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        for number in range(9):
            documents = [Document(f"{number} {i}", f"text {number} {i}") for i in range(20)]
            add(index, documents)
            assert snapshot_of(index).words("text", 5).matched == len(index) == 20 * (number + 1)
        with store_of(index)._views.view() as view:
            row = word_files.read_record(view)
        assert row is not None
        assert (row.last_id, row.appended) == (180, 2)
        assert len(list((tmp_path / "x.index" / "words").iterdir())) == 2  # the one before is spared
        index.compact()
        assert len(list((tmp_path / "x.index" / "words").iterdir())) == 1


def test_an_index_without_a_word_index_is_searched_by_words(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    with Index.create(folder, dimensions=2) as index:
        add(index, [Document(f"d{i}", f"text {i}", f"title {i}") for i in range(30)])
    shutil.rmtree(folder / "words", ignore_errors=True)
    with closing(sqlite3.connect(folder / "catalog.db")) as catalog, catalog:
        catalog.execute("DELETE FROM word_index")
    store = open_store(folder)
    found = snapshot_of(store).words("text title 12", 3)
    assert snapshot_of(store).passages_by_id(found.passages.tolist())[0].uri == "d12"
    assert snapshot_of(store).words("text", 5).matched == 30
    writer_of(store).compact()
    assert snapshot_of(store).words("text", 5).matched == 30
    assert len(list((folder / "words").iterdir())) == 1
    store.close()


@pytest.mark.slow
def test_a_copy_carries_the_word_index(tmp_path: Path) -> None:
    folder = make(tmp_path / "x.index")
    with Index.open(folder) as index:
        index.copy(tmp_path / "copy.index")
    assert [path.name for path in files(tmp_path / "copy.index")] == [path.name for path in files(folder)]
    assert answers(tmp_path / "copy.index") == close(answers(folder))
    assert notes(tmp_path / "copy.index") == ()
    with Index.open(tmp_path / "copy.index") as copy, Index.open(folder) as index:
        assert copy.check().ok
        add(copy, [Document("only in the copy", "copied tail")])
        add(index, [Document("only in the original", "original tail")])
        assert snapshot_of(copy).words("original", 3).matched == snapshot_of(index).words("copied", 3).matched == 0


def test_a_copied_folder_is_hashed_once_more_and_trusted(tmp_path: Path) -> None:
    folder = make(tmp_path / "x.index")
    shutil.copytree(folder, tmp_path / "copy.index")
    assert answers(tmp_path / "copy.index") == close(answers(folder))
    assert notes(tmp_path / "copy.index") == ()
    with Index.open(tmp_path / "copy.index") as copy:
        copy.check(repair=True)
        with store_of(copy)._views.view() as view:
            row = word_files.read_record(view)
        assert row is not None
        assert word_files.stamp(tmp_path / "copy.index", row) == row.stamp


def test_a_replaced_folder_is_noticed(tmp_path: Path) -> None:
    make(tmp_path / "x.index")
    reader = open_store(tmp_path / "x.index")
    assert snapshot_of(reader).words("tail", 3).matched == 0
    assert snapshot_of(reader).words("odd", 3).matched == 15
    with Index.create(tmp_path / "y.index", dimensions=2) as other:
        add(other, [Document("a", "an odd text")])
    (tmp_path / "x.index").rename(tmp_path / "old.index")
    (tmp_path / "y.index").rename(tmp_path / "x.index")
    assert snapshot_of(reader).words("odd", 3).matched == 1
    reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("words.")])
def test_a_writer_killed_while_writing_words(tmp_path: Path, environment: SimpleNamespace, step: str) -> None:
    folder = make(tmp_path / "x.index")
    expected = close(answers(folder))
    code = (
        "from indexer.stores.addresses.open import open_store\n"
        f"with open_store({str(folder)!r}).writer() as writer: writer.settle()"
    )
    killed = subprocess.run(
        [environment.python, "-c", code],
        env={**os.environ, "LIKEWISE_KILL_AT": step},
        cwd=environment.root,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert (answers(folder), notes(folder)) == (expected, ())
    with Index.open(folder) as index:
        assert index.check().ok
        index.compact()
        assert len(list((folder / "words").iterdir())) == 1
    assert (answers(folder), notes(folder)) == (expected, ())


def test_a_full_disk_leaves_the_word_index_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "x.index")
    expected = close(answers(folder))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Index.open(folder) as index:
        monkeypatch.setattr(word_files, "fill", full)
        with pytest.raises(Exception, match=r"could not be written .*No space left"):
            writer_of(index).settle()
        monkeypatch.setattr(word_files.catch_up, "__defaults__", (1, None))
        with store_of(index).writer() as writer:
            (note,) = add(index, [Document("added", "committed all the same")]).notes
            assert writer.notes == (note,)
            assert "could not be written" in note
            assert "No space left" in note
            assert index.get("added").text == "committed all the same"
        assert writer_of(index).remove(["added"]) == 1
        monkeypatch.undo()
    assert answers(folder) == expected
    assert not list((folder / "words").glob("*.tmp"))


@pytest.mark.slow
def test_a_record_that_lost_count_is_not_trusted(tmp_path: Path) -> None:
    folder = make(tmp_path / "x.index")
    expected = close(answers(folder))
    for change in ("UPDATE word_index SET last_id = 40", "DELETE FROM dead_word", "UPDATE word_index SET files = '7'"):
        shutil.copytree(folder, tmp_path / "copy.index")
        with sqlite3.connect(tmp_path / "copy.index" / "catalog.db") as catalog:
            catalog.execute(change)
        catalog.close()
        assert answers(tmp_path / "copy.index") == expected, change
        assert [note[:11] for note in notes(tmp_path / "copy.index")] == ["word index "], change
        shutil.rmtree(tmp_path / "copy.index")
