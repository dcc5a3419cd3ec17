"""likewise mcp: what it refuses to start with. tests/parts/service/test_mcp.py has the protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_without_an_index_it_says_what_to_name(likewise: Callable[..., Any], here: Path) -> None:
    said = likewise("mcp")
    assert (said.code, said.out) == (2, "")
    assert "name the INDEX to serve, or set LIKEWISE_INDEX" in said.err


def test_two_indexes_of_one_name_are_refused(likewise: Callable[..., Any], topics: Path) -> None:
    likewise("mcp", f"a={topics}", f"a={topics}").failed(2)
