"""Files that take too long to read: the files after them do not wait, and nobody reads them again in vain."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from listeners import Calling
from word_encoder import WordEncoder

from indexer import Index
from indexer.indexing.ingest import Summary
from indexer.indexing.runs import index_sources
from indexer.ledger import Code
from indexer.sources import ReadOptions, formats, open_sources
from indexer.sources.content import Content, Unreadable
from indexer.sources.files import reading
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.files.sample import sample_texts
from indexer.stores.addresses.open import holds_store

LATE = Code.TOO_SLOW("60")
LONG_AGO = time.time() - 3600


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder whose first file is read slowly, and whose last is a table."""
    for name, text in (
        ("a.md", "# slow"),
        ("b.md", "# quick"),
        ("c.txt", "plain"),
        ("d.csv", "id,text\n1,row\n2,row\n"),
    ):
        write(tmp_path / "notes" / name, text)
    return tmp_path / "notes"


@pytest.fixture
def index(tmp_path: Path, encoder: WordEncoder) -> Iterator[Index]:
    with Index.create(tmp_path / "x.index", encoder) as index:
        yield index


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that the extractor was asked for. A slow one exceeds its time at once."""
    asked: list[str] = []

    def extract(path: str, *given: Any) -> Content:
        asked.append(Path(path).name)
        if "slow" in given[2]:
            raise Unreadable(LATE)
        return Content(given[2])

    monkeypatch.setattr(EXTRACTOR, "extract", extract)
    return asked


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (LONG_AGO, LONG_AGO))


def run(index: Index, folder: Path, **options: Any) -> Summary:
    settings = ReadOptions(**options)
    with index._core.writer() as writer:
        sources = open_sources([str(folder)], settings, holds_store)
        return index_sources(index._core, writer, [(settings, sources)]).summary


def test_files_after_a_slow_file_are_committed_while_it_is_read(
    index: Index, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Event()

    def extract(path: str, *given: Any) -> Content:
        if "slow" in given[2]:
            assert meanwhile.wait(60)
        return Content(given[2])

    def committed(commit: Any) -> None:
        uris = [Path(uri).name for uri in commit.changes.added]
        seen.extend(uris)
        if "b.md" in uris:
            meanwhile.set()

    seen: list[str] = []
    monkeypatch.setattr(EXTRACTOR, "extract", extract)
    monkeypatch.setattr(reading, "PATIENCE_SECONDS", 0.01)
    index._core.context = replace(index._core.context, listener=Calling(committed=committed))
    assert run(index, notes).indexed == 5
    assert seen == ["b.md", "c.txt", "1", "2", "a.md"]
    assert index.get(str(notes / "a.md")).text == "# slow"


def test_a_file_that_exceeded_its_time_is_read_again_when_it_has_changed(
    index: Index, notes: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(**options: Any) -> tuple[int, str, list[str]]:
        read.clear()
        summary = run(index, notes, **options)
        return summary.failed, summary.reason, read

    assert again() == (1, LATE.text(), ["a.md", "b.md"])
    assert again() == (1, "", []), "a known failure"
    assert run(index, notes).unchanged == 4
    assert again(rehash=True) == (1, "", ["a.md", "b.md"])
    monkeypatch.setitem(formats.READER_VERSIONS, "markdown", 99)
    assert again() == (1, LATE.text(), ["a.md", "b.md"])
    assert again() == (1, "", [])
    write(notes / "a.md", "# another")
    assert again() == (0, "", ["a.md"])
    write(notes / "a.md", "# too slow")
    assert again() == (1, LATE.text(), ["a.md"])
    assert again() == (1, "", [])
    assert index.get(str(notes / "a.md")).text == "# another", "what an earlier reading found is kept"


def test_a_table_has_a_limit_of_time(
    index: Index, notes: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reading, "MAX_FILE_SECONDS", 0.0)
        patch.setattr(reading, "MAX_MB_SECONDS", 0.0)
        assert run(index, notes / "d.csv").reason == Code.TOO_SLOW("0").text()
    assert [document.text for document in index] == ["row"]  # what was read until then
    assert run(index, notes / "d.csv").failed == 1, "it is not read again"
    assert run(index, notes / "d.csv", rehash=True).failed == 0
    assert [document.text for document in index] == ["row", "row"]


def test_a_file_that_was_slow_in_the_sample_is_not_read_twice(
    index: Index, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(request: dict[str, Any], *_: Any) -> dict[str, Any]:
        asked.append(Path(request["path"]).name)
        raise Unreadable(LATE)

    monkeypatch.setattr(EXTRACTOR, "ask", ask)
    (notes / "a.md").write_bytes(b"%PDF-1.4")
    sources = open_sources([str(notes)], ReadOptions(), holds_store)
    assert sorted(sample_texts([(ReadOptions(), sources)])) == ["# quick", "plain", "row", "row"]
    assert asked == ["a.md"]
    summary = run(index, notes)
    assert (summary.failed, asked) == (2, ["a.md", "b.md"]), "the sample takes a Markdown file as it is"
    assert not EXTRACTOR.late


def test_an_id_in_all_rows_of_a_table(index: Index, notes: Path) -> None:
    rows = 300
    write(notes / "d.csv", "id,text\n" + "".join(f"1,row {row}\n" for row in range(rows)))
    assert run(index, notes / "d.csv").seen == rows
    assert [document.text for document in index] == [f"row {rows - 1}"]
