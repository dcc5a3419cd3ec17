"""Makes tests/golden/files/golden.index, with the default model, and expected.json beside it.

python tests/golden/make_files.py. Two runs of `likewise index` over
files/sources leave every state in the ledger: between them a file is gone, one is new, one is changed, one has another
time alone, and of the records one has other metadata.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from rooted import ROOT, move

from indexer import load_encoder
from search import Searcher

HERE = Path(__file__).parent / "files"
MODEL = "all-MiniLM-L6-v2"
TIME, TOUCHED = 1_704_164_645, 1_709_254_800
"""When every file was last changed, and handbook/tea.md and records.jsonl, seconds since 1970."""

SOURCES = ("handbook", "notes", "records.jsonl", "mountains.csv")
"""Given one by one: a folder in which a record fails is not whole, and nothing in it is found to be gone."""

QUESTIONS = (
    "which seal is PX4017",
    "how can I stop my bread from going stale",
    "why do some stars explode",
    "a drop of oil on each roller of the chain",
    "Cervinia",
)


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        sources, folder = Path(temporary).resolve() / "sources", Path(temporary).resolve() / "golden.index"
        shutil.copytree(HERE / "sources", sources)
        before(sources)
        likewise(sources, "index", folder, *SOURCES, "--model", MODEL)
        likewise(sources, "compact", folder)
        after(sources)
        likewise(sources, "index", folder, *SOURCES)
        with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
            connection.execute("INSERT INTO setting VALUES ('lean', '1.0')")  # as if tune had learned it
        lines = ",\n".join(json.dumps(question) for question in expected(folder, str(sources)))
        (target.parent / "expected.json").write_text(f"[\n{lines}\n]\n")
        shutil.rmtree(folder / "encoder")
        with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
            connection.execute("INSERT INTO setting VALUES ('uncompiled', 'kept in the repository without weights')")
        move(folder / "catalog.db", str(sources), ROOT)
        with closing(sqlite3.connect(folder / "catalog.db")) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (words,) = connection.execute("SELECT name FROM word_index").fetchone()
        for leftover in (folder / "catalog.db-wal", folder / "catalog.db-shm"):
            leftover.unlink(missing_ok=True)
        for other in {path.name for path in (folder / "words").iterdir()} - {words}:
            shutil.rmtree(folder / "words" / other)
        (folder / "LOCK").write_text("")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)


def before(sources: Path) -> None:
    """The files as the first run finds them."""
    (sources / "notes" / "new.txt").unlink()
    (sources / "notes" / "gone.txt").write_text("A lost note\n\nThis note is in the index and no longer on the disk.\n")
    (sources / "notes" / "tides.txt").write_text("Tides\n\nAn earlier text of this file. It was shorter.\n")
    records = (sources / "records.jsonl").read_text()
    assert records.count('"topic": "planets", "year": 2022') >= 1
    (sources / "records.jsonl").write_text(
        records.replace('"topic": "planets", "year": 2022', '"topic": "planets", "year": 1999', 1)
    )
    set_times(sources)
    for name in ("handbook/tea.md", "records.jsonl"):
        os.utime(sources / name, (TIME, TIME))


def after(sources: Path) -> None:
    (sources / "notes" / "gone.txt").unlink()
    shutil.copytree(HERE / "sources", sources, dirs_exist_ok=True, copy_function=shutil.copyfile)
    set_times(sources)


def set_times(sources: Path) -> None:
    """Give files the times they had when the index was made, which a checkout does not keep."""
    for path in sources.rglob("*"):
        if path.is_file():
            os.utime(path, (TIME, TIME))
    for name in ("handbook/tea.md", "records.jsonl"):
        os.utime(sources / name, (TOUCHED, TOUCHED))


def likewise(where: Path, *arguments: str | Path) -> str:
    program = "from likewise.shell import main; main()"
    root = str(Path(__file__).parents[2])
    said = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=where,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert said.returncode in (0, 1), said  # 1: some records fail, on purpose
    return said.stdout


def expected(folder: Path, sources: str) -> list[dict[str, Any]]:
    """Questions with their vectors and the hits of each mode, uris under ROOT, scores to four digits."""

    def ranked(hits: Any) -> list[list[Any]]:
        return [[hit.uri.replace(sources, ROOT), round(hit.score, 4)] for hit in hits]

    vectors = load_encoder(MODEL).encode(QUESTIONS, role="query")
    with Searcher(folder) as searcher:
        return [
            {
                "text": text,
                "vector": [round(float(value), 5) for value in vector],
                **{mode: ranked(searcher.search(text, 5, mode=mode)) for mode in ("dense", "words", "hybrid")},
            }
            for text, vector in zip(QUESTIONS, vectors, strict=True)
        ]


if __name__ == "__main__":
    main(HERE / "golden.index")
