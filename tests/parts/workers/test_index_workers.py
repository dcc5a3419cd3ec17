"""`likewise index --workers N`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from hardware import needs_fork
from opened import snapshot_of
from postgres_server import new_address

from indexer import Index
from indexer.ledger import HELD
from likewise.workers import ProcessWorkers

WORDS = [f"word{number}" for number in range(300)]


PROGRAM = [sys.executable, "-c", "import likewise.shell; likewise.shell.main()", "index"]


def text(number: int) -> str:
    return " ".join(np.random.default_rng(number).choice(WORDS, 40))


@pytest.fixture
def source(tmp_path: Path, lines: Callable[..., str]) -> Path:
    folder = tmp_path / "source"
    (folder / "below").mkdir(parents=True)
    (folder / "records.jsonl").write_text(lines(*({"id": f"r{n}", "text": text(n)} for n in range(30))))
    for number in range(30, 50):
        (folder / "below" / f"{number}.md").write_text(text(number))
    (folder / "empty.txt").write_text("")
    return folder


def index_with(*arguments: str | Path, env: dict[str, str] | None = None) -> Any:
    """What a process of its own printed."""
    said = subprocess.run(
        [*PROGRAM, *map(str, arguments), "--json", "--no-cache"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **(env or {})},
    )
    return SimpleNamespace(code=said.returncode, err=said.stderr, json=json.loads(said.stdout) if said.stdout else None)


def contents(address: str | Path) -> list[Any]:
    with Index.open(address) as index:
        rows = snapshot_of(index).ledger()
        ledger = sorted((row.file, row.uri, "held" if row.state in HELD else row.state, row.reason) for row in rows)
        items = sorted(index._core.store.export(), key=lambda item: item.document.uri)
        return [ledger, [(item.document, item.spans, np.asarray(item.vectors).tolist()) for item in items]]


@pytest.mark.slow
def test_processes_make_the_same_index_as_one(tmp_path: Path, source: Path, static_model: Path) -> None:
    serial = index_with(tmp_path / "serial.index", source, "--model", static_model)
    ran = index_with(tmp_path / "x.index", source, "--model", static_model, "--workers", "2")
    assert (ran.code, serial.code) == (0, 0)
    assert ran.json["indexed"] == 50
    assert {**ran.json, "notes": []} == {**serial.json, "notes": []}
    assert "2 processes share" in ran.err
    assert contents(tmp_path / "x.index") == contents(tmp_path / "serial.index")
    again = index_with(tmp_path / "x.index", source, "--workers", "2")
    assert (again.json["indexed"], again.json["unchanged"]) == (0, 50)
    assert "2 processes share" not in again.err  # none was needed, and none was started


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], "'0' is not a number of processes"),
        (["--workers", "9" * 5000], "is not a number of processes: give 1 to 999"),
        (["--workers", "many"], "'many' is not a number of processes"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    arguments: list[str], message: str, likewise: Callable[..., Any], tmp_path: Path, source: Path
) -> None:
    said = likewise("index", tmp_path / "x.index", source, *arguments)
    assert said.code == 2
    assert message in said.err
    assert not (tmp_path / "x.index").exists()


@pytest.fixture
def many(tmp_path: Path, lines: Callable[..., str]) -> Path:
    file = tmp_path / "many.jsonl"
    file.write_text(lines(*({"id": f"r{n}", "text": text(n)} for n in range(3000))))
    return file


def stopped(
    folder: Path, source: Path, model: Path, commits: int, number: signal.Signals, workers: str = "1"
) -> tuple[int, list[str]]:
    """Run with workers until this many commits are acknowledged and send a signal; return the exit and the uris. None
    of its processes is left."""
    command = [
        *PROGRAM,
        str(folder),
        str(source),
        "--model",
        str(model),
        "--workers",
        workers,
        "--stream",
        "--no-cache",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        committed: list[str] = []
        children: list[psutil.Process] = []
        for count, line in enumerate(process.stdout, 1):
            committed += json.loads(line).get("committed", ())
            if count == commits:
                children = psutil.Process(process.pid).children(recursive=True)
                process.send_signal(number)
        code = process.wait(60)
    assert children
    assert psutil.wait_procs(children, 60)[1] == []
    return code, committed


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        pytest.param("1", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("1", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("ray", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("ray", signal.SIGINT, marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(300)
def test_the_driver_that_is_interrupted_keeps_what_it_committed(
    workers: str,
    number: signal.Signals,
    tmp_path: Path,
    many: Path,
    static_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C or SIGTERM in the middle of a run: it exits with 130 after its commit, and the next run continues."""
    if workers == "ray":
        pytest.importorskip("ray")
        monkeypatch.setenv("RAY_ADDRESS", "local")
        monkeypatch.setenv("RAY_TMPDIR", tempfile.mkdtemp(prefix="lw-ray-"))
    code, committed = stopped(tmp_path / "x.index", many, static_model, 1, number, workers)
    assert code == 130
    assert 0 < len(committed) < 3000
    again = index_with(tmp_path / "x.index", many)
    assert (again.code, again.json["seen"]) == (0, 3000)
    assert len(committed) <= again.json["unchanged"] < 3000  # the last commit may have had no time to be printed


@pytest.mark.slow
def test_recorded_sources_are_read_again_with_workers(
    tmp_path: Path, source: Path, static_model: Path, likewise: Callable[..., Any]
) -> None:
    index_with(tmp_path / "x.index", source, "--model", static_model)
    for number in range(30, 40):
        (source / "below" / f"{number}.md").write_text(text(number + 100))
    started: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessWorkers, "_start_process", _counting(started))
        said = likewise("update", tmp_path / "x.index", "--workers", "1", "--json")
    said.reported(0, indexed=10, unchanged=40)
    assert started == [0]
    likewise("update", tmp_path / "x.index", "--worker-resources", "GPU=1").failed(2, "add --workers ray")


def _counting(started: list[int]) -> Callable[..., Any]:
    start = ProcessWorkers._start_process

    def counted(workers: ProcessWorkers, number: int) -> Any:
        started.append(number)
        return start(workers, number)

    return counted


KILLED = """
import json, os, random, signal, sys
from concurrent.futures import ThreadPoolExecutor
from indexer import Index
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.runs import index_sources
from indexer.listener import Listener
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store

address, source, log, kills = *sys.argv[1:4], int(sys.argv[4])
IndexCore.batch_characters = 1200

class Killing(Listener):
    # Counts what happens: batches that are sent, that are begun and that are committed.
    def __init__(self, left):
        self.left = left
    def happens(self):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
    def committed(self, commit):
        self.happens()

class Counted:
    window = 3
    def __init__(self, embedder, killing):
        self.embedder, self.killing, self.threads = embedder, killing, ThreadPoolExecutor(2)
    def submit(self, documents):
        with open(log, "a") as file:
            print(json.dumps([document.uri for document in documents]), file=file)
        self.killing.happens()
        return self.threads.submit(self.embed, documents)
    def embed(self, documents):
        self.killing.happens()
        return self.embedder.embed(documents)
    def close(self):
        self.threads.shutdown()

chance = random.Random(kills)
for round in range(kills + 1):
    open(log, "w").close()
    if (child := os.fork()) == 0:
        killing = Killing(chance.randint(1, 30) if round < kills else -1)
        options = ReadOptions()
        context = Context(listener=killing, workers=lambda embedder: Counted(embedder, killing))
        with IndexCore.open(address, context=context) as core, core.writer() as writer:
            index_sources(core, writer, [(options, open_sources([source], options, holds_store))])
        os._exit(0)
    chance.random()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with Index.open(address) as index:
        stored = [document.uri for document in index]
    print(json.dumps([code, [json.loads(line) for line in open(log)], stored]))
"""


@pytest.mark.parametrize(
    ("store", "kills"),
    [
        pytest.param("folder", 4, marks=pytest.mark.slow),
        pytest.param("database", 4, marks=pytest.mark.slow),
        pytest.param("folder", 50, marks=[pytest.mark.long, pytest.mark.timeout(500)]),
        pytest.param("database", 50, marks=[pytest.mark.long, pytest.mark.timeout(500)]),
    ],
)
@needs_fork
def test_a_driver_that_is_killed_loses_nothing_and_embeds_its_window_twice_at_most(
    store: str, kills: int, tmp_path: Path, static_model: Path, lines: Callable[..., str]
) -> None:
    address = str(tmp_path / "x.index") if store == "folder" else new_address()
    source = tmp_path / "source"
    source.mkdir()
    for number in range(kills):
        records = ({"id": f"r{n}", "text": text(n)} for n in range(20 * number, 20 * number + 20))
        (source / f"{number:02}.jsonl").write_text(lines(*records))
    for new in (address, tmp_path / "serial.index"):
        Index.create(new, static_model).close()
    command = [sys.executable, "-c", KILLED, address, str(source), str(tmp_path / "log"), str(kills)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=450, check=True)
    rounds = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [code for code, _, _ in rounds] == [-signal.SIGKILL] * kills + [0]
    before: set[str] = set()
    again = 0
    for _, sent, stored in rounds:
        assert not before & {uri for batch in sent for uri in batch}  # nothing that is committed is embedded again
        assert before <= set(stored)
        lost = [batch for batch in sent if not set(batch) <= set(stored)]
        assert len(lost) <= 3 + 1  # the window, and the batch for which the run waits
        again += len(lost)
        before = set(stored)
    assert again >= kills / 2
    assert index_with(tmp_path / "serial.index", source).code == 0
    assert contents(address) == contents(tmp_path / "serial.index")
