"""Empty stores of every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engine.stores.suite.suite import ENGINES, SETTINGS, Engine

from indexer.settings import Settings
from indexer.stores.reading.store import Store


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


@pytest.fixture
def make(engine: Engine, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Makes empty stores."""
    stores: list[Store] = []

    def create(settings: Settings = SETTINGS) -> Store:
        stores.append(engine.create(str(tmp_path / f"{len(stores)}.index"), settings))
        return stores[-1]

    yield create
    for store in stores:
        store.close()


@pytest.fixture
def store(make: Callable[..., Store]) -> Store:
    return make()
