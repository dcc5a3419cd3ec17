"""The ledger of an index of format 2, whose reasons are sentences: read as it is, and migrated by the first writer.

ledger/golden.index was made by the last version with format 2, over a copy of ledger/sources in /golden/sources:
`likewise index golden.index /golden/sources --dimensions 2 --max-file-mb 0.001`. Four rows were added to its
ledger, with two sentences that no version has written and two of a changed model. Its word index is left out.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opened import snapshot_of

from indexer import Index
from indexer.ledger import Code, Reason
from indexer.stores.local.disk.failpoint import MIGRATED

sys.path.insert(0, str(Path(__file__).parent))
from rooted import ROOT, move
from test_migration import open_a_writer, rows, version

HERE = Path(__file__).parent / "ledger"

LEDGER: list[tuple[str, str, Reason, str]] = [
    ("skipped", ".hidden", Code.HIDDEN_FILE(), "hidden file"),
    ("skipped", ".likewiseignore", Code.HIDDEN_FILE(), "hidden file"),
    ("failed", "a.txt", Code.NO_VECTOR(), 'has no "vector", and the index has no model to embed it with'),
    ("skipped", "big.txt", Code.TOO_LARGE("0.0", "0.001"), "0.0 MB, over the limit of 0.001 MB: raise --max-file-mb"),
    ("skipped", "binary.bin", Code.BINARY(), "a binary file, of no format that likewise reads"),
    (
        "failed",
        "broken.pdf",
        Code.NOT_PDF("Failed to load document (PDFium: Data format error)."),
        "damaged: not a readable PDF (Failed to load document (PDFium: Data format error).)",
    ),
    ("skipped", "empty.txt", Code.EMPTY(), "empty"),
    ("skipped", "notes.log", Code.IGNORED_BY_FILE(".likewiseignore"), "ignored by .likewiseignore"),
    ("skipped", "picture.png", Code.IMAGE(), Code.IMAGE().text()),
    ("skipped", "r1", Code.DUPLICATE(), "duplicate id: a later record of the same run has it"),
    (
        "failed",
        "r.jsonl:3",
        Reason(Code.NOT_JSON_AT_COLUMN, ("Expecting value", "1"), 3),
        "line 3: not valid JSON (Expecting value, column 1)",
    ),
    (
        "skipped",
        "r3",
        Reason(Code.RECORD_WITHOUT_TEXT, line=4),
        'line 4: has no text: give it a "text", or name the member with --text-field',
    ),
    ("failed", "r4", Code.NO_VECTOR(), 'has no "vector", and the index has no model to embed it with'),
    ("failed", "r.jsonl:6", Reason(Code.NOT_AN_OBJECT, ("a list",), 6), "line 6: not a JSON object (found a list)"),
    (
        "failed",
        "r6",
        Code.OTHER("its vector has 3 dimensions and the index 2"),
        "its vector has 3 dimensions and the index 2",
    ),
    ("skipped", "r1", Code.DUPLICATE(), "duplicate id: a later record of the same run has it"),
    ("failed", "1", Code.NO_VECTOR(), 'has no "vector", and the index has no model to embed it with'),
    ("failed", "t.csv:3", Reason(Code.WRONG_CELLS, ("2", "3"), 3), "line 3: has 2 cells where the header has 3"),
    ("skipped", "link", Code.LINK_TO_NOTHING(), "a link that leads nowhere"),
    ("indexed", "r1", Code.NONE(), ""),
    ("indexed", "r9", Code.NONE(), ""),
    (
        "skipped",
        "added-0",
        Code.OTHER("a sentence of nobody: it has 2 parts"),
        "a sentence of nobody: it has 2 parts",
    ),
    (
        "failed",
        "added-1",
        Reason(Code.OTHER, ("foreign words (all of them)",), 7),
        "line 7: foreign words (all of them)",
    ),
    ("skipped", "added-2", Code.UNREADABLE(), "no text that the model can read"),
    (
        "skipped",
        "added-3",
        Code.LEFT_OUT(),
        "no text that the model can read: left out when the model of the index was changed",
    ),
]
"""Every row of the golden index: its state, uri without the folder, reason and sentence."""

STORED = [
    "an image: run it through OCR and index the text" if reason.code is Code.IMAGE else sentence
    for _, _, reason, sentence in LEDGER
]
"""The sentences that the golden index stores, one of them in an earlier wording."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "x.index"
    shutil.copytree(HERE / "golden.index", folder)
    return folder


def ledger_of(folder: Path) -> list[tuple[str, str, Reason, str]]:
    with Index.open(folder) as index:
        return [
            (row.state, row.uri.removeprefix(f"{ROOT}/"), row.reason, row.reason.text())
            for row in snapshot_of(index).ledger()
        ]


def test_readers_show_both_formats_and_the_first_writer_migrates(folder: Path, likewise: Callable[..., Any]) -> None:
    stored = (
        "SELECT * FROM document ORDER BY id",
        "SELECT * FROM passage ORDER BY id",
        "SELECT * FROM file ORDER BY id",
    )
    before = [rows(folder, query) for query in stored]
    said = [likewise("info", folder, "--ledger", *options).out for options in ([], ["--json"], ["failed"])]
    sentences = [sentence for *_, sentence in LEDGER]
    assert [json.loads(line)["reason"] for line in said[1].splitlines()] == sentences
    assert (ledger_of(folder), version(folder)) == (LEDGER, 2)
    assert rows(folder, "SELECT reason FROM ledger ORDER BY id") == [(sentence,) for sentence in STORED]
    open_a_writer(folder)
    assert version(folder) == 4
    assert rows(folder, "SELECT reason FROM ledger ORDER BY id") == [(reason.stored(),) for _, _, reason, _ in LEDGER]
    assert ledger_of(folder) == LEDGER
    assert [likewise("info", folder, "--ledger", *options).out for options in ([], ["--json"], ["failed"])] == said
    assert [rows(folder, query) for query in stored] == before


def test_the_counts_of_reasons_are_those_of_before(folder: Path, likewise: Callable[..., Any]) -> None:
    before = likewise("info", folder).out
    assert '3 failed: has no "vector", and the index has no model to embed it with' in before
    assert "1 failed: foreign words (all of them)" in before
    open_a_writer(folder)
    assert likewise("info", folder).out == before.replace("format 2", "format 4")


def test_a_run_after_the_migration_finds_its_documents_unchanged(
    folder: Path, tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(HERE / "sources", sources, symlinks=True)
    # The records of a file that another one has, too, are known by the code of a duplicate.
    move(folder / "catalog.db", ROOT, str(sources))
    for file in sources.iterdir():
        os.utime(file, (1_704_067_200, 1_704_067_200), follow_symlinks=False)
    said = json.loads(likewise("index", folder, sources, "--max-file-mb", "0.001", "--json").out)
    assert {name: said[name] for name in ("seen", "indexed", "unchanged", "updated", "skipped", "failed")} == {
        "seen": 21,
        "indexed": 0,
        "unchanged": 2,
        "updated": 0,
        "skipped": 11,
        "failed": 8,
    }
    assert version(folder) == 4


def test_a_migration_that_is_killed_has_not_begun(folder: Path) -> None:
    program = "import sys; from indexer import Index; Index.open(sys.argv[1]).remove(['r9'])"
    ended = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "LIKEWISE_KILL_AT": MIGRATED},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert (version(folder), ledger_of(folder)) == (2, LEDGER)
    assert rows(folder, "SELECT reason FROM ledger ORDER BY id") == [(sentence,) for sentence in STORED]
    open_a_writer(folder)
    assert (version(folder), ledger_of(folder)) == (4, LEDGER)


def test_a_damaged_sentence_does_not_keep_a_writer_out(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        connection.execute("UPDATE ledger SET reason = CAST(x'777279ff' AS TEXT) WHERE uri = 'added-0'")
    open_a_writer(folder)
    assert [(uri, sentence) for _, uri, _, sentence in ledger_of(folder) if uri == "added-0"] == [
        ("added-0", "wry\ufffd")
    ]
