"""Copy, export and import: another index with the same answers, and nothing embedded twice."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of, store_of, writer_of

from indexer import Document, Index
from indexer.errors import BadInput, IndexLocked, RecipeMismatch
from indexer.exchange import Embedded, from_record, to_record
from indexer.indexing.ingest import Run
from indexer.records import Section, Span
from indexer.settings import Settings
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.copying import copy, copy_commit
from indexer.stores.addresses.open import engine_of, holds_store, open_store
from indexer.stores.hashes import row_hash
from indexer.stores.local.disk.lock import WriterLock
from indexer.stores.local.store import LocalStore
from indexer.stores.port import Batch, EmbeddedDocument, Hashes
from search import Searcher

LONG = Document("long", "0123456789")
ROWS = np.random.default_rng(1).normal(size=(600, 8)).astype(np.float32)


def _made(folder: Path, count: int = 600) -> Index:
    index = Index.create(folder, dimensions=8)
    documents = [Document(f"d{i}", f"text {i}", f"title {i}", {"n": i}) for i in range(count)]
    index.add(documents, vectors=ROWS[:count])
    return index


def _answers(folder: Path) -> list[tuple[str, float]]:
    with Searcher(folder) as searcher:
        return [(hit.uri, hit.score) for row in ROWS[:5] for hit in searcher.search_vector(row, 5)]


@pytest.mark.parametrize("kind", ["exact", "approximate"])
def test_a_copy_answers_as_the_original_and_has_a_history_of_its_own(tmp_path: Path, kind: str) -> None:
    index = _made(tmp_path / "x.index")
    index.compact(kind)
    index.remove(["d1"])
    index.copy(tmp_path / "deep" / "y.index")
    with Index.open(tmp_path / "deep" / "y.index") as copy:
        assert copy.check().ok
        assert copy.info().history != index.info().history
        assert [document.uri for document in copy] == [document.uri for document in index]
    assert _answers(tmp_path / "deep" / "y.index") == _answers(tmp_path / "x.index")
    with pytest.raises(BadInput, match="is there already"):
        index.copy(tmp_path / "deep" / "y.index")


def test_a_copy_while_a_writer_never_pauses_is_one_commit(tmp_path: Path) -> None:
    index, stop = _made(tmp_path / "x.index", 100), threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            index.add([Document(f"more {number} {i}", "text") for i in range(10)], vectors=ROWS[:10])
            index.compact()
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            with closing(open_store(tmp_path / "x.index")) as store:
                done = copy(store, str(tmp_path / f"{number}.index"))
            assert (done.documents % 10, done.copied) == (0, done.documents)
    finally:
        stop.set()
        writer.join()
    for number in range(5):
        with Index.open(tmp_path / f"{number}.index") as made:
            assert made.check().ok
            assert len(made) % 10 == 0


def test_a_record_comes_back_as_it_was() -> None:
    document = Document(
        "a", "one two", "t", {"x": [1, None]}, "/p/a.md", "markdown", "2024-01-01T00:00:00Z", (Section(0, "h", 3),)
    )
    rows = ROWS[:2].astype(np.float16).astype(np.float32)
    embedded = Embedded((Span(0, 3, tokens=5, heading="h", page=3), Span(4, 7)), rows, "r")
    again, own = from_record(json.loads(json.dumps(to_record(document, embedded))))
    assert again == document
    assert own is not None
    assert (own.spans, own.recipe) == (embedded.spans, "r")
    np.testing.assert_array_equal(own.vectors.astype(np.float16), rows.astype(np.float16))
    assert from_record(to_record(document, None)) == (document, None)
    assert from_record({"likewise": 1, "id": "a", "text": "x", "title": None}) == (Document("a", "x"), None)
    with pytest.raises(ValueError, match="passages do not fit"):
        from_record({"likewise": 1, "id": "a", "text": "x", "passages": [{"start": 0, "end": 9, "vector": [1]}]})


def _ingested(index: Index, file: Path) -> tuple[int, int]:
    options = ReadOptions()
    with store_of(index).writer() as writer:
        summary = Run(index._core, writer, options).feed(open_sources((str(file),), options, holds_store))
    return summary.indexed, summary.failed


@pytest.mark.needs("shell", "inspection")
def test_an_export_with_vectors_is_taken_in_without_embedding(tmp_path: Path) -> None:
    index = _made(tmp_path / "x.index", 20)
    # One document of several passages, as a model makes them.
    rows = np.asarray(ROWS[30:33] / np.linalg.norm(ROWS[30:33], axis=1, keepdims=True), np.float32)
    spans = (Span(0, 4, tokens=9), Span(3, 8), Span(8, 10))
    writer_of(index).put(Batch([EmbeddedDocument(LONG, Hashes(b"c", row_hash(LONG)), spans, rows)]))
    command = [
        sys.executable,
        "-c",
        "from likewise.shell import main; main()",
        "export",
        str(tmp_path / "x.index"),
        "--vectors",
    ]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    (tmp_path / "x.jsonl").write_text(said)
    copy = Index.create(tmp_path / "y.index", dimensions=8)
    assert _ingested(copy, tmp_path / "x.jsonl") == (21, 0)
    assert list(copy) == list(index)
    assert copy.info().passages == 23
    assert _answers(tmp_path / "y.index") == _answers(tmp_path / "x.index")
    np.testing.assert_array_equal(snapshot_of(copy).vectors_of("long"), snapshot_of(index).vectors_of("long"))


def test_vectors_of_another_recipe_are_refused(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "x.index", dimensions=8)
    record = to_record(Document("a", "text"), Embedded((Span(0, 4),), ROWS[:1], "another recipe"))
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    assert _ingested(index, tmp_path / "x.jsonl") == (0, 1)
    (row,) = snapshot_of(index).ledger("failed")
    assert "another recipe" in row.reason.text()
    assert issubclass(RecipeMismatch, BadInput)


def test_recall_is_a_setting_and_has_to_be_a_share(tmp_path: Path) -> None:
    index = _made(tmp_path / "x.index")
    index.compact("approximate", recall=0.9)
    assert json.loads(index.info().segments[0]["parameters"])["recall"] == 0.9
    before = index.info().segments[0]["file"]
    index.compact("approximate")
    assert index.info().segments[0]["file"] == before
    index.compact("approximate", recall=0.95)
    assert json.loads(index.info().segments[0]["parameters"])["recall"] == 0.95
    with pytest.raises(BadInput, match=r"recall 1\.5 is not a share"):
        index.compact(recall=1.5)
    assert snapshot_of(open_store(tmp_path / "x.index")).recall().questions == 200
    index.remove([f"d{i}" for i in range(597)])  # hardly a row of the segment is alive
    assert snapshot_of(open_store(tmp_path / "x.index")).recall().recall == 1


def test_nothing_is_made_inside_of_an_index(tmp_path: Path) -> None:
    index = _made(tmp_path / "x.index", 5)
    with pytest.raises(BadInput, match="is inside the folder of an index"):
        index.copy(tmp_path / "x.index" / "copy")
    with pytest.raises(BadInput, match="is inside the folder of an index"):
        Index.create(tmp_path / "x.index" / "deep" / "er", dimensions=2)


@pytest.mark.parametrize("fault", ["zeroed", "missing", "words"])
def test_a_copy_of_a_damaged_index_does_not_vouch_for_what_it_copies(tmp_path: Path, fault: str) -> None:
    with _made(tmp_path / "x.index") as index:
        index.compact()
    expected = _answers(tmp_path / "x.index")
    (segment,) = (tmp_path / "x.index" / "segments").glob("*.faiss")
    if fault == "missing":
        segment.unlink()
    elif fault == "zeroed":
        data = segment.read_bytes()
        segment.write_bytes(data[:-4000] + bytes(4000))
    else:
        for path in (tmp_path / "x.index" / "words").glob("*/documents/*.term"):
            path.write_bytes(bytes(len(path.read_bytes())))
    store = open_store(tmp_path / "x.index")
    (note,) = copy_commit(store, engine_of(tmp_path / "y.index"))
    store.close()
    assert "the next writer to the copy rebuilds it" in note
    with Searcher(tmp_path / "y.index") as searcher:
        answers = [searcher.search_vector(row, 5) for row in ROWS[:5]]
        worded = searcher.search("title 7", 1, mode="words")
        assert worded[0].uri == "d7"
        assert [(hit.uri, hit.score) for hits in answers for hit in hits] == expected
        asked = [worded] if fault == "words" else answers
        assert [hits for hits in asked if "answering from the catalog" not in hits.notes[0]] == []
        with Index.open(tmp_path / "y.index") as copy:
            assert copy.check(repair=True).ok
    with Index.open(tmp_path / "y.index") as copy:
        assert copy.check().ok


def test_a_copy_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, synced, real = _made(tmp_path / "x.index"), set[int](), os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    index.compact()
    monkeypatch.setattr(os, "fsync", fsync)
    index.copy(tmp_path / "deep" / "y.index")
    everything = [tmp_path / "deep", tmp_path / "deep" / "y.index", *(tmp_path / "deep" / "y.index").rglob("*")]
    live = {"catalog.db-wal", "catalog.db-shm"}
    assert [path.name for path in everything if path.stat().st_ino not in synced and path.name not in live] == []


def test_a_damaged_document_is_neither_shown_nor_exported_nor_rebuilt(
    tmp_path: Path, likewise: Callable[..., Any], encoder: Any
) -> None:
    folder = tmp_path / "x.index"
    with Index.create(folder, encoder) as index:
        index.add([Document("sound", "hello there"), Document("torn", "hello world"), Document("row", "one more")])
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        connection.execute("UPDATE document_text SET text = 'hellO world' WHERE text = 'hello world'")
        connection.execute("UPDATE document SET metadata = '{' WHERE uri = 'row'")
    assert likewise("show", folder, "sound").code == 0
    for command in (
        ["show", folder, "torn"],
        ["show", folder, "row"],
        ["list", folder],
        ["export", folder, "--vectors", "--json"],
        ["index", folder, "--rebuild", "-"],
    ):
        said = likewise(*command)
        assert said.code == 3, (command, said)
        assert "damaged" in said.err, (command, said)
        assert "internal" not in said.err, (command, said)
        assert ("hello there" in said.out or "sound" in said.out) == (command[0] in ("list", "export"))
    assert likewise("check", folder).code != 0


def test_a_folder_is_not_copied_over_a_copy_that_another_process_is_making(tmp_path: Path) -> None:
    target = tmp_path / "y.index"
    with closing(engine_of(target)) as engine:
        engine.make("unfinished", Settings(8))
    (kept,) = tmp_path.glob(".y.index.*")
    with _made(tmp_path / "x.index", 5), closing(open_store(tmp_path / "x.index")) as store:
        with WriterLock(kept).hold(), pytest.raises(IndexLocked):
            copy(store, str(target))
        assert sorted(tmp_path.iterdir()) == [kept, tmp_path / "x.index"]
        assert copy(store, str(target)).documents == 5
    assert sorted(tmp_path.iterdir()) == [tmp_path / "x.index", target]


def test_a_copy_of_single_documents_has_the_notes_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalStore, "duplicate", lambda *_: None)  # as a database, which has no copy as of one commit
    with _made(tmp_path / "x.index", 5) as index:
        writer_of(index).set("lost", "3")
        (note,) = index.copy(tmp_path / "y.index")
    assert "the last 3 commits are missing" in note
