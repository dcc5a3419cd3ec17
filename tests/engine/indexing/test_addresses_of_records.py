"""The addresses of records: no record replaces one of another file, unless the user has named the id."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from opened import store_of
from postgres_server import new_address, remove_index
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.exchange import Embedded, to_record
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedder import Embedder
from indexer.indexing.ingest import Run
from indexer.indexing.prune import find_lost
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store, open_store

LONG_AGO = time.time() - 3600


@pytest.fixture
def index(tmp_path: Path, encoder: WordEncoder) -> Iterator[Index]:
    with Index.create(tmp_path / "x.index", encoder) as index:
        yield index


@pytest.fixture(params=["folder", "postgres"])
def index_anywhere(request: pytest.FixtureRequest, tmp_path: Path, encoder: WordEncoder) -> Iterator[Index]:
    """An index in a folder, and one in PostgreSQL."""
    address = tmp_path / "x.index" if request.param == "folder" else new_address()
    with Index.create(address, encoder) as index:
        yield index
    if request.param == "postgres":
        store: Any = open_store(address)
        remove_index(store.engine)
        store.close()


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Two exports whose records have the same numbers and nothing else in common."""
    write(tmp_path / "tables" / "b.csv", "id,text\n1,Ann\n2,Bob\n")
    write(tmp_path / "tables" / "c.csv", "id,text\n1,anchor\n2,rope\n")
    return tmp_path / "tables"


BOTH = {"1": "Ann", "2": "Bob", "c.csv#1": "anchor", "c.csv#2": "rope"}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def run(index: Index, *sources: Path | str, prune: bool = False, workers: Any = None, **options: Any) -> dict[str, int]:
    """Read sources, and return the counts that are not zero."""
    return run_with_notes(index, *sources, prune=prune, workers=workers, **options)[0]


def run_with_notes(
    index: Index, *sources: Path | str, prune: bool = False, workers: Any = None, **options: Any
) -> tuple[dict[str, int], list[str]]:
    read = ReadOptions(**options)
    core = IndexCore(index._core.store, index.encoder, Context(workers=workers))
    with store_of(index).writer() as writer:
        run = Run(core, writer, read)
        summary = run.feed(open_sources([str(source) for source in sources], read, holds_store))
        if prune:
            with core.store.snapshot() as snapshot:
                lost = find_lost(snapshot, [run.seen])
            summary = replace(summary, pruned=writer.remove(lost.uris))
    kept = ("indexed", "unchanged", "updated", "skipped", "failed", "pruned", "duplicates")
    found = {name: count for name, count in asdict(summary).items() if name in kept and count}
    return found, [note for note in run.notes if "same ids" in note]


def texts(index: Index) -> dict[str, str]:
    """The text of each document, by its uri without the folder of the tables."""
    return {re.sub(r"(?<![^#])/[^#]*/tables/", "", document.uri): document.text for document in index}


def piped(monkeypatch: pytest.MonkeyPatch, *records: Any) -> None:
    data = "".join(json.dumps(record) + "\n" for record in records)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode()), encoding="utf-8"))


def test_two_tables_with_the_same_ids_are_all_found(index_anywhere: Index, tables: Path) -> None:
    index = index_anywhere
    assert run(index, tables) == {"indexed": 4}
    assert texts(index) == BOTH
    assert index.get(f"{tables}/c.csv#2").path == f"{tables}/c.csv"
    assert run(index, tables, tables / "c.csv", rehash=True) == {"unchanged": 4}  # a file is read once
    write(tables / "c.csv", "id,text\n1,anchor\n2,ropes\n3,sail\n3,sails\n")
    assert run(index, tables, prune=True) == {"indexed": 2, "unchanged": 3, "skipped": 1, "duplicates": 1}
    assert texts(index) == {**BOTH, "c.csv#2": "ropes", "3": "sails"}
    index.add([Document("5", "of a program")])
    write(tables / "c.csv", "id,text\n1,anchor\n2,ropes\n5,sailor\n")
    (tables / "b.csv").unlink()
    assert run(index, tables, prune=True) == {"indexed": 1, "unchanged": 2, "pruned": 3}
    assert texts(index) == {"c.csv#1": "anchor", "c.csv#2": "ropes", "5": "of a program", "c.csv#5": "sailor"}


def test_nothing_changes_its_address_when_another_file_arrives_or_goes(index: Index, tables: Path) -> None:
    run(index, tables)
    write(tables / "a.csv", "id,text\n2,Bath\n3,Hull\n")
    assert run(index, tables) == {"indexed": 2, "unchanged": 4}
    assert run(index, tables, rehash=True) == {"unchanged": 6}
    assert texts(index) == {**BOTH, "a.csv#2": "Bath", "3": "Hull"}
    (tables / "b.csv").unlink()
    write(tables / "d.csv", "id,text\n1,Ouse\n")
    assert run(index, tables) == {"indexed": 1, "unchanged": 4}
    assert texts(index)["1"] == "Ann"  # the document of a file that is gone, until it is pruned
    assert run(index, tables, prune=True, rehash=True) == {"unchanged": 5, "pruned": 2}
    write(tables / "e.csv", "id,text\n1,Aire\n")
    run(index, tables)
    left = {"c.csv#1": "anchor", "c.csv#2": "rope", "a.csv#2": "Bath", "3": "Hull"}
    assert texts(index) == {**left, "d.csv#1": "Ouse", "1": "Aire"}


def test_records_of_a_renamed_file_keep_their_ids(index: Index, tables: Path) -> None:
    run(index, tables)
    (tables / "b.csv").rename(tables / "renamed.csv")
    write(tables / "new.csv", "id,text\n2,Bath\n")
    assert run(index, tables, prune=True) == {"indexed": 1, "updated": 2, "unchanged": 2}
    assert texts(index) == {**BOTH, "new.csv#2": "Bath"}
    write(tables / "renamed.csv", "id,text\n2,Bob\n")
    run(index, tables)
    write(tables / "z.csv", "id,text\n1,Ann\n")  # a record that has moved, with its text, and is nobody's any more
    assert run(index, tables, prune=True) == {"updated": 1, "unchanged": 4}


def test_a_record_without_a_text_keeps_its_id_too(index: Index, tmp_path: Path) -> None:
    first = write(tmp_path / "tables" / "a.jsonl", '{"id": 1}\n{"id": 2, "text": "two"}\n')
    write(tmp_path / "tables" / "b.jsonl", '{"id": 1, "text": "one of b"}\n')
    assert run(index, tmp_path / "tables") == {"indexed": 2, "skipped": 1}
    write(first, '{"id": 1, "text": "one of a"}\n{"id": 2, "text": "two"}\n')
    assert run(index, tmp_path / "tables") == {"indexed": 1, "unchanged": 2}
    assert texts(index) == {"1": "one of a", "2": "two", "b.jsonl#1": "one of b"}


def test_only_a_named_id_joins_files_and_the_files_are_named(index: Index, tables: Path) -> None:
    files = f"{tables}/b.csv and {tables}/c.csv"
    joined = f"{files} have records with the same ids: one document per id, of the last record"
    for _ in range(2):
        assert run_with_notes(index, tables, id_field="id", rehash=True)[1] == [joined]
    assert texts(index) == {"1": "anchor", "2": "rope"}
    counts, notes = run_with_notes(index, tables, rehash=True)
    assert (counts, notes) == ({"indexed": 2, "unchanged": 2}, [])  # what was replaced comes back, and nothing moves
    assert texts(index) == {"1": "anchor", "2": "rope", "b.csv#1": "Ann", "b.csv#2": "Bob"}


def test_records_replace_no_document_that_they_are_not(
    index: Index, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = write(tables / "a.md", "a note")
    index.add([Document("1", "of a program"), Document("2", "Bob")])
    write(tables / "d.jsonl", json.dumps({"id": str(note), "text": "says what the note is about"}))
    run(index, tables)
    assert texts(index) == {
        **BOTH,
        "1": "of a program",
        "b.csv#1": "Ann",
        "a.md": "a note",
        "d.jsonl#a.md": "says what the note is about",
    }
    write(tables / "a.jsonl", json.dumps({"id": f"{tables}/z.md", "text": "a plan"}))
    run(index, tables)
    write(tables / "z.md", "the work")
    run(index, tables)
    assert (texts(index)["z.md"], texts(index)["z.md#z.md"]) == ("a plan", "the work")
    piped(monkeypatch, {"id": "2", "text": "piped"}, {"id": "9", "text": "new"})
    assert run(index, "-") == {"indexed": 2}  # as a document that a program adds
    assert run(index, tables, rehash=True) == {"indexed": 1, "unchanged": 7}
    assert (texts(index)["2"], texts(index)["b.csv#2"]) == ("piped", "Bob")


@pytest.mark.parametrize("through", ["a file", "standard input"])
def test_exported_documents_are_found_again(
    index: Index, encoder: WordEncoder, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    write(tables / "a.md", "a note")
    run(index, tables)
    records = [to_record(document, None) for document in index]
    source: Path | str = "-"

    def take_in(into: Index) -> dict[str, int]:
        piped(monkeypatch, *records)
        return run(into, source)

    if through == "a file":
        source = write(tmp_path / "exported.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    assert take_in(index) == {"unchanged": 5}
    with Index.create(tmp_path / "other.index", encoder) as other:
        assert take_in(other) == {"indexed": 5}
        assert texts(other) == texts(index)
        assert run(other, tables / "a.md") == {"unchanged": 1}
    write(tables / "a.md", "another note")
    write(tables / "b.csv", "id,text\n1,Anna\n2,Bob\n")
    assert run(index, tables) == {"indexed": 2, "unchanged": 3}
    assert texts(index) == {**BOTH, "1": "Anna", "a.md": "another note"}
    if through == "a file":  # what has changed since is another document
        assert run(index, source, rehash=True) == {"indexed": 2, "unchanged": 3}
        assert index.get(f"{source}#1").text == "Ann"


class _FirstIsSlowest:
    """Workers that finish later batches before the first."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._threads, self._seconds = embedder, ThreadPoolExecutor(4), 0.1

    def submit(self, documents: Sequence[Document]) -> Future[list[Embedded]]:
        seconds, self._seconds = self._seconds, 0.0
        return self._threads.submit(self._embed, documents, seconds)

    def _embed(self, documents: Sequence[Document], seconds: float) -> list[Embedded]:
        time.sleep(seconds)
        return self._embedder.embed(documents)

    def close(self) -> None:
        self._threads.shutdown()


def test_the_first_file_of_the_walk_keeps_the_id_also_with_workers(
    index: Index, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 300)  # one document
    run(index, tables, workers=_FirstIsSlowest)
    assert texts(index) == BOTH
