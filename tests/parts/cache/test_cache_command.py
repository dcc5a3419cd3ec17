"""likewise cache: shown, bounded and cleared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.cache import vector_cache
from likewise.cache.vector_cache import VectorCache

TEXTS = {"moon.txt": "The moon orbits the earth.", "bread.txt": "Bread is baked in an oven.", "sun.txt": "A star."}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, for a user with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_VECTOR_CACHE")
    files = tmp_path / "files"
    files.mkdir()
    for name, text in TEXTS.items():
        (files / name).write_text(text)
    return files


@pytest.mark.parametrize("size", ["nan", "inf", "1e300", "-1"])
def test_a_size_that_no_disk_has_is_wrong_usage(
    tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said = likewise("cache", "--max-gb", size)
    assert said.code == 2
    assert "--max-gb" in said.err


def test_the_cache_is_shown_bounded_and_cleared(
    tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache = VectorCache()
    clock = iter(range(10**9, 2 * 10**9, 10_000))
    monkeypatch.setattr(vector_cache.time, "time", lambda: next(clock))
    for block in range(20):
        cache.put({bytes([block, number]) * 16: bytes(1000) for number in range(50)})
    assert cache.get([bytes([0, 7]) * 16]) == {bytes([0, 7]) * 16: bytes(1000)}
    cache.close()
    shown = likewise("cache", "--json").json
    assert shown["vectors"] == 1000
    assert 10**6 < shown["bytes"] < shown["max_bytes"] == 5 * 10**9
    shown = likewise("cache", "--max-gb", "0.0006", "--json").json
    assert shown["bytes"] <= shown["max_bytes"] == 600_000
    assert 200 < shown["vectors"] < 600
    cache = VectorCache()
    assert bytes([0, 7]) * 16 in cache.get([bytes([0, 7]) * 16])  # used last
    assert cache.get([bytes([0, 8]) * 16, bytes([1, 7]) * 16]) == {}
    assert bytes([19, 7]) * 16 in cache.get([bytes([19, 7]) * 16])
    for block in range(20, 60):
        cache.put({bytes([block, number]) * 16: bytes(1000) for number in range(50)})
    assert cache.size()[1] < 800_000
    cache.close()
    assert likewise("cache", "--clear").out.count(": 0 vectors") == 1


def test_clear_removes_the_compiled_encoders_and_leaves_what_another_process_compiles(
    tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiled = tmp_path / "cache" / "likewise" / "compiled"
    for name in ("0123-auto", "4567-float32", ".0123-auto-draft"):
        (compiled / name).mkdir(parents=True)
    converted = compiled.parent / "models" / "multilingual-e5-small-2593f032ea29"
    converted.mkdir(parents=True)
    (compiled / "lock").touch()
    likewise("cache")
    assert len(list(compiled.iterdir())) == 4
    assert converted.is_dir()
    likewise("cache", "--clear")
    assert sorted(each.name for each in compiled.iterdir()) == [".0123-auto-draft", "lock"]
    assert not converted.exists()


def test_a_cache_that_is_not_used_says_so(
    tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_VECTOR_CACHE", raising=False)
    assert likewise("cache").out.endswith(": 0 vectors, 0.000 of 5 GB\n")
    assert likewise("cache", "--max-gb", 0).out.endswith(" of 0 GB; nothing is kept\n")
    for value in ("off", "0", "No", "false"):
        monkeypatch.setenv("LIKEWISE_VECTOR_CACHE", value)
        assert vector_cache.open_vector_cache() is None
        assert likewise("cache").out.endswith(f" of 0 GB; not used while LIKEWISE_VECTOR_CACHE is {value}\n")
    for value in ("", "on", "1"):
        monkeypatch.setenv("LIKEWISE_VECTOR_CACHE", value)
        assert vector_cache.open_vector_cache() is not None
