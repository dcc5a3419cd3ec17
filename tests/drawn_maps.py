"""Maps that were not computed, and indexes whose model has changed, for tests of the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from indexer import Document, Index
from indexer.encoders import Encoder
from indexer.map.file import Map, write_map
from indexer.stores.addresses.open import open_store


def keep(folder: Path, drawn: Map) -> None:
    """Store a map beside an index."""
    store = open_store(folder)
    record = write_map(store.derived(), drawn)
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, map=record))
    store.close()


def replace_vectors(folder: Path, encoder: Encoder, documents: Sequence[Document]) -> None:
    """Put an index of these documents in the place of an index, which is kept, as a change of the model does."""
    store = open_store(folder)
    with store.snapshot() as snapshot:
        store.engine.make("next", replace(snapshot.settings, map=None))
    with store.engine.exclusive():
        store.engine.publish("next")
    store.close()
    with Index.open(folder, encoder) as index:
        index.add(documents)
