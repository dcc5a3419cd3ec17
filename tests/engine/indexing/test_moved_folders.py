"""An index that moves with its files: readers find them where they are, and the next run writes it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from indexer import Index
from indexer.indexing.core import IndexCore
from indexer.indexing.ingest import Summary
from indexer.indexing.runs import index_sources
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
from search import Searcher

LINES = '{"text": "a record of stars"}\n{"id": "x7", "text": "a second record"}\n'
NAMES = ["bread.md", "records.jsonl:1"]


def run(folder: Path, encoder: Any) -> Summary:
    options = ReadOptions()
    with IndexCore.open(folder / "x.index", encoder) as core, core.writer() as writer:
        sources = open_sources([str(folder / "docs")], options, holds_store)
        return index_sources(core, writer, [(options, sources)]).summary


def uris(folder: Path, where: str | None = None) -> list[str]:
    with Searcher(folder / "x.index") as searcher:
        return sorted(document.uri for document in searcher.documents(where))


def test_a_moved_folder_is_followed_by_readers_and_by_the_next_run(tmp_path: Path, encoder: Any) -> None:
    old, new = tmp_path.resolve() / "old", tmp_path.resolve() / "new"
    (old / "docs").mkdir(parents=True)
    (old / "docs" / "bread.md").write_text("# Bread\n\nHow long dough rests.\n")
    (old / "docs" / "records.jsonl").write_text(LINES)
    Index.create(old / "x.index", encoder).close()
    assert (run(old, encoder).indexed, uris(old)) == (3, sorted(["x7", *(f"{old}/docs/{name}" for name in NAMES)]))
    old.rename(new)
    moved = sorted(["x7", *(f"{new}/docs/{name}" for name in NAMES)])
    assert uris(new) == moved
    assert uris(new, f'under "{new}/docs"') == moved
    assert uris(new, f'path = "{new}/docs/bread.md"') == [f"{new}/docs/bread.md"]
    with Searcher(new / "x.index", encoder) as searcher:
        assert [hit.uri for hit in searcher.search("dough rests", k=1, mode="words")] == [f"{new}/docs/bread.md"]
        assert searcher.get(f"{new}/docs/bread.md").path == f"{new}/docs/bread.md"
    summary = run(new, encoder)
    assert (summary.indexed, summary.unchanged, summary.updated) == (0, 3, 0)
    assert uris(new) == moved
    with Index.open(new / "x.index", encoder) as index:
        assert index.check().problems == ()
