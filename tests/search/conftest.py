"""Searching without a folder: what most tests of this folder are about does not depend on how passages are kept."""

from __future__ import annotations

import pytest
from contracts.reference import ReferenceStore


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes and searchers make and open reference stores; the path is only their name."""
    for module in ("indexer.core", "search.searcher"):
        monkeypatch.setattr(f"{module}.open_store", lambda address: ReferenceStore.open(str(address)))
    monkeypatch.setattr(
        "indexer.index.create_store", lambda address, settings: ReferenceStore.create(str(address), settings)
    )
