"""likewise compact: one segment, and the space of what was removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_removed_vectors_leave_the_disk_and_answers_stay(likewise: Callable[..., Any], topics: Path) -> None:
    assert likewise("remove", topics, "bread").code == 0
    before = likewise("search", topics, "water", "--json").json["hits"]
    said = likewise("compact", topics, "--json").succeeded()
    assert set(said.json) == {"bytes_before", "bytes"}
    assert sum(segment["count"] for segment in likewise("info", topics, "--json").json["segments"]) == 2
    assert likewise("search", topics, "water", "--json").json["hits"] == before


def test_few_passages_stay_exact_and_the_user_is_told(likewise: Callable[..., Any], topics: Path) -> None:
    said = likewise("compact", topics, "--kind", "approximate").succeeded()
    assert "3 passages are too few for an approximate segment" in said.err
    assert [segment["kind"] for segment in likewise("info", topics, "--json").json["segments"]] == ["exact"]
