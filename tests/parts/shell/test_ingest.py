"""Indexing runs: the ledger has every file and record, nothing is embedded twice; --prune removes only what is gone."""

from __future__ import annotations

import json
import os
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hardware import needs_no_root
from opened import snapshot_of, store_of
from postgres_server import new_address

from indexer import Document, Index
from indexer.errors import NothingKnown
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.ingest import Run, Seen
from indexer.indexing.prune import find_lost
from indexer.indexing.runs import rehearse
from indexer.ledger import Code
from indexer.listener import SILENT, Commit, Listener
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
from indexer.stores.local import seal
from indexer.stores.port import LedgerRow, ReasonCount
from likewise.shell.commands.info import _reason_rows
from likewise.shell.indexing import runs as runs_cli

KEPT = "pruning keeps the documents of files and folders that could not be read whole"
LONG_AGO = time.time() - 3600
BY_ID = ("--id-field", "id")


def write(path: Path, text: str | bytes, when: float = LONG_AGO) -> Path:
    """A file that settled long ago, so that its stamp tells of changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (when, when))
    return path


def counts(said: Any) -> dict[str, int]:
    """Return the counts that are not zero. Every call also checks the promised sum."""
    found: dict[str, int] = said.json
    parts = ("indexed", "unchanged", "updated", "skipped", "failed")
    assert found["seen"] == sum(found[name] for name in parts)
    others = ("seen", "notes", "model", "model_reason")
    return {name: value for name, value in found.items() if value and name not in others}


def uris(folder: Path | str) -> list[str]:
    with Index.open(folder) as index:
        return sorted(Path(document.uri).name for document in index)


def ledger(likewise: Callable[..., Any], folder: Path, state: str = "all") -> list[dict[str, str]]:
    return [json.loads(line) for line in likewise("info", folder, "--ledger", state, "--json").out.splitlines()]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name in ("a", "b", "c", "d"):
        write(tmp_path / "notes" / f"{name}.txt", f"the text of {name}")
    return tmp_path / "notes"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "x.index"


def refuse_to_list(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)


# sums and states


def test_every_file_and_record_is_counted_once(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str]
) -> None:
    write(notes / "empty.txt", "")
    write(notes / "binary.bin", bytes(range(256)) * 8)
    write(notes / ".hidden", "hidden")
    write(notes / ".git" / "config", "ignored")
    write(notes / "broken.pdf", b"%PDF-1.4 and no more")
    write(
        notes / "records.jsonl",
        lines({"id": "r1", "text": "one"}, {"id": "r2"}, [1, 2]) + "{broken\n\n" + lines({"id": "r1", "text": "two"}),
    )
    said = likewise("index", folder, notes, "--json")
    assert said.code == 1
    assert counts(said) == {"indexed": 5, "skipped": said.json["skipped"], "failed": 3, "duplicates": 1}
    rows = ledger(likewise, folder)
    states = [row["state"] for row in rows]
    assert {state: states.count(state) for state in set(states)} == {
        "indexed": 5,
        "failed": 3,
        "skipped": said.json["skipped"],
    }
    assert len(rows) == said.json["seen"]
    assert all(row["reason"] for row in rows if row["state"] != "indexed")
    by_name = {Path(row["uri"]).name: row for row in rows}
    assert "2" in by_name["r2"]["reason"]
    assert "no text" in by_name["r2"]["reason"]
    for name, place in (("records.jsonl:3", "line 3"), ("records.jsonl:4", "line 4")):
        assert place in by_name[name]["reason"]
    assert "object" in by_name["records.jsonl:3"]["reason"]
    assert likewise("info", folder, "--json").json["ledger"] == {state: states.count(state) for state in set(states)}
    for state in ("failed", "skipped", "indexed", "gone"):
        assert len(ledger(likewise, folder, state)) == states.count(state)
    with Index.open(folder) as index:
        assert index.get("r1").text == "two"
    assert "1 record left out, because a later record has the same id" in said.err
    failed = [row["uri"] for row in rows if row["state"] == "failed"]
    assert any(f"3 failed, such as {uri}: " in said.err for uri in failed)


def test_a_second_run_reads_and_embeds_nothing(
    likewise: Callable[..., Any], encoder: Any, notes: Path, folder: Path
) -> None:
    assert counts(likewise("index", folder, notes, "--json")) == {"indexed": 4}

    def refuse(texts: Sequence[str]) -> None:
        raise AssertionError("embedded")

    encoder.ask = refuse
    assert counts(likewise("index", folder, notes, "--json")) == {"unchanged": 4}
    assert counts(likewise("index", folder, notes, "--json", "--rehash")) == {"unchanged": 4}
    assert counts(likewise("index", folder, notes, notes / "a.txt", notes, "--json")) == {"unchanged": 4}


def test_one_changed_file_is_one_document_embedded(
    likewise: Callable[..., Any], encoder: Any, notes: Path, folder: Path
) -> None:
    likewise("index", folder, notes)
    encoder.seen.clear()
    write(notes / "b.txt", "another text")
    assert counts(likewise("index", folder, notes, "--json")) == {"indexed": 1, "unchanged": 3}
    assert encoder.seen == ["b another text"]


def test_a_change_of_the_same_length_within_the_same_second_is_seen(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    now = time.time()
    write(notes / "b.txt", "first text", now)
    likewise("index", folder, notes)
    write(notes / "b.txt", "other text", now)
    assert counts(likewise("index", folder, notes, "--json")) == {"indexed": 1, "unchanged": 3}


def test_a_change_that_keeps_size_time_and_inode_needs_rehash(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    likewise("index", folder, notes)
    write(notes / "b.txt", "THE TEXT OF B")
    assert counts(likewise("index", folder, notes, "--json")) == {"unchanged": 4}
    assert counts(likewise("index", folder, notes, "--json", "--rehash")) == {"indexed": 1, "unchanged": 3}


def test_a_touched_file_updates_its_row_and_embeds_nothing(
    likewise: Callable[..., Any], encoder: Any, notes: Path, folder: Path
) -> None:
    likewise("index", folder, notes)
    encoder.seen.clear()
    os.utime(notes / "b.txt", (LONG_AGO + 60, LONG_AGO + 60))
    assert counts(likewise("index", folder, notes, "--json")) == {"updated": 1, "unchanged": 3}
    assert encoder.seen == []


def test_records_are_told_apart_by_content_and_metadata(
    likewise: Callable[..., Any], encoder: Any, tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(tmp_path / "r.jsonl", lines(*({"id": i, "text": f"text {i}", "year": 1} for i in range(5))))
    assert counts(likewise("index", folder, file, "--json")) == {"indexed": 5}
    encoder.seen.clear()
    records = [{"id": i, "text": f"text {i}" + "!" * (i == 1), "year": 1 + (i == 2)} for i in range(5)]
    write(file, lines(*records), LONG_AGO + 9)
    assert counts(likewise("index", folder, file, "--json")) == {"indexed": 1, "updated": 1, "unchanged": 3}
    assert encoder.seen == ["text 1!"]
    assert counts(likewise("index", folder, file, "--json")) == {"unchanged": 5}


def test_a_duplicate_across_batches_and_files_is_said_and_the_last_wins(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 300)
    first = write(tmp_path / "1.jsonl", lines(*({"id": f"i{i % 3}", "text": f"first {i}"} for i in range(7))))
    second = write(tmp_path / "2.jsonl", lines({"id": "i1", "text": "second"}))
    said = likewise("index", folder, *BY_ID, first, second, "--json")
    found = counts(said)
    assert (said.json["seen"], found["duplicates"]) == (8, 5)
    assert "5 records left out" in said.err
    with Index.open(folder) as index:
        assert {document.uri: document.text for document in index} == {"i0": "first 6", "i1": "second", "i2": "first 5"}
        assert index.check().ok


def test_a_record_without_an_id_is_named_by_its_line(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(tmp_path / "r.jsonl", "\n" + lines({"text": "one"}, {"text": "two"}))
    likewise("index", folder, file)
    assert uris(folder) == ["r.jsonl:2", "r.jsonl:3"]
    assert likewise("index", tmp_path / "y.index", "-", stdin=lines({"text": "x"})).code == 0
    assert uris(tmp_path / "y.index") == ["-:1"]


def test_broken_text_fails_alone_and_a_nul_is_left_out(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(
        tmp_path / "r.jsonl",
        lines({"id": "nul", "text": "a\0b"}, {"id": "lone", "text": "\ud800"}, {"id": "nan", "text": "x", "n": 1})
        + '{"id": "inf", "text": "x", "n": 1e999}\n{"id": "big", "text": "x", "n": 123456789012345678901234567890}\n'
        + lines({"id": "\ud800", "text": "x"}, {"id": "no", "text": 7}, {"id": "blank", "text": " "})
        + '{"id": "deep", "text": "x", "n": ' + "[" * 900 + "]" * 900 + "}\n"
        + '{"id": "deeper", "text": "x", "n": ' + "[" * 99_000 + "]" * 99_000 + "}\n",
    )  # fmt: skip
    said = likewise("index", folder, file, "--json")
    assert said.code == 1
    assert "nan" in uris(folder)
    assert said.json["failed"] + said.json["skipped"] + said.json["indexed"] == 10
    assert said.json["failed"] >= 6
    with Index.open(folder) as index:
        assert index.get("nul").text == "ab"
        assert index.check().ok
    assert [row for row in ledger(likewise, folder) if "\n" in row["reason"]] == []


def test_nothing_to_read(likewise: Callable[..., Any], tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    missing = likewise("index", tmp_path / "y.index", tmp_path / "empty", tmp_path / "not there", tmp_path / "*.zzz")
    missing.failed(2, "not there", "*.zzz")
    assert not (tmp_path / "y.index").exists()


# interruptions


def test_what_was_committed_stays_and_the_next_run_goes_on(
    likewise: Callable[..., Any],
    encoder: Any,
    tmp_path: Path,
    folder: Path,
    lines: Callable[..., str],
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 3000)
    for number in range(40):
        write(tmp_path / "many" / f"{number:02}.txt", f"text {number}")
    write(tmp_path / "many" / "z.jsonl", lines(*({"id": f"r{i}", "text": f"record {i}"} for i in range(40))))

    def interrupt(texts: Sequence[str]) -> None:
        if len(encoder.seen) > 45:
            raise KeyboardInterrupt

    encoder.ask = interrupt
    said = likewise("index", folder, tmp_path / "many")
    assert said.code == 130
    assert "Traceback" not in said.err
    with Index.open(folder) as index:
        there = len(index)
        assert 40 <= there < 80
        report = index.check()
        assert (report.ok, ["did not finish" in note for note in report.notes]) == (True, [True])
    encoder.ask = lambda texts: None
    encoder.seen.clear()
    assert counts(likewise("index", folder, tmp_path / "many", "--json")) == {
        "indexed": 80 - there,
        "unchanged": there,
    }
    assert sum(text.startswith("record") for text in encoder.seen) == 80 - there
    with Index.open(folder) as index:
        assert index.check().notes == ()


def test_an_interrupted_run_prunes_nothing_and_leaves_no_stamp_of_a_file_it_did_not_finish(
    likewise: Callable[..., Any],
    encoder: Any,
    tmp_path: Path,
    folder: Path,
    lines: Callable[..., str],
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 1000)
    file = write(tmp_path / "r.jsonl", lines(*({"id": f"r{i}", "text": f"record {i}"} for i in range(30))))

    def fail(texts: Sequence[str]) -> None:
        if len(encoder.seen) > 10:
            raise MemoryError("no memory left")

    encoder.ask = fail
    said = likewise("index", folder, file, "--prune", "--yes")
    said.failed(3, "no memory left")
    assert "Traceback" not in said.err
    before = len(uris(folder))
    assert before > 0
    encoder.ask = lambda texts: None
    assert counts(likewise("index", folder, file, "--json")) == {"indexed": 30 - before, "unchanged": before}


class AtOnce(Executor):
    """An executor without a thread."""

    def __init__(self, *_: Any) -> None:
        pass

    def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future = Future[Any]()
        try:
            future.set_result(call(*args, **named))
        except BaseException as error:  # noqa: BLE001 as of a thread
            future.set_exception(error)
        return future


def test_batches_are_as_large_as_the_model_embeds_in_ten_seconds(
    likewise: Callable[..., Any],
    encoder: Any,
    tmp_path: Path,
    folder: Path,
    lines: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock that passes one second for every thousand characters of a batch."""
    seconds = [0.0]
    monkeypatch.setattr("indexer.indexing.embedding.time.monotonic", lambda: seconds[0])
    monkeypatch.setattr("likewise.shell.indexing.runs.ThreadPoolExecutor", AtOnce)

    def embed(texts: Sequence[str]) -> None:
        seconds[0] += sum(len(text) + 256 for text in texts) / 1000
        if seconds[0] > 40:
            raise KeyboardInterrupt

    encoder.ask = embed
    encoder.max_tokens = 10_000  # one passage for each document
    records = [{"id": str(number), "title": "", "text": f"{number} " + "moon " * 149} for number in range(60)]
    write(tmp_path / "r.jsonl", lines(*records))
    said = likewise("index", folder, tmp_path / "r.jsonl", "--stream")
    committed = [len(json.loads(line)["committed"]) for line in said.out.splitlines()]
    assert committed == [16, 3, 9, 10]  # 16,000 characters first, and then up to ten seconds
    assert said.code == 130
    assert "likewise: 38 new or changed documents kept; run again to continue" in said.err
    assert len(uris(folder)) == 38


def test_of_two_records_with_one_id_the_earlier_is_not_embedded_in_every_run(
    likewise: Callable[..., Any], encoder: Any, tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    between = [{"id": str(number), "text": f"{number} " + "moon " * 200} for number in range(40)]
    records = [{"id": "twice", "text": "the earlier record"}, *between, {"id": "twice", "text": "the later record"}]
    file = tmp_path / "r.jsonl"
    write(file, lines(*records))
    assert counts(likewise("index", folder, file, "--json")) == {"indexed": 41, "skipped": 1, "duplicates": 1}
    assert not [text for text in encoder.seen if "earlier" in text]
    assert counts(likewise("index", folder, file, "--rehash", "--json")) == {
        "unchanged": 41,
        "skipped": 1,
        "duplicates": 1,
    }


def test_records_of_two_tables_with_one_named_id_are_counted_in_every_run(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in ("a", "b"):
        write(tables / f"{name}.csv", "id,word\n" + "".join(f"{number},{name}{number}\n" for number in range(3)))
    joined = f"{tables / 'a.csv'} and {tables / 'b.csv'} have records with the same ids: one document per id"
    for options, expected in (
        (BY_ID, {"indexed": 3, "skipped": 3}),
        ((), {"unchanged": 3, "skipped": 3}),
        ((), {"unchanged": 3, "skipped": 3}),
    ):
        said = likewise("index", folder, *options, tables, "--json")
        assert counts(said) == expected | {"duplicates": 3}
        assert "3 records left out, because a later record has the same id" in said.err
        assert said.err.count(joined) == (options == BY_ID)


def test_records_of_two_files_with_one_id_keep_their_addresses_after_a_rebuild(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path
) -> None:
    tables = tmp_path / "tables"
    for name in ("b", "a"):  # the second comes first in the walk
        write(tables / f"{name}.csv", f"id,text\n1,of {name}\n")
        likewise("index", folder, tables)
    likewise("index", folder, tables, "--rebuild").succeeded()
    with Index.open(folder) as index:
        assert {document.uri: document.text for document in index} == {"1": "of b", f"{tables}/a.csv#1": "of a"}
    assert likewise("show", folder, f"{tables}/a.csv#1").out.rstrip().endswith("of a")


# pruning


def test_prune_removes_what_its_source_no_longer_has(likewise: Callable[..., Any], notes: Path, folder: Path) -> None:
    likewise("index", folder, notes)
    (notes / "b.txt").unlink()
    said = likewise("index", folder, notes, "--json")
    assert (said.json["stale"], uris(folder)) == (1, ["a.txt", "b.txt", "c.txt", "d.txt"])
    assert "1 document is no longer in its source; --prune removes it" in said.err
    said = likewise("index", folder, notes, "--prune", "--json")
    assert counts(said.succeeded()) == {"unchanged": 3, "pruned": 1}
    assert uris(folder) == ["a.txt", "c.txt", "d.txt"]
    assert counts(likewise("index", folder, notes, "--prune", "--json")) == {"unchanged": 3}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00bad\xd8"])
def test_prune_removes_a_document_whose_file_was_empty_or_failed_before_it_was_gone(
    likewise: Callable[..., Any], notes: Path, folder: Path, content: bytes
) -> None:
    likewise("index", folder, notes)
    (notes / "b.txt").write_bytes(content)
    likewise("index", folder, notes)
    assert uris(folder) == ["a.txt", "b.txt", "c.txt", "d.txt"]
    (notes / "b.txt").unlink()
    assert likewise("index", folder, notes, "--json").json["stale"] == 1
    assert counts(likewise("index", folder, notes, "--prune", "--json")) == {"unchanged": 3, "pruned": 1}
    assert uris(folder) == ["a.txt", "c.txt", "d.txt"]


def test_prune_removes_a_record_that_vanished_from_its_file(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(tmp_path / "r.jsonl", lines(*({"id": i, "text": f"text {i}"} for i in range(5))))
    likewise("index", folder, file)
    write(file, lines(*({"id": i, "text": f"text {i}"} for i in range(4))), LONG_AGO + 9)
    assert counts(likewise("index", folder, file, "--prune", "--json")) == {"unchanged": 4, "pruned": 1}
    assert uris(folder) == ["0", "1", "2", "3"]


def test_prune_touches_nothing_outside_its_sources(
    likewise: Callable[..., Any], notes: Path, tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    write(tmp_path / "notes-2" / "x.txt", "a neighbour by name")
    likewise("index", folder, notes, tmp_path / "notes-2")
    likewise("index", folder, "-", stdin=lines({"id": "from stdin", "text": "text"}))
    with Index.open(folder) as index:
        from indexer import Document

        index.add([Document("from Python", "text")])
    (tmp_path / "notes-2" / "x.txt").unlink()
    (notes / "a.txt").unlink()
    said = likewise("index", folder, notes, "--prune", "--json")
    assert counts(said) == {"unchanged": 3, "pruned": 1}
    assert uris(folder) == ["b.txt", "c.txt", "d.txt", "from Python", "from stdin", "x.txt"]


def test_prune_with_a_glob_leaves_what_the_glob_does_not_name(
    likewise: Callable[..., Any], notes: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(notes / "e.md", "# Heading\n\ntext")
    write(notes / "f.md", "# Heading\n\ntext")
    likewise("index", folder, notes)
    (notes / "a.txt").unlink()
    (notes / "e.md").unlink()
    assert counts(likewise("index", folder, notes, "--glob", "*.md", "--prune", "--json")) == {
        "unchanged": 1,
        "pruned": 1,
    }
    assert uris(folder) == ["a.txt", "b.txt", "c.txt", "d.txt", "f.md"]
    monkeypatch.chdir(notes.parent)
    assert counts(likewise("index", folder, "notes/*.txt", "--prune", "--json"))["pruned"] == 1
    assert uris(folder) == ["b.txt", "c.txt", "d.txt", "f.md"]


def test_prune_does_nothing_where_a_source_is_missing(likewise: Callable[..., Any], notes: Path, folder: Path) -> None:
    other = write(notes.parent / "other" / "x.txt", "text").parent
    likewise("index", folder, notes, other)
    (notes / "a.txt").unlink()
    other.rename(notes.parent / "unmounted")
    likewise("index", folder, notes, other, "--prune", "--yes").failed(2, "other")
    assert len(uris(folder)) == 5


@pytest.mark.parametrize("engine", ["folder", pytest.param("PostgreSQL", marks=pytest.mark.slow)])
def test_prune_keeps_every_document_of_a_file_in_which_a_record_failed(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str], engine: str
) -> None:
    address = folder if engine == "folder" else new_address()
    records = [{"id": f"r{number}", "text": "one"} for number in range(4)]
    file = write(notes / "r.jsonl", lines(*records))
    likewise("index", address, notes)
    write(file, lines(records[1]) + '{"id": "r2", "te\n' + lines({"id": "r3", "text": ""}), LONG_AGO + 9)
    (notes / "a.txt").unlink()
    said = likewise("index", address, notes, "--prune", "--json")
    said.reported(1, pruned=1, stale=0)
    assert uris(address) == ["b.txt", "c.txt", "d.txt", "r0", "r1", "r2", "r3"]
    assert said.json["notes"] == [f"{KEPT}: {file}"]
    assert said.json["notes"][0] in said.err
    write(file, lines(records[1]), LONG_AGO + 20)
    likewise("index", address, notes, "--prune", "--json").reported(0, pruned=3, notes=[])
    assert uris(address) == ["b.txt", "c.txt", "d.txt", "r1"]


def test_prune_keeps_a_document_that_was_noticed_as_gone_before_its_file_failed(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(notes / "r.jsonl", lines({"id": "r1", "text": "one"}, {"id": "r2", "text": "two"}))
    likewise("index", folder, notes)
    write(file, lines({"id": "r1", "text": "one"}), LONG_AGO + 9)
    assert likewise("index", folder, notes, "--json").json["stale"] == 1
    write(file, lines({"id": "r1", "text": "one"}) + "{", LONG_AGO + 20)
    likewise("index", folder, notes, "--prune", "--json").reported(1, pruned=0, stale=0)
    assert uris(folder)[-2:] == ["r1", "r2"]


def test_a_file_that_was_skipped_has_no_such_row_once_a_record_of_it_fails(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(tmp_path / "r.jsonl", "")
    likewise("index", folder, file)
    assert [(row["uri"], row["state"]) for row in ledger(likewise, folder)] == [(str(file), "skipped")]
    write(file, lines({"id": "r1", "text": "one"}) + "{", LONG_AGO + 9)
    likewise("index", folder, file)
    rows = [(row["uri"], row["state"]) for row in ledger(likewise, folder)]
    assert sorted(rows) == [(f"{file}:2", "failed"), ("r1", "indexed")]


def test_a_table_that_cannot_be_read_to_its_end_keeps_its_rows(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    table = write(notes / "t.csv", "id,text\n1,one\n2,two\n3,three\n")
    likewise("index", folder, notes)
    write(table, 'id,text\n1,one\n2,"two\n', LONG_AGO + 9)
    (notes / "a.txt").unlink()
    said = likewise("index", folder, notes, "--prune", "--json")
    said.reported(1, pruned=1)
    assert uris(folder) == ["1", "2", "3", "b.txt", "c.txt", "d.txt"]
    assert str(table) in said.err


def test_a_name_that_is_not_utf_8_keeps_nothing(likewise: Callable[..., Any], notes: Path, folder: Path) -> None:
    likewise("index", folder, notes)
    (Path(os.fsdecode(bytes(notes) + b"/caf\xe9.txt"))).write_text("text")
    (notes / "a.txt").unlink()
    said = likewise("index", folder, notes, "--prune", "--json")
    said.reported(1, pruned=1, failed=1, notes=[])
    assert "its name is not valid UTF-8: rename it" in said.err
    failed = likewise("status", folder).out.splitlines()[0]
    assert failed == f"failed    {notes}/caf\ufffd.txt: its name is not valid UTF-8: rename it"
    assert uris(folder) == ["b.txt", "c.txt", "d.txt"]


def test_files_in_doubt_are_named_up_to_five_and_counted_beyond(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path
) -> None:
    files = [write(tmp_path / "s" / f"{number}.jsonl", f'{{"id": "{number}", "text": "x"}}\n{{') for number in range(7)]
    likewise("index", folder, tmp_path / "s")
    said = likewise("index", folder, tmp_path / "s", "--prune", "--json")
    named = ", ".join(map(str, files[:5]))
    assert said.json["notes"] == [f"{KEPT}: {named} and 2 more"]


def test_prune_of_more_than_half_needs_yes(likewise: Callable[..., Any], notes: Path, folder: Path) -> None:
    likewise("index", folder, notes)
    for name in "abc":
        (notes / f"{name}.txt").unlink()
    said = likewise("index", folder, notes, "--prune", "--json")
    said.reported(2, pruned=0)
    assert "3 of 4 documents, more than half" in said.err
    assert "no longer in their source" not in said.err
    assert "--yes" in said.err
    assert len(uris(folder)) == 4
    assert counts(likewise("index", folder, notes, "--prune", "--yes", "--json"))["pruned"] == 3
    assert uris(folder) == ["d.txt"]


def test_stdin_never_prunes(likewise: Callable[..., Any], folder: Path, lines: Callable[..., str]) -> None:
    likewise("index", folder, "-", stdin=lines(*({"id": f"r{i}", "text": "text"} for i in range(5))))
    said = likewise("index", folder, "-", "--prune", "--yes", "--json", stdin=lines({"id": "r1", "text": "text"}))
    said.reported(0, pruned=0)
    assert len(uris(folder)) == 5
    assert "--prune does nothing with standard input" in said.err


def test_a_source_that_is_a_file_and_failed_keeps_its_own_documents_only(
    likewise: Callable[..., Any], tmp_path: Path, notes: Path, folder: Path
) -> None:
    record = write(tmp_path / "r.jsonl", '{"id": "r", "text": "x"}\n')
    likewise("index", folder, notes, record)
    (notes / "a.txt").unlink()
    write(record, "{", LONG_AGO + 9)
    likewise("index", folder, notes, record, "--prune", "--json").reported(1, pruned=1, failed=1)
    assert uris(folder) == ["b.txt", "c.txt", "d.txt", "r"]


def test_a_source_that_cannot_be_listed_prunes_nothing_and_status_does_not_recommend_it(
    likewise: Callable[..., Any], notes: Path, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write(tmp_path / "other" / "x.txt", "text").parent
    likewise("index", folder, notes)
    likewise("index", folder, other, "--no-ignore")  # other options, so that the two are read one after the other
    (notes / "a.txt").unlink()
    refuse_to_list(monkeypatch, other)
    for command in (("index", folder, notes, other), ("update", folder)):
        said = likewise(*command, "--prune", "--json")
        said.reported(2, pruned=0, failed=1)
        assert "no longer in its source" not in said.err
        assert f"{other}: missing or cannot be listed, so nothing was pruned" in said.err
        assert len(uris(folder)) == 5
    assert f"nothing is pruned while {other} cannot be listed" in likewise("update", folder).err
    said = likewise("status", folder)
    assert said.out.splitlines()[-1].startswith(f"{other} cannot be listed")
    assert "--prune" not in said.out


def test_a_folder_that_cannot_be_listed_keeps_what_lies_below_it_and_the_rest_is_pruned(
    likewise: Callable[..., Any], notes: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(notes / "deep" / "er" / "e.txt", "text")
    likewise("index", folder, notes)
    (notes / "a.txt").unlink()
    refuse_to_list(monkeypatch, notes / "deep")
    assert likewise("status", folder, "--json").json["gone"] == [str(notes / "a.txt")]
    said = likewise("index", folder, notes, "--prune", "--json")
    said.reported(1, pruned=1, stale=0)
    assert said.json["notes"] == [f"{KEPT}: {notes / 'deep'}"]
    assert uris(folder) == ["b.txt", "c.txt", "d.txt", "e.txt"]


def test_status_recommends_what_prune_then_does(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str]
) -> None:
    file = write(notes / "r.jsonl", lines({"id": "r1", "text": "one"}, {"id": "r2", "text": "two"}))
    likewise("index", folder, notes)
    write(file, lines({"id": "r1", "text": "one"}), LONG_AGO + 9)
    likewise("index", folder, notes)
    write(file, lines({"id": "r1", "text": "one"}) + "{", LONG_AGO + 20)
    likewise("index", folder, notes)
    said = likewise("status", folder)  # r2 is in doubt
    assert "--prune" not in said.out
    assert likewise("status", folder, "--json").json["gone"] == []
    for name in "abcd":
        (notes / f"{name}.txt").unlink()
    assert f"likewise update {folder} --prune --yes" in likewise("status", folder).out
    assert likewise("update", folder, "--prune").code == 2
    assert "--prune --yes removes them" in likewise("index", folder, notes).err
    assert likewise("update", folder, "--prune", "--yes", "--json").json["pruned"] == 4


def test_what_one_group_of_sources_has_lost_and_another_has_is_not_pruned(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    first = write(tmp_path / "1" / "r.jsonl", lines({"id": "x", "text": "one"}, {"id": "y", "text": "two"}))
    likewise("index", folder, *BY_ID, tmp_path / "1")
    second = tmp_path / "2"
    write(second / "s.jsonl", lines({"id": "z", "text": "three"}))
    likewise("index", folder, *BY_ID, second, "--no-ignore")
    write(first, lines({"id": "y", "text": "two"}), LONG_AGO + 9)
    write(second / "s.jsonl", lines({"id": "z", "text": "three"}, {"id": "x", "text": "one"}), LONG_AGO + 9)
    assert counts(likewise("update", folder, "--prune", "--json")) == {"unchanged": 2, "updated": 1}
    assert uris(folder) == ["x", "y", "z"]


def test_the_text_of_a_file_that_is_gone_gives_way_to_that_of_another_with_the_same_id(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    write(tmp_path / "s" / "a.jsonl", lines({"id": "x", "text": "of a"}))
    likewise("index", folder, *BY_ID, tmp_path / "s")
    later = write(tmp_path / "s" / "b.jsonl", lines({"id": "x", "text": "of b"}))
    likewise("index", folder, *BY_ID, tmp_path / "s")
    with Index.open(folder) as index:
        assert index.get("x").text == "of b"
    later.unlink()
    likewise("index", folder, tmp_path / "s")
    assert counts(likewise("index", folder, tmp_path / "s", "--json")) == {"indexed": 1}
    with Index.open(folder) as index:
        assert index.get("x").text == "of a"
    assert counts(likewise("index", folder, tmp_path / "s", "--prune", "--json")) == {"unchanged": 1}


def test_a_document_that_stood_in_two_files_goes_with_the_last_of_them(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    first = write(tmp_path / "s" / "a.jsonl", lines({"id": "x", "text": "of a"}))
    second = write(tmp_path / "s" / "b.jsonl", lines({"id": "x", "text": "of b"}))
    write(tmp_path / "s" / "c.jsonl", lines(*({"id": f"c{i}", "text": "more"} for i in range(3))))
    likewise("index", folder, *BY_ID, tmp_path / "s")
    second.unlink()
    said = likewise("index", folder, *BY_ID, tmp_path / "s", "--prune")
    assert "run again: 1 file may hold documents that are gone from another file" in said.err
    first.unlink()
    assert likewise("index", folder, *BY_ID, tmp_path / "s", "--prune", "--rehash", "--json").json["pruned"] == 1
    assert uris(folder) == ["c0", "c1", "c2"]


def test_what_most_failed_of_is_said(likewise: Callable[..., Any], folder: Path, lines: Callable[..., str]) -> None:
    records = lines({"id": "0", "text": {}}, *({"id": str(i), "text": True} for i in range(1, 6)), {"id": "6"})
    said = likewise("index", folder, "-", stdin=records)
    assert '6 failed, such as 1: its text "text" must be a string or a number (found a boolean)' in said.err


@pytest.mark.parametrize("field", ["title", "_id", "headline"])
def test_a_member_may_be_the_text_whatever_it_usually_is(
    likewise: Callable[..., Any], folder: Path, lines: Callable[..., str], field: str
) -> None:
    record = {"_id": "an id", "title": "a title", "headline": "a line", "text": "a text"}
    likewise("index", folder, "-", "--text-field", field, "--json", stdin=lines(record)).reported(0, indexed=1)
    with Index.open(folder) as index:
        (document,) = index
    assert document.text == record[field]
    assert document.title == ("" if field == "title" else "a title")


def test_a_text_of_which_the_model_knows_nothing_is_skipped(
    folder: Path, make_encoder: Callable[..., Any], likewise: Callable[..., Any], lines: Callable[..., str],
    encoder: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    whole = type(encoder).encode

    def encode(self: Any, texts: Sequence[str], role: Any = "document", truncate: bool = False) -> Any:
        if unknown := [at for at, text in enumerate(texts) if text.endswith("zzz")]:
            raise NothingKnown(unknown, "words")
        return whole(self, texts, role, truncate)

    monkeypatch.setattr(type(encoder), "encode", encode)
    records = lines({"id": "a", "text": "zzz"}, {"id": "b", "text": "bread"}, {"id": "c", "text": "more zzz"})
    likewise("index", folder, "-", "--json", stdin=records).reported(0, indexed=1, skipped=2)
    assert uris(folder) == ["b"]
    records = lines({"id": "d", "text": "zzz"}, {"id": "e", "text": "a zzz"})
    said = likewise("index", folder, "-", "--json", stdin=records)
    said.reported(0, skipped=2)  # also where they are all that is new
    monkeypatch.setattr(type(encoder), "encode", lambda self, texts, *_, **__: encode(self, ["zzz"] * len(texts)))
    records = lines({"id": "f", "text": "one"}, {"id": "g", "text": "two"})
    likewise("index", folder, "-", "--json", stdin=records).failed(2, "its weights are broken")


def test_numbers_that_nothing_can_hold_are_one_failed_record(
    likewise: Callable[..., Any], folder: Path, lines: Callable[..., str]
) -> None:
    exported = {"likewise": 1, "id": "e", "text": "text", "sections": [[0, "", 2**70]]}
    records = lines({"id": "v", "text": "text", "vector": [10**400, 1]}, exported, {"id": "fine", "text": "text"})
    likewise("index", folder, "-", "--json", stdin=records).reported(1, failed=2, indexed=1)
    assert uris(folder) == ["fine"]


def test_a_document_that_another_source_still_has_is_not_pruned(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    first = write(tmp_path / "1" / "r.jsonl", lines(*({"id": f"r{i}", "text": "text"} for i in range(4))))
    write(tmp_path / "2" / "r.jsonl", lines({"id": "r1", "text": "text"}))
    likewise("index", folder, *BY_ID, tmp_path / "1", tmp_path / "2")
    write(first, lines(*({"id": f"r{i}", "text": "text"} for i in (0, 2, 3))), LONG_AGO + 9)
    said = likewise("index", folder, *BY_ID, tmp_path / "1", "--prune", "--json")
    assert said.json["pruned"] == 0
    assert len(uris(folder)) == 4


def test_documents_whose_file_becomes_ignored_are_reported_and_not_pruned(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str]
) -> None:
    records = write(notes / "old" / "r.jsonl", lines({"id": "r1", "text": "one"}, {"id": "r2", "text": "two"}))
    likewise("index", folder, notes)
    write(notes / ".gitignore", "b.txt\n")
    write(notes / ".likewiseignore", "old/\n")
    for _ in range(2):
        said = likewise("index", folder, notes, "--prune", "--json")
        assert counts(said) == {"unchanged": 3, "skipped": 4, "ignored": 3}
    assert "kept: 3 documents of files that are ignored now, such as " in said.err
    assert f"likewise remove {folder} URI... removes them" in said.err
    assert len(uris(folder)) == 6
    write(notes / ".likewiseignore", "r.jsonl\n")  # the file instead of its folder
    assert counts(likewise("index", folder, notes, "--prune", "--json"))["ignored"] == 3
    records.unlink()  # gone is not ignored
    said = likewise("index", folder, notes, "--prune", "--json")
    assert (said.json["pruned"], said.json["ignored"]) == (2, 1)
    assert likewise("remove", folder, notes / "b.txt").code == 0
    assert "ignored" not in counts(likewise("index", folder, notes, "--json"))
    assert uris(folder) == ["a.txt", "c.txt", "d.txt"]


def test_a_file_that_is_no_longer_ignored_is_read_again(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str]
) -> None:
    write(notes / "r.jsonl", lines({"id": "r1", "text": "one"}))
    likewise("index", folder, notes)
    write(notes / ".likewiseignore", "[b-r]*\n")
    assert likewise("index", folder, notes, "--json").json["ignored"] == 4
    write(notes / "b.txt", "changed while it was ignored", LONG_AGO + 9)
    said = likewise("index", folder, notes, "--no-ignore", "--json")
    assert counts(said) == {"indexed": 1, "unchanged": 4, "skipped": 1}
    assert counts(likewise("index", folder, notes, "--no-ignore", "--prune", "--json")) == {
        "unchanged": 5,
        "skipped": 1,
    }


def test_a_document_that_another_file_has_is_not_an_ignored_one(
    likewise: Callable[..., Any], notes: Path, folder: Path, lines: Callable[..., str]
) -> None:
    write(notes / "one.jsonl", lines({"id": "r", "text": "text"}))
    write(notes / "two.jsonl", lines({"id": "r", "text": "text"}))
    likewise("index", folder, *BY_ID, notes)
    write(notes / ".likewiseignore", "two.jsonl\n")
    assert "ignored" not in counts(likewise("index", folder, *BY_ID, notes, "--prune", "--json"))


def test_an_emptied_folder_prunes_only_with_yes(likewise: Callable[..., Any], notes: Path, folder: Path) -> None:
    likewise("index", folder, notes)
    for file in notes.iterdir():
        file.unlink()  # as of a disk that is not mounted
    likewise("index", folder, notes, "--prune", "--json").reported(2, pruned=0)
    assert len(uris(folder)) == 4


@needs_no_root
def test_prune_keeps_what_lies_in_a_folder_that_cannot_be_listed(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    write(notes / "deep" / "e.txt", "text")
    likewise("index", folder, notes)
    (notes / "deep").chmod(0)
    said = likewise("index", folder, notes, "--prune", "--yes")
    (notes / "deep").chmod(0o755)
    assert said.code == 1
    assert len(uris(folder)) == 5


# the stream, and the reports while it runs


def test_stream_names_each_commit_when_it_can_be_searched(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 3000)
    there: list[int] = []
    real = runs_cli.say_json

    def say(value: Any) -> None:
        with Index.open(folder) as index:
            there.append(len(index))
            assert [uri for uri in value.get("committed", ()) if uri not in index] == []
        real(value)

    monkeypatch.setattr(runs_cli, "say_json", say)
    said = likewise(
        "index", folder, "-", "--stream", stdin=lines(*({"id": f"r{i}", "text": "text"} for i in range(50)))
    )
    *commits, last = [json.loads(line) for line in said.out.splitlines()]
    assert len(commits) > 2
    assert [uri for commit in commits for uri in commit["committed"]] == [f"r{i}" for i in range(50)]
    assert there == sorted(there)
    assert last["indexed"] == 50


def test_the_ledger_and_the_documents_are_one_commit(
    encoder: Any, notes: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReadOptions()
    with Index.create(folder, encoder) as index, store_of(index).writer() as writer:

        def fail(catalog: Any, snapshots: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(seal, "seal", fail)  # the first thing after the commit
        run = Run(index._core, writer, options)
        with pytest.raises(KeyboardInterrupt):
            run.feed(open_sources([str(notes)], options, holds_store))
        assert (len(index), snapshot_of(index).ledger_counts()) == (4, {"indexed": 4})


def test_an_index_of_own_vectors_takes_no_files(likewise: Callable[..., Any], tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document("a", "text")], vectors=np.eye(2)[:1])
    (tmp_path / "b.txt").write_text("text")
    likewise("index", tmp_path / "x.index", tmp_path / "b.txt", "--json").reported(1, failed=1)
    assert "no model to embed it with" in likewise("info", tmp_path / "x.index", "--ledger", "failed").out


def test_records_with_vectors_make_an_index_of_own_vectors_and_an_export_makes_its_twin(
    likewise: Callable[..., Any], tmp_path: Path, lines: Callable[..., str]
) -> None:
    mine, twin = tmp_path / "mine.index", tmp_path / "twin.index"
    records = lines(*({"id": f"i{i}", "text": f"text {i}", "vector": [1, i]} for i in range(3)))
    said = likewise("index", mine, "-", "--dimensions", "2", "--json", stdin=records)
    assert (counts(said.succeeded()), said.err) == ({"indexed": 3}, "")
    assert likewise("index", mine, "-", "--json", stdin=lines({"id": "j", "text": "x", "vector": [0, 1]})).code == 0
    assert "made with --dimensions 2 and not 3" in likewise("index", mine, "-", "--dimensions", 3, stdin=records).err
    exported = likewise("export", mine, "--vectors").out
    assert counts(likewise("index", twin, "-", "--dimensions", "2", "--json", stdin=exported)) == {"indexed": 4}
    assert counts(likewise("index", folder := tmp_path / "x.index", "-", "--json", stdin=records)) == {"failed": 3}
    assert "has 2 dimensions and the index 64; an index for it" in likewise("info", folder, "--ledger").out
    with Index.open(mine) as one, Index.open(twin) as other:
        assert list(one) == list(other)
        np.testing.assert_array_equal(snapshot_of(one).vectors_of("i2"), snapshot_of(other).vectors_of("i2"))


def test_records_give_an_index_its_width(
    likewise: Callable[..., Any], tmp_path: Path, lines: Callable[..., str]
) -> None:
    mine, twin, wide = (tmp_path / f"{name}.index" for name in ("mine", "twin", "wide"))
    for address in (mine, twin, wide):
        Index.create(address, dimensions="auto").close()
    records = lines({"id": "a", "text": "t", "vector": [0, 0]}, {"id": "b", "text": "t", "vector": [1, 2, 3]})
    assert counts(likewise("index", mine, "-", "--json", stdin=records)) == {"indexed": 1, "failed": 1}
    exported = likewise("export", mine, "--vectors").out
    assert counts(likewise("index", twin, "-", "--json", stdin=exported)) == {"indexed": 1}
    assert counts(likewise("index", wide, "-", "--json", "--dimensions", "2", stdin=records)) == {"failed": 2}
    widths = []
    for address in (mine, twin, wide):
        with Index.open(address) as index:
            widths.append(index.dimensions)
    assert widths == [3, 3, 2]


def test_what_standard_input_brought_is_not_gone_when_it_brings_more(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "x.index"
    likewise("index", folder, "-", stdin=lines({"id": "a", "text": "one"}, {"text": "two"}))
    assert likewise("index", folder, "-", stdin=lines({"id": "b", "text": "one"})).succeeded().err == ""
    assert "gone" not in likewise("info", folder, "--ledger").out
    said = likewise("index", folder, "-", stdin=lines({"text": "three"}))
    assert "no id in 1 record of standard input" in said.err


def test_nothing_to_read_is_an_error_and_makes_no_index(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    likewise("index", tmp_path / "x.index", tmp_path / "empty").failed(2, "empty: no file to read")
    assert not (tmp_path / "x.index").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("text")
    assert likewise("index", tmp_path / "x.index", tmp_path / "full", "--glob", "*.nothing").code == 2
    said = likewise("index", tmp_path / "x.index", tmp_path / "full", tmp_path / "empty").succeeded()
    assert "empty: no file to read" in said.err
    (tmp_path / "full" / "a.txt").unlink()
    assert likewise("index", tmp_path / "x.index", tmp_path / "full", "--prune", "--yes", "--json").json["pruned"] == 1


def test_a_damaged_document_is_embedded_anew_after_a_repair(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    import sqlite3

    likewise("index", folder, notes)
    catalog = sqlite3.connect(folder / "catalog.db")
    with catalog:
        catalog.execute("UPDATE passage SET vector = zeroblob(length(vector)) WHERE id = 2")
    catalog.close()
    said = likewise("check", folder, "--json")
    assert said.code == 1
    assert "b.txt: its stored row, text or vector is damaged" in str(said.json["problems"])
    assert likewise("index", folder, notes, "--json").json["indexed"] == 0
    said = likewise("check", folder, "--repair", "--json")
    assert said.code == 1
    assert "1 damaged document" in said.json["notes"][0]
    assert likewise("index", folder, notes, "--json").json["indexed"] == 1
    assert likewise("check", folder).code == 0


def test_the_first_file_of_a_glob_beside_another_source_is_read_too(
    likewise: Callable[..., Any], notes: Path, tmp_path: Path, folder: Path
) -> None:
    write(tmp_path / "more" / "x.txt", "another folder")
    sources = (f"{notes}/*.txt", tmp_path / "more", f"{notes}/a*")
    assert counts(likewise("index", folder, *sources, "--json")) == {"indexed": 5}
    assert counts(likewise("index", folder, *sources, "--prune", "--json")) == {"unchanged": 5}


def test_a_record_that_stands_twice_is_not_lost_when_nothing_has_changed(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    records = [{"id": "a", "text": "first"}, {"id": "b", "text": ""}, {"id": "a", "text": "last"}]
    file = write(tmp_path / "r.jsonl", lines(*records, {"id": "b", "text": "good"}))
    likewise("index", folder, file)
    before = ledger(likewise, folder)
    for _ in range(2):
        said = likewise("index", folder, file, "--prune", "--json")
        assert (counts(said), uris(folder)) == ({"unchanged": 2, "skipped": 2, "duplicates": 1}, ["a", "b"])
    assert [row["uri"] for row in ledger(likewise, folder)] == [row["uri"] for row in before]


def test_of_two_files_with_one_id_the_other_is_taken_when_one_goes(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path, lines: Callable[..., str]
) -> None:
    write(tmp_path / "in" / "1.jsonl", lines({"id": "a", "text": "of the first"}))
    second = write(tmp_path / "in" / "2.jsonl", lines({"id": "a", "text": "of the second"}))
    likewise("index", folder, *BY_ID, tmp_path / "in")
    second.unlink()
    assert likewise("index", folder, *BY_ID, tmp_path / "in", "--prune", "--yes", "--json").json["pruned"] == 0
    likewise("index", folder, *BY_ID, tmp_path / "in")
    with Index.open(folder) as index:
        assert index.get("a").text == "of the first"


def run_into(index: Index, *sources: Path, listener: Listener = SILENT) -> int:
    """One run with --id-field and --prune; returns how many files the next one has to read again."""
    options = ReadOptions(id_field="id")
    opened = open_sources([str(source) for source in sources], options, holds_store)
    core = IndexCore(index._core.store, index.encoder, Context(listener=listener))
    foreseen = rehearse(core, [(options, open_sources([str(source) for source in sources], options, holds_store))])
    with store_of(index).writer() as writer:
        run = Run(core, writer, options)
        summary = run.feed(opened)
        with core.store.snapshot() as snapshot:
            lost = find_lost(snapshot, [run.seen])
        assert (set(foreseen.uris), foreseen.total) == (set(lost.uris), lost.total)
        writer.remove(lost.uris)
    return summary.reread


@pytest.mark.parametrize("batch", [1, 1_000_000])
def test_of_records_with_one_id_the_last_of_the_run_wins_whichever_file_has_changed(
    tmp_path: Path, encoder: Any, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", batch)
    a, b, c = (tmp_path / "in" / f"{name}.jsonl" for name in "abc")
    ages = iter(range(100))

    def edit(file: Path, *of_x: str) -> None:
        write(file, lines({"id": file.stem, "text": "own"}, *({"id": "x", "text": text} for text in of_x)), next(ages))

    with Index.create(tmp_path / "x.index", encoder) as index:

        def run(*sources: Path) -> str:
            run_into(index, *(sources or (tmp_path / "in",)))
            return index.get("x").text if "x" in index else "nothing"

        for file in (a, b, c):
            edit(file, f"of {file.stem}")
        assert run() == "of c"
        edit(a, "first edited")
        assert run() == "of c"
        edit(b, "one of b", "two of b")  # twice in one file
        assert run() == "of c"
        edit(c, "last edited")
        assert run() == "last edited"
        edit(b)
        assert run() == "last edited"
        edit(b, "again in b")
        assert run() == "last edited"
        assert run(c, b, a) == "first edited"  # another order on the command line
        assert run(a, b) == "again in b"
        assert run(a) == "again in b"  # has not changed since it was read
        assert run() == "last edited"
        assert run(tmp_path / "in", a, tmp_path / "in", a) == "first edited"  # one file twice, after the others
        edit(b, "of b alone")
        assert run(b) == "of b alone"  # a later run over other sources
        assert run() == "last edited"
        c.unlink()
        assert (run(), run()) == ("last edited", "of b alone")
        edit(b, "")  # a record without a text
        assert (run(), run()) == ("of b alone", "first edited")
        a.unlink()
        assert run() == "nothing"


def test_the_last_record_wins_after_any_edits_and_interrupted_runs(
    tmp_path: Path, encoder: Any, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 600)
    chance = random.Random(11)
    files = [tmp_path / "in" / f"{name}.jsonl" for name in "abcd"]
    write(tmp_path / "in" / "note.txt", "a file")

    class Interrupting(Listener):
        def committed(self, commit: Commit) -> None:
            if chance.random() < 0.5:
                raise KeyboardInterrupt

    with Index.create(tmp_path / "x.index", encoder) as index:
        for step in range(12):
            for file in chance.sample(files, chance.randint(0, 2)):
                if chance.random() < 0.2:
                    file.unlink(missing_ok=True)
                    continue
                ids = chance.choices("uvwxyz", k=chance.randint(1, 4))
                contents = [chance.choice(["", f"{step} {number}"]) for number in range(len(ids))]
                records = [{"id": id_, "text": text} for id_, text in zip(ids, contents, strict=True)]
                write(file, lines(*records), step)
            existing = [file for file in files if file.exists()]
            if existing and chance.random() < 0.4:
                with suppress(KeyboardInterrupt):
                    run_into(index, chance.choice(existing), listener=Interrupting())
            if chance.random() < 0.4:
                with suppress(KeyboardInterrupt):
                    run_into(index, tmp_path / "in", listener=Interrupting())
            order = [tmp_path / "in"]
            if chance.random() < 0.3 and files[0].exists():
                order.append(files[0])
            while run_into(index, *order):
                pass
            expected = {str(tmp_path / "in" / "note.txt"): "a file"}
            for file in (*files[1:], files[0]) if len(order) > 1 else files:
                if file.exists():
                    records = [json.loads(line) for line in file.read_text().splitlines()]
                    expected |= {record["id"]: record["text"] for record in records if record["text"]}
            assert {document.uri: document.text for document in index} == expected, step
            run_into(index, *order)  # reads files again whose records were pruned
            encoder.seen.clear()
            run_into(index, *order)
            assert encoder.seen == [], step


def test_a_malformed_record_of_an_export_fails_alone(
    likewise: Callable[..., Any], folder: Path, lines: Callable[..., str]
) -> None:
    passage = {"start": 0, "end": 1, "tokens": 3, "heading": "", "page": None, "vector": [1.0] * 64}
    bad = [
        {"id": None},
        {"id": 7},
        {"sections": [["x", "", None]]},
        {"sections": [[0, None, None]]},
        {"passages": [passage | {"heading": None}]},
        {"passages": [passage | {"page": "one"}]},
        {"passages": [passage | {"start": True}]},
        {"passages": [passage], "recipe": ""},
    ]
    records = [{"likewise": 1, "id": f"r{i}", "text": "x", **record} for i, record in enumerate(bad)]
    said = likewise("index", folder, "-", "--json", stdin=lines({"id": "good", "text": "y"}, *records))
    assert (said.code, counts(said), uris(folder)) == (1, {"indexed": 1, "failed": len(bad)}, ["good"])
    assert "another recipe" in ledger(likewise, folder, "failed")[-1]["reason"]


def test_a_recall_that_is_none_is_refused_before_anything_is_read(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    for recall in ("98", "0", "-1"):
        assert likewise("index", folder, notes, "--recall", recall).code == 2
        assert not folder.exists()


def test_what_an_interrupted_run_left_undone_is_done_by_the_next(
    likewise: Callable[..., Any], notes: Path, folder: Path
) -> None:
    likewise("index", folder, notes)
    with Index.open(folder) as index, store_of(index).writer() as writer:
        assert index.settings.uncompiled  # why this encoder has no graph
        writer.change(lambda settings: replace(settings, uncompiled=""))
    assert counts(likewise("index", folder, notes, "--json")) == {"unchanged": 4}
    with Index.open(folder) as index:
        assert index.settings.uncompiled


@pytest.mark.parametrize("most", ["inf", "nan", "0", "1e300"])
def test_a_limit_that_is_none_is_refused(likewise: Callable[..., Any], notes: Path, folder: Path, most: str) -> None:
    assert likewise("index", folder, notes, "--max-file-mb", most).code == 2
    assert not folder.exists()


def test_reasons_are_short_and_info_counts_equal_ones(likewise: Callable[..., Any], tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    records.write_text("nonsense\n" * 12 + '{"id": "a", "text": "text"}\n')
    index = tmp_path / "x.index"
    assert likewise("index", index, records).code == 1
    said = likewise("info", index).out.splitlines()
    (row,) = likewise("info", index, "--ledger", "failed", "--json").out.splitlines()[:1]
    reason = json.loads(row)["reason"].removeprefix("line 1: ")
    assert said[-1] == f"reasons    12 failed: {reason}"


def test_a_long_reason_keeps_its_begin_and_its_end() -> None:
    assert Code.OTHER("two\n lines").text() == "two lines"
    assert Code.OTHER("x" * 200).text() == "x" * 200
    assert Code.OTHER("a" * 150 + "b" * 150).text() == "a" * 97 + " … " + "b" * 100


def test_info_shows_five_reasons_and_counts_the_others() -> None:
    reasons = [
        ReasonCount("failed", replace(Code.OTHER(reason), line=line), 1) for line, reason in enumerate("aabbbcdefg")
    ]
    lines = ["3 failed: b", "2 failed: a", "1 failed: c", "1 failed: d", "1 failed: e"]
    rest = "2 for other reasons; likewise info x.index --ledger lists all"
    assert _reason_rows(reasons, "x.index") == [("reasons", lines[0]), *(("", line) for line in [*lines[1:], rest])]


def test_lost_documents_are_found_without_holding_the_others() -> None:
    """A mailbox has 100,000 rows. Row 7 is gone from it, but another file has its document."""

    class Rows:
        documents = 20_000

        def ledger_of_documents(self) -> Iterator[LedgerRow]:
            for number in range(self.documents):
                yield LedgerRow("/in/mbox", f"/in/mbox#{number}", "gone" if number in {5, 7} else "unchanged")
            yield LedgerRow("/in/other", "/in/mbox#7", "indexed")

        def ledger(self, state: str) -> Iterator[LedgerRow]:
            return iter(())

    seen = Seen(sources=[cast(Any, SimpleNamespace(covers=lambda _: True))])
    tracemalloc.start()
    try:
        lost = find_lost(cast(Any, Rows()), [seen])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (lost.uris, lost.ignored, lost.total) == (("/in/mbox#5",), (), 20_000)
    assert peak < 500_000  # bytes; a set of the uris alone has 2,000,000


def test_a_cell_that_stays_text_is_a_note_and_the_ledger_lists_it(
    likewise: Callable[..., Any], tmp_path: Path, folder: Path
) -> None:
    rows = "".join(f"r{row},Row {row},{row}\n" for row in range(60))
    table, page = tmp_path / "in" / "prices.csv", tmp_path / "in" / "page.md"
    write(table, f"id,text,price\n{rows}r60,The last row,ask us\n")
    said = likewise("index", folder, tmp_path / "in")
    assert f"1 file with a note: likewise info {folder} --ledger noted" in said.err
    assert '"ask us" in column "price"' in likewise("info", folder, "--ledger", "noted").out
    write(page, "---\ntitle: [a\n---\nA page.\n")
    write(table, f"id,text,price\n{rows}r60,The last row,ask them\n")
    said = likewise("index", folder, tmp_path / "in")
    assert f"1 file not read whole: likewise info {folder} --ledger noted" in said.err
