"""Files whose reader has changed are read again; only what has changed in them is embedded, and nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import snapshot_of, store_of
from postgres_server import new_address, remove_index
from word_encoder import WordEncoder

from indexer import Index
from indexer.indexing.ingest import Run, Summary
from indexer.ledger import NO_REASON, Code
from indexer.sources import ReadOptions, open_sources
from indexer.sources.content import Content, Unreadable
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.formats import FORMATS, JSONL, READER_VERSIONS, is_read_alike, reader_of
from indexer.stores.addresses.open import holds_store, open_store
from indexer.stores.port import LedgerRow

CHANGED = "read again because their reader has changed: "


@pytest.fixture(params=["folder", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    if request.param == "folder":
        yield tmp_path / "x.index"
        return
    address = new_address()
    yield address
    store: Any = open_store(address)
    remove_index(store.engine)
    store.close()


@pytest.fixture
def encoder() -> WordEncoder:
    return WordEncoder()


@pytest.fixture
def index(address: Path | str, encoder: WordEncoder) -> Iterator[Index]:
    with Index.create(address, encoder) as index:
        yield index


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("alpha.md", "beta.md", "gamma.txt"):
        (folder / name).write_text(f"the text of {Path(name).stem}")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    return folder


def run(index: Index, folder: Path) -> tuple[Summary, tuple[str, ...]]:
    """One run without --prune, and its notes."""
    with store_of(index).writer() as writer:
        run = Run(index._core, writer, ReadOptions())
        return run.feed(open_sources([str(folder)], ReadOptions(), holds_store)), run.notes


def counts(summary: Summary) -> dict[str, int]:
    return {name: n for name in ("indexed", "unchanged", "updated", "failed") if (n := getattr(summary, name))}


def rows(index: Index) -> dict[str, LedgerRow]:
    return {Path(row.uri).name: row for row in snapshot_of(index).ledger()}


def test_the_files_of_a_changed_reader_are_read_again_and_only_a_changed_text_is_embedded(
    index: Index, encoder: WordEncoder, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(index, notes)
    assert {name: row.reader for name, row in rows(index).items()} == {
        "alpha.md": reader_of("markdown"),
        "beta.md": reader_of("markdown"),
        "gamma.txt": reader_of("text"),
    }
    assert run(index, notes)[1] == ()
    monkeypatch.setitem(READER_VERSIONS, "markdown", 99)
    monkeypatch.setattr(
        EXTRACTOR, "extract", lambda *given: Content(given[3], "A title" if "alpha" in given[3] else "")
    )
    files = snapshot_of(index).files()
    outdated = [Path(path).name for path, file in files.items() if not is_read_alike(path, file, ())]
    assert (sorted(outdated), len(files)) == (["alpha.md", "beta.md"], 3)
    encoder.seen.clear()
    summary, said = run(index, notes)
    assert (counts(summary), said) == ({"indexed": 1, "unchanged": 2}, (f"{CHANGED}2 files",))
    assert encoder.seen == ["A title the text of alpha"]
    assert rows(index)["beta.md"].reader == "markdown/99"
    assert run(index, notes)[1] == ()


def test_a_document_stays_if_its_new_reader_fails(index: Index, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Content:
        raise Unreadable(Code.READER_FAILED("markdown", "bug"))

    run(index, notes)
    monkeypatch.setitem(READER_VERSIONS, "markdown", 99)
    with monkeypatch.context() as patch:
        patch.setattr(EXTRACTOR, "extract", fail)
        for again in ((f"{CHANGED}2 files",), ()):
            summary, said = run(index, notes)
            assert (counts(summary), said) == ({"unchanged": 1, "failed": 2}, again)
            assert summary.noted == 0
            row = rows(index)["beta.md"]
            assert (row.state, row.notes) == ("failed", (Code.EARLIER_TEXT_KEPT(),))
            assert [Path(row.uri).name for row in snapshot_of(index).noted()] == ["alpha.md", "beta.md"]
            assert index.get(str(notes / "beta.md")).text == "the text of beta"
    assert counts(run(index, notes)[0]) == {"unchanged": 3}
    assert snapshot_of(index).noted_count() == 0


def test_a_file_that_becomes_several_documents_loses_its_single_one_in_the_same_commit(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = tmp_path / "in" / "box.txt"
    box.parent.mkdir()
    box.write_text("".join(json.dumps({"id": f"box#{n}", "text": f"message {n}"}) + "\n" for n in (1, 2)) + "broken\n")
    os.utime(box, (1_700_000_000, 1_700_000_000))
    run(index, box.parent)
    assert [document.uri for document in index] == [str(box)]
    monkeypatch.setitem(FORMATS, ".txt", JSONL)
    seen: list[list[str]] = []
    monkeypatch.setattr(
        index._core.context.listener, "committed", lambda commit: seen.append([d.uri for d in index]), raising=False
    )
    summary, said = run(index, box.parent)
    assert (counts(summary), said) == ({"indexed": 2, "failed": 1}, (f"{CHANGED}1 file",))
    assert seen == [["box#1", "box#2"]]
    assert sorted(rows(index)) == ["box#1", "box#2", "box.txt:3"]
    assert counts(run(index, box.parent)[0]) == {"unchanged": 2, "failed": 1}


def test_the_ledger_shows_readers_and_notes(tmp_path: Path, likewise: Any) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index, store_of(index).writer() as writer:
        from indexer.stores.port import Batch

        notes = (Code.OTHER("page 3 has no text"), Code.OTHER("page 4 has no text"))
        rows = [
            LedgerRow("/a.pdf", "/a.pdf", "indexed", NO_REASON, "pdf/2", notes),
            LedgerRow("/b.txt", "/b.txt", "skipped", Code.EMPTY(), "text/1"),
        ]
        writer.put(Batch(rows=rows, run=writer.begin_run()))
    folder = tmp_path / "x.index"
    assert likewise("info", folder, "--ledger", "noted").out == (
        "indexed   /a.pdf  page 3 has no text  page 4 has no text\n"
    )
    listed = [json.loads(line) for line in likewise("info", folder, "--ledger", "--json").out.splitlines()]
    assert [(row["reason"], row.get("notes")) for row in listed] == [
        ("", ["page 3 has no text", "page 4 has no text"]),
        ("empty", None),
    ]
    assert json.loads(likewise("info", folder, "--json").out)["noted"] == 1
    assert (
        f"notes      on 1 of the sources; likewise info {folder} --ledger noted lists all"
        in likewise("info", folder).out
    )
