"""Searching without a folder: most tests here use the reference store, because they do not depend on an engine."""

from __future__ import annotations

import pytest
from contracts.reference import ReferenceStore


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make indexes and searchers use reference stores; a path is only a name."""
    for module in ("indexer.core", "search.searcher"):
        monkeypatch.setattr(f"{module}.open_store", lambda address: ReferenceStore.open(str(address)))
    monkeypatch.setattr(
        "indexer.index.create_store", lambda address, settings: ReferenceStore.create(str(address), settings)
    )
