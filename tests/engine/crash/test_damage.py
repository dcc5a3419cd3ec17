"""Files damaged on purpose: every answer is the undamaged one or a clear error, never another ranking."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from opened import snapshot_of, store_of

from indexer import Document, Index
from indexer.errors import LikewiseError
from search import Searcher

DIMENSIONS, COUNT = 16, 400
_ROWS = np.random.default_rng(3).normal(size=(COUNT, DIMENSIONS)).astype(np.float32)

Answers = list[list[tuple[str, float]]]


def _make(folder: Path, kind: str) -> None:
    with Index.create(folder, dimensions=DIMENSIONS) as index:
        texts = [f"document number {i}" for i in range(COUNT)]
        index.add([Document(f"d{i}", text, metadata={"n": i}) for i, text in enumerate(texts)], vectors=_ROWS)
        index.compact(kind)
        index.remove(["d3", "d5"])
        index.add([Document("tail", "not in a segment")], vectors=_ROWS[:1] + 0.01)


def _answers(folder: Path) -> Answers:
    """Rankings by brute force, which are the same whatever serves them."""
    with Searcher(folder) as searcher:
        return [
            [
                (snapshot_of(searcher).passages_by_id([id_])[0].uri, round(score, 4))
                for id_, score in zip(found.passages.tolist(), found.scores.tolist(), strict=True)
            ]
            for row in _ROWS[:6]
            for found in [snapshot_of(searcher).dense(row / np.linalg.norm(row), 5, exact=True)]
        ]


def _flip(data: bytearray, chance: random.Random) -> bytearray:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _truncate(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.randrange(len(data))]


def _zero(data: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(data))
    end = min(len(data), start + 512)
    data[start:end] = bytes(end - start)
    return data


def _swap(data: bytearray, chance: random.Random) -> bytearray:
    start, other = chance.randrange(len(data)), chance.randrange(len(data))
    data[start : start + 64], data[other : other + 64] = data[other : other + 64], data[start : start + 64]
    return data


MUTATIONS: tuple[Callable[[bytearray, random.Random], bytearray], ...] = (_flip, _truncate, _zero, _swap)


def _damage(file: Path, number: int) -> None:
    chance = random.Random(number)
    data = bytearray(file.read_bytes())
    if not data:
        return
    mutated = MUTATIONS[number % len(MUTATIONS)](data, chance)
    file.unlink()  # another file, as a copy or a restore would be: a mapped one of this process stays as it was
    file.write_bytes(mutated)


@pytest.mark.parametrize("kind", ["exact", pytest.param("approximate", marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", [".faiss", pytest.param(".ids", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:segment")
def test_a_damaged_segment_never_changes_an_answer(tmp_path: Path, kind: str, suffix: str) -> None:
    _make(tmp_path / "sound.index", kind)
    expected = _answers(tmp_path / "sound.index")
    for number in range(40):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "sound.index", folder)
        (file,) = (folder / "segments").glob(f"*{suffix}")
        _damage(file, number)
        assert _answers(folder) == expected, number
        shutil.rmtree(folder)


@pytest.mark.filterwarnings("ignore:segment")
def test_removed_and_foreign_segments_are_served_from_the_catalog_and_rebuilt(tmp_path: Path) -> None:
    _make(tmp_path / "sound.index", "approximate")
    _make(tmp_path / "other.index", "exact")
    expected = _answers(tmp_path / "sound.index")
    own = sorted((tmp_path / "sound.index" / "segments").iterdir())
    for file, foreign in zip(own, sorted((tmp_path / "other.index" / "segments").iterdir()), strict=True):
        shutil.copy(foreign, file)
    assert _answers(tmp_path / "sound.index") == expected
    with Searcher(tmp_path / "sound.index") as searcher:
        hits = searcher.search_vector(np.ones(searcher.info().dimensions), 1)
        assert "answering from the catalog" in hits.notes[0]
    own[0].unlink()
    with Index.open(tmp_path / "sound.index") as index:
        assert not index.check().ok
        assert index.check(repair=True).notes[0] == "rebuilt 1 damaged segment"
        assert index.check().ok
    assert _answers(tmp_path / "sound.index") == expected
    next((tmp_path / "sound.index" / "segments").iterdir()).unlink()
    with Index.open(tmp_path / "sound.index") as index:
        index.add([Document("next", "the next writer rebuilds it")], vectors=_ROWS[:1])
        assert index.check().ok
        assert index.info().segments[0]["count"] == COUNT


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.long)])
def test_a_damaged_catalog_answers_as_before_or_says_so(tmp_path: Path, count: int) -> None:
    sound = tmp_path / "sound.index"
    _make(sound, "exact")
    expected = _answers(sound)
    told = 0
    for number in range(count):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        _damage(folder / "catalog.db", number)
        try:
            assert _answers(folder) == expected, number
        except LikewiseError:
            told += 1
        shutil.rmtree(folder)
    assert told > count // 8


@pytest.mark.slow
def test_a_damaged_log_answers_as_an_earlier_commit(tmp_path: Path) -> None:
    live = tmp_path / "live.index"
    _make(live, "exact")
    states = [_answers(live)]
    with Index.open(live) as index, store_of(index).writer():
        for number in range(4):
            index.add([Document(f"more {number}", "more")], vectors=_ROWS[number : number + 1])
            states.append(_answers(live))
        shutil.copytree(live, tmp_path / "copy.index")
    assert (tmp_path / "copy.index" / "catalog.db-wal").stat().st_size > 0
    found: list[Answers] = []
    told = 0
    for number in range(40):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "copy.index", folder, ignore=shutil.ignore_patterns("*-shm"))
        _damage(folder / "catalog.db-wal", number)
        try:
            found.append(_answers(folder))
            assert found[-1] in states, number
        except LikewiseError:
            told += 1
        shutil.rmtree(folder)
    assert told < 20
    assert any(answer != states[0] for answer in found)  # the log is read, not left out
