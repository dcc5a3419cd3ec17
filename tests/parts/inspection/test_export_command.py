"""likewise export: every document as a line that likewise index reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_an_export_makes_an_equal_index(likewise: Callable[..., Any], topics: Path, tmp_path: Path) -> None:
    exported = likewise("export", topics).succeeded()
    rows = [json.loads(line) for line in exported.out.splitlines()]
    assert len(rows) == 3
    again = tmp_path / "again.index"
    assert likewise("index", again, "-", stdin=exported.out).code == 0
    assert likewise("list", again, "--json").out == likewise("list", topics, "--json").out
    first, second = (likewise("search", folder, "water", "--json").json["hits"] for folder in (topics, again))
    assert [(hit["uri"], hit["score"]) for hit in first] == [(hit["uri"], hit["score"]) for hit in second]
