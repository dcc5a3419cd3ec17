"""Drawing the map of an index."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexer.errors import BadInput, count_of, to_install
from indexer.listener import SILENT, Listener
from indexer.records import Document, Vector
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import stored_analysis
from likewise.map.file import Map, outdated, read_map, write_map
from likewise.map.phrases import CHARACTERS
from likewise.map.projection import MIN_DOCUMENTS, project, require_umap
from likewise.map.regions import find_regions


def draw_map(store: Store, listener: Listener = SILENT) -> Map:
    """Compute places and regions, and store them beside the index.

    Args:
        listener: receives the steps.

    Raises:
        ModuleNotFoundError: the extra `map` is not installed.
        BadInput: there are fewer than three documents.
        StorageError: the disk refuses.
    """
    with store.snapshot() as snapshot:
        _require_enough(store.address, snapshot.documents)
    require_umap()
    listener.step("reading the vectors")
    documents, vectors = document_vectors(store)
    _require_enough(store.address, len(documents))
    listener.step(f"placing {len(documents):,} documents, after finding their neighbours")
    places = project(vectors, listener)
    listener.step("naming the regions")
    with store.snapshot() as snapshot:
        analysis = stored_analysis(snapshot.settings.language)
    uris = tuple(document.uri for document in documents)
    drawn = Map(uris, places, tuple(find_regions(places, documents, vectors, analysis)))
    record = write_map(store.derived(), drawn)
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, map=record))
    return drawn


def _require_enough(address: str, documents: int) -> None:
    if documents < MIN_DOCUMENTS:
        held = count_of(documents, "document")
        raise BadInput(f"{address}: a map needs {MIN_DOCUMENTS} documents with vectors, and it has {held}: index more")


def redraw_if_outdated(store: Store, listener: Listener = SILENT) -> list[str]:
    """Draw an existing map again if a quarter of the documents has come or gone since, or if its names are of another
    version, and return notes."""
    with store.snapshot() as snapshot:
        record = snapshot.settings.map
    if record is None or (drawn := read_map(store.derived(), record)) is None:
        return []
    with store.snapshot() as snapshot:
        uris = list(snapshot.hashes())
    if not outdated(record, uris, drawn):
        return []
    try:
        draw_map(store, listener)
    except ModuleNotFoundError as error:
        return [f"the map is out of date, and drawing it again needs {error.name}: {to_install('map')}"]
    return []


def document_vectors(store: Store) -> tuple[list[Document], Vector]:
    """Return each document that has vectors, with the beginning of its text, and its mean vector."""
    documents: list[Document] = []
    rows: list[Vector] = []
    for item in store.export():
        if item.vectors is None or not len(item.vectors):
            continue
        mean = item.vectors.mean(axis=0, dtype=np.float32)
        length = float(np.linalg.norm(mean))
        if not length:
            continue
        documents.append(replace(item.document, text=item.document.text[:CHARACTERS], sections=()))
        rows.append(mean / length)
    return documents, np.array(rows, np.float32).reshape(len(rows), -1)
