"""Newer first, families and examples: Query, Searcher, the shell, HTTP, MCP and Client give the same hits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client as McpClient
from starlette.testclient import TestClient

from indexer import Document, Index
from likewise.client.client import Client
from likewise.service import create_app
from likewise.service.mcp import make_mcp_server
from likewise.service.served import ServedIndexes
from search import Hits, Query, Searcher

DAYS = {"old": "2010-05-01", "late": "2026-01-01", "mid": "2025-06-01", "none": None, "copy": "2025-05-31"}
TEXTS = {"old": "the moon and the sea", "late": "a cat", "mid": "the moon", "none": "bread", "copy": "The moon!"}
OPTIONS: list[dict[str, Any]] = [
    {"newer": "90d:sent"},
    {"newer": "1y:sent", "mode": "hybrid", "fold": True},
    {"like": ["late"]},
    {"like": ["late"], "unlike": ["none"]},
]


@pytest.fixture
def folder(tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("indexer.filters.dates.now", lambda: datetime(2026, 3, 1, tzinfo=UTC))
    path = tmp_path / "papers.index"
    with Index.create(path, encoder) as index:
        index.add([Document(uri, text, metadata={"sent": DAYS[uri]}) for uri, text in TEXTS.items()])
    return path


def pairs(hits: Any) -> list[tuple[str, Any]]:
    return [(hit["uri"], pytest.approx(hit["score"], abs=1e-4)) for hit in hits]


def flags_of(name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [part for each in values for part in (f"--{name}", each) if part is not True]


@pytest.mark.parametrize(
    ("question", "options"), [*(("the moon", options) for options in OPTIONS), ("", {"like": ["late"]})]
)
def test_every_door_gives_the_same_hits(
    folder: Path, likewise: Callable[..., Any], question: str, options: dict[str, Any]
) -> None:
    options = {"mode": "dense"} | options
    with Searcher(folder) as searcher:
        hits = searcher.answer(Query(question, **options))
        assert searcher.search(question, **options) == hits
        assert hits != searcher.search("the moon", mode=options["mode"])
    expected = pairs(hits.as_json()["hits"])
    assert [hit.family for hit in hits] == [("copy",) if hit.uri == "mid" and "fold" in options else () for hit in hits]
    if "unlike" not in options:  # the shell has no option for it
        flags = [part for name, value in options.items() for part in flags_of(name, value)]
        assert pairs(likewise("search", folder, question, *flags, "--json").json["hits"]) == expected
        explained = likewise("search", folder, question, *flags, "--explain").out
        assert ("    newer     weight 0." in explained) == ("newer" in options)
    with TestClient(create_app({"papers": str(folder)}), base_url="http://127.0.0.1") as http:
        asked = http.post("/v1/indexes/papers/search", json={"query": question, **options})
        assert pairs(asked.json()["hits"]) == expected
        client = Client("http://127.0.0.1")
        client._http = http  # type: ignore[assignment]  # over the application, without a port
        answered: Hits = client.search(question, **options)
        assert (pairs(answered.as_json()["hits"]), answered.notes) == (expected, hits.notes)

    async def ask() -> list[Any]:
        async with McpClient(make_mcp_server(ServedIndexes({"papers": str(folder)}))) as agent:
            answered = await agent.call_tool("search", {"query": question, **options})
        assert answered.structured_content is not None
        return list(answered.structured_content["hits"])

    assert pairs(anyio.run(ask)) == expected
