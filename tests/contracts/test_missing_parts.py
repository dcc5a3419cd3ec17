"""The command line where a part is missing: it goes without, or says in one line what to install."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer import doors


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Removes a part from the doors."""

    def remove(part: str) -> None:
        parts = {name: place for name, place in doors.TABLE["parts"].items() if name != part}
        monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "parts": parts})
        assert doors.find("parts", part) is None

    return remove


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "moon.txt").write_text("The moon orbits the earth.")
    return tmp_path / "moon.txt"


def test_without_the_cache_texts_are_embedded_again(
    without: Callable[[str], None],
    source: Path,
    tmp_path: Path,
    likewise: Callable[..., Any],
    encoder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_VECTOR_CACHE")
    without("cache")
    counts = []
    for name in ("a.index", "b.index"):
        asked = len(encoder.seen)
        said = likewise("index", tmp_path / name, source, "--json").reported(0, indexed=1)
        assert [note for note in said.json["notes"] if "cache" in note] == []
        counts.append(encoder.seen[asked:].count("moon The moon orbits the earth."))
    assert counts[0] == counts[1] > 0
    assert not (tmp_path / "cache" / "likewise" / "vectors.db").exists()


@pytest.mark.parametrize("arguments", [("--workers", "2"), ("--workers", "ray")])
def test_without_workers_the_option_says_what_to_install(
    without: Callable[[str], None],
    arguments: tuple[str, str],
    source: Path,
    tmp_path: Path,
    likewise: Callable[..., Any],
) -> None:
    if arguments[1] == "ray":
        pytest.importorskip("ray")
    without("workers")
    said = likewise("index", tmp_path / "x.index", source, *arguments)
    said.failed(2, "needs a part of likewise that is not installed (workers): pip install")
    assert not (tmp_path / "x.index").exists()
