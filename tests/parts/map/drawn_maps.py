"""Maps that were not computed, for tests of the map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from indexer.stores.addresses.open import open_store
from likewise.map.file import Map, write_map


def keep(folder: Path, drawn: Map) -> None:
    """Store a map beside an index."""
    store = open_store(folder)
    record = write_map(store.derived(), drawn)
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, map=record))
    store.close()
