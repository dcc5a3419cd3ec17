"""likewise similar: the other documents, nearest first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_the_nearest_document_comes_first_and_the_document_itself_is_left_out(
    likewise: Callable[..., Any], topics: Path
) -> None:
    hits = likewise("similar", topics, "moon", "--json").json["hits"]
    assert [hit["uri"] for hit in hits] == ["river", "bread"]  # "water" and "sea" are in both texts
    assert hits[0]["score"] > hits[1]["score"]
    assert [hit["uri"] for hit in likewise("similar", topics, "moon", "-k", 1, "--json").json["hits"]] == ["river"]
    filtered = likewise("similar", topics, "moon", "--where", "year < 2022", "--json").json
    assert (filtered["matched"], [hit["uri"] for hit in filtered["hits"]]) == (1, ["bread"])


def test_an_unknown_document_is_wrong_usage(likewise: Callable[..., Any], topics: Path) -> None:
    likewise("similar", topics, "mooon").failed(2, "mooon")
