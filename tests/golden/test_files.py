"""The golden index of format 1: its files are known again by their hashes, nothing is embedded, and it answers as ever.

files/golden.index was made by make_files.py with the default model, and is kept without its weights. Its files are
recorded under /golden/sources; here both are copied, and the copy says where the files are now.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Index
from search import Searcher

sys.path.insert(0, str(Path(__file__).parent))
from make_files import HERE, SOURCES, set_times
from rooted import ROOT, move, wrong_rows

MODELS = {"torch", "transformers", "sentence_transformers", "openvino", "tokenizers", "safetensors"}
EXPECTED = json.loads((HERE / "expected.json").read_text())

LEDGER = [
    ("failed", "/golden/sources/mountains.csv:12", "line 12: has 3 cells where the header has 8"),
    ("failed", "/golden/sources/records.jsonl:93", "line 93: not valid JSON (Expecting value, column 1)"),
    ("gone", "/golden/sources/notes/gone.txt", ""),
    ("indexed", "/golden/sources/notes/new.txt", ""),
    ("indexed", "/golden/sources/notes/tides.txt", ""),
    ("skipped", "/golden/sources/notes/.hidden.txt", "hidden file"),
    ("skipped", "/golden/sources/notes/picture.bin", "a binary file, of no format that likewise reads"),
    ("skipped", "empty", "line 94: its text is empty"),
    ("skipped", "stars-twinkle", "duplicate id: a later record of the same run has it"),
    ("updated", "/golden/sources/handbook/tea.md", ""),
    ("updated", "planets-exoplanet", ""),
]
"""Every row but the unchanged ones: (state, uri, reason)."""

SETTINGS = {
    *("calibration", "dimensions", "documents", "finished_run", "generation", "history", "language", "lean"),
    *("passages", "probed", "recipe", "run", "sources", "uncompiled"),
}

INFO: dict[str, Any] = {
    "documents": 111,
    "passages": 124,
    "tokens": 8108,
    "dimensions": 384,
    "unsealed": 0,
    "format_version": 1,
    "fields": {
        "climbed": ["text"],
        "country": ["text"],
        "deep.level": ["number"],
        "deep.seen": ["boolean"],
        "height": ["number"],
        "level": ["text"],
        "prominence": ["number"],
        "size": ["number"],
        "tags": ["text"],
        "topic": ["text"],
        "volcano": ["boolean"],
        "year": ["number"],
    },
    "model": "all-MiniLM-L6-v2",
    "passage_settings": {"max_tokens": 256, "overlap": 32},
    "ledger": {"failed": 2, "gone": 1, "indexed": 2, "skipped": 4, "unchanged": 106, "updated": 2},
}
RECIPE: dict[str, Any] = {
    "model": "all-MiniLM-L6-v2",
    "fingerprint": "c006c9485a9bef2b32fa4211f98d5bc526db0fde6c16cd541e38233f4eced8ea",
    "dimensions": 384,
    "max_tokens": 256,
    "layers": [],
    "combine": "mean",
    "pooling": None,
    "query_prompt": "",
    "document_prompt": "",
    "normalize": True,
}

SAID = """
import contextlib, io, json, sys
from likewise.shell import main
said = []
for arguments in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main(arguments)
        except SystemExit as ended:
            said.append([ended.code, out.getvalue()])
print(json.dumps([said, sorted({name.split(".")[0] for name in sys.modules})]))
"""


def commands(where: Path, *lines: list[str | Path]) -> tuple[list[tuple[int, list[Any]]], set[str]]:
    """Exit code and JSON lines of each command, run in one new process; and the packages it has loaded."""
    arguments = json.dumps([[*map(str, line), "--json"] for line in lines])
    ended = subprocess.run(
        [sys.executable, "-c", SAID, arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    said, packages = json.loads(ended.stdout)
    return [(code, [json.loads(line) for line in out.splitlines()]) for code, out in said], set(packages)


def stored(catalog: Path) -> list[tuple[Any, ...]]:
    """Every document's hashes, and every passage with its vector."""
    with closing(sqlite3.connect(catalog)) as connection:
        documents = connection.execute(
            "SELECT uri, content_hash, row_hash, tokens FROM document ORDER BY id"
        ).fetchall()
        return documents + connection.execute("SELECT * FROM passage ORDER BY id").fetchall()


def ledger(rows: list[dict[str, str]], root: str) -> list[tuple[str, str, str]]:
    """State, uri under ROOT and reason of every row that is not unchanged, sorted."""
    kept = [(row["state"], row["uri"].replace(root, ROOT), row["reason"]) for row in rows]
    return sorted(row for row in kept if row[0] != "unchanged")


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the index as it is in the repository; nobody writes into it."""
    folder = tmp_path_factory.mktemp("golden") / "golden.index"
    shutil.copytree(HERE / "golden.index", folder)
    return folder


def test_its_catalog_is_as_it_was_written(golden: Path) -> None:
    with closing(sqlite3.connect(golden / "catalog.db")) as connection:
        assert wrong_rows(connection) == []
        settings = dict(connection.execute("SELECT name, value FROM setting"))
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        (analysis,) = connection.execute("SELECT analysis FROM word_index").fetchone()
    assert set(settings) == SETTINGS
    assert (settings["dimensions"], settings["passages"]) == ("384", '{"max_tokens": 256, "overlap": 32}')
    assert (settings["lean"], settings["documents"], settings["run"]) == ("1.0", "111", "2")
    assert json.loads(settings["calibration"])["passages"] == 123
    assert json.loads(settings["probed"]).keys() == {"words", "dense", "questions"}
    assert marks == [0x6C696B65, 1]
    assert analysis == "1 en"


def test_files_are_known_again_by_their_content_and_no_model_is_loaded(golden: Path, tmp_path: Path) -> None:
    index, sources = tmp_path / "golden.index", (tmp_path / "sources").resolve()
    shutil.copytree(golden, index)
    shutil.copytree(HERE / "sources", sources)
    set_times(sources)
    move(index / "catalog.db", ROOT, str(sources))
    before = stored(index / "catalog.db")
    said, packages = commands(
        sources,
        ["info", index, "--ledger"],
        ["index", index, "--rehash", *SOURCES],
        ["info", index, "--ledger"],
        ["index", index, *SOURCES],
    )
    assert packages & MODELS == set()
    first, run, second, again = said
    counts = {"seen": 116, "indexed": 0, "unchanged": 110, "updated": 0, "skipped": 4, "failed": 2, "pruned": 0}
    assert run == (1, [counts | {"duplicates": 1, "stale": 1, "ignored": 0, "noted": 0, "notes": []}])
    assert again == (0, run[1]), "what has failed is known now"
    with Index.open(index) as opened:
        report = opened.check()
    assert (report.ok, report.problems, report.notes) == (True, (), ())
    assert stored(index / "catalog.db") == before
    assert ledger(first[1], str(sources)) == LEDGER
    assert ledger(second[1], str(sources)) == [row for row in LEDGER if row[0] not in ("indexed", "updated")]
    assert (len(first[1]), len(second[1])) == (117, 117)


def test_what_it_says_of_itself(golden: Path) -> None:
    ((code, (info,)),), packages = commands(golden.parent, ["info", golden])
    assert code == 0
    assert packages & MODELS == set()
    segments = [{"kind": row["kind"], "count": row["count"]} for row in info.pop("segments")]
    assert segments == [{"kind": "exact", "count": 123}, {"kind": "exact", "count": 2}]
    assert {name: info[name] for name in INFO} == INFO
    assert info["recipe"] == RECIPE


@pytest.mark.parametrize("question", EXPECTED, ids=lambda question: question["text"])
def test_it_answers_as_it_did(golden: Path, question: dict[str, Any]) -> None:
    with Searcher(golden) as searcher:
        words = searcher.search(question["text"], 5, mode="words")
        dense = searcher.search_vector(np.array(question["vector"]), 5)
    for hits, mode in ((words, "words"), (dense, "dense")):
        assert [hit.uri for hit in hits] == [uri for uri, _ in question[mode]]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in question[mode]], abs=1e-3)
    assert dense.matched == 111
