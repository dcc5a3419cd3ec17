"""Working folders for the tests of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; the user has no configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def topics(tmp_path: Path, likewise: Callable[..., Any], lines: Callable[..., str]) -> Path:
    """An index of three records: bread, moon and river, in this order."""
    folder = tmp_path / "topics.index"
    records = (
        {"id": "bread", "title": "Bread", "text": "Knead the dough and bake the bread.", "year": 2020},
        {"id": "moon", "title": "Moon", "text": "The moon pulls the water of the sea.", "year": 2022},
        {"id": "river", "title": "River", "text": "The water of the river reaches the sea.", "year": 2024},
    )
    assert likewise("index", folder, "-", stdin=lines(*records)).code == 0
    return folder


@pytest.fixture
def index(likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path) -> Path:
    """An index of three records: bread and cake, which share words, and moon."""
    records = lines(
        {"id": "bread", "text": "bread bread oven bread", "year": 2020},
        {"id": "cake", "text": "cake flour oven bread", "year": 2021},
        {"id": "moon", "text": "moon tide star", "year": 2021},
    )
    assert likewise("index", tmp_path / "x.index", "-", stdin=records).code == 0
    return tmp_path / "x.index"
