"""Searching without a folder: most tests here use the reference store, because they do not depend on an engine."""

from __future__ import annotations

import pytest
from contracts.reference import ReferenceEngine


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make indexes and searchers use reference stores; a path is only a name."""
    monkeypatch.setattr("indexer.stores.addresses.open.engine_of", lambda address, *_: ReferenceEngine.at(str(address)))
