"""likewise list: uris and titles, filtered, and as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_documents_are_listed_in_the_order_they_were_added(likewise: Callable[..., Any], topics: Path) -> None:
    assert likewise("list", topics).out == "bread\tBread\nmoon\tMoon\nriver\tRiver\n"
    assert likewise("list", topics, "--where", "year >= 2022").out == "moon\tMoon\nriver\tRiver\n"
    assert likewise("list", topics, "--where", "year > 2024").out == ""


def test_json_has_an_object_for_each_document(likewise: Callable[..., Any], topics: Path) -> None:
    rows = [json.loads(line) for line in likewise("list", topics, "--json").out.splitlines()]
    assert [row["uri"] for row in rows] == ["bread", "moon", "river"]
    assert (rows[0]["title"], rows[0]["metadata"], rows[0]["text"]) == ("Bread", {"year": 2020}, None)
    assert rows[0]["characters"] == len("Knead the dough and bake the bread.")


def test_a_field_that_the_index_does_not_have_is_named(likewise: Callable[..., Any], topics: Path) -> None:
    said = likewise("list", topics, "--where", "yaer = 2020")
    said.failed(2, '"yaer"')
    assert "year" in said.err.replace("yaer", "")
