"""Workers that are processes: they embed as this process does, and are replaced when they are killed or hang."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import BadInput, Document, Index
from indexer.indexing.core import IndexCore
from likewise.workers import ProcessWorkers

CHANCE = random.Random(5)
DOCUMENTS = [
    Document(f"d{number:03}", " ".join(f"word{CHANCE.randrange(300)}" for _ in range(CHANCE.randrange(3, 90))), "word1")
    for number in range(200)
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexCore, "batch_characters", 2000)


def contents(index: Index) -> list[Any]:
    return [(item.document, item.spans, np.asarray(item.vectors).tolist()) for item in index._core.store.export()]


def processes(workers: ProcessWorkers) -> list[Any]:
    return [worker._child.process for worker in [*workers._workers.values()]]  # type: ignore[attr-defined]


def with_signals(folder: Path, model: Path, number: signal.Signals, times: int, **settings: Any) -> Index:
    """An index of all documents; a random worker gets a signal between the first calls."""
    index = Index.create(folder, model)
    workers = ProcessWorkers(index.embedder, 2, **settings)
    chance = random.Random(times)
    step = min(20, len(DOCUMENTS) // times)
    for call, first in enumerate(range(0, len(DOCUMENTS), step)):
        index.add(DOCUMENTS[first : first + step], workers=workers)
        if call < times:
            chance.choice([one for one in processes(workers) if one.poll() is None]).send_signal(number)
    workers.close()
    assert all(process.poll() is not None for process in processes(workers))
    return index


@pytest.fixture
def expected(tmp_path: Path, static_model: Path) -> list[Any]:
    with Index.create(tmp_path / "serial.index", static_model) as index:
        index.add(DOCUMENTS)
        return contents(index)


@pytest.mark.slow
def test_processes_that_are_killed_are_replaced_and_the_index_is_the_same(
    tmp_path: Path, static_model: Path, expected: list[Any]
) -> None:
    assert contents(with_signals(tmp_path / "x.index", static_model, signal.SIGKILL, 4)) == expected


@pytest.mark.long
@pytest.mark.timeout(500)
def test_processes_that_are_killed_fifty_times(tmp_path: Path, static_model: Path, expected: list[Any]) -> None:
    assert contents(with_signals(tmp_path / "x.index", static_model, signal.SIGKILL, 50)) == expected


@pytest.mark.slow
def test_a_process_that_hangs_is_replaced(tmp_path: Path, static_model: Path, expected: list[Any]) -> None:
    index = with_signals(tmp_path / "x.index", static_model, signal.SIGSTOP, 2, seconds=1.5)
    assert contents(index) == expected


def test_processes_share_the_cores_or_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.workers import process_workers

    monkeypatch.setattr(process_workers, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert process_workers._environment(1, 3, "auto") == {"OMP_NUM_THREADS": "2"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    found = [process_workers._environment(number, 3, "auto") for number in range(3)]
    assert found == [{"CUDA_VISIBLE_DEVICES": "4"}, {"CUDA_VISIBLE_DEVICES": "6"}, {"CUDA_VISIBLE_DEVICES": "4"}]
    assert process_workers._environment(0, 4, "cpu") == {"OMP_NUM_THREADS": "2"}


def test_what_processes_cannot_do_is_refused(tmp_path: Path, static_model: Path) -> None:
    few = pytest.raises(BadInput, match="0 workers: give 1 or more")
    with Index.create(tmp_path / "x.index", static_model) as index, few:
        ProcessWorkers(index.embedder, 0)
