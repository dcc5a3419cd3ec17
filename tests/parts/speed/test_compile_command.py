"""likewise compile: the encoder of an index as a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_an_index_of_own_vectors_has_nothing_to_compile(
    likewise: Callable[..., Any], lines: Callable[..., str], tmp_path: Path
) -> None:
    records = lines(
        {"id": "a", "text": "bread", "vector": [1.0, 0.0]}, {"id": "b", "text": "moon", "vector": [0.0, 1.0]}
    )
    folder = tmp_path / "own.index"
    assert likewise("index", folder, "-", "--dimensions", 2, stdin=records).code == 0
    likewise("compile", folder).failed(2, "no model")
