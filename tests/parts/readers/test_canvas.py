"""Canvases of Obsidian."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from indexer.ledger import Code
from indexer.sources import Entry

Collect = Callable[..., list[Entry]]


def test_the_texts_of_cards_and_labels_are_read_from_top_to_bottom(tmp_path: Path, collect: Collect) -> None:
    nodes = [
        {"id": "2", "type": "text", "x": 0, "y": 300, "text": "The **swarm** left."},
        {"id": "1", "type": "text", "x": 0, "y": -10, "text": "# Bees\n\nThey hum."},
        {"id": "3", "type": "group", "x": 0, "y": 400, "label": "Hives"},
        {"id": "4", "type": "file", "x": 5, "y": 400, "file": "notes/wax.md", "subpath": "#Candles"},
        {"id": "5", "type": "link", "x": 9, "y": 400, "url": "https://example.org/honey"},
    ]
    path = tmp_path / "plan.canvas"
    path.write_text(json.dumps({"nodes": nodes, "edges": [{"id": "e", "fromNode": "1", "label": "leads to"}]}))
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.format, entry.document.title) == ("canvas", "Bees")
    assert entry.document.text == (
        "# Bees\n\nThey hum.\n\nThe **swarm** left.\n\nHives\n\nnotes/wax.md\n\nhttps://example.org/honey\n\nleads to"
    )


def test_an_empty_canvas_is_skipped_and_a_broken_one_fails(tmp_path: Path, collect: Collect) -> None:
    (tmp_path / "a.canvas").write_text("{}")
    (tmp_path / "b.canvas").write_text('{"nodes": [')
    first, second = collect(tmp_path)
    assert (first.state, first.reason) == ("skipped", Code.NO_TEXT())
    assert (second.state, second.reason.code) == ("failed", Code.READER_FAILED)
    (tmp_path / "c.canvas").write_text('{"nodes": [{"y": "low"}, {"y": 1}]}')
    (entry,) = collect(tmp_path / "c.canvas")
    assert entry.reason.text() == "damaged, or no canvas file (its nodes or edges are not as the format asks)"
