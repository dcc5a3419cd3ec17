"""The door of this part: what the engine asks about the map of an index."""

from __future__ import annotations

from shlex import quote

from indexer.errors import Message
from indexer.listener import Listener
from indexer.stores.reading.store import Store
from likewise.map.file import damage_of_map, read_map

__all__ = ["problems", "read_map", "redraw_if_outdated"]


def problems(store: Store) -> list[Message]:
    """Return the damage of the map's file; nothing if the file is sound, or if there is no map."""
    with store.snapshot() as snapshot:
        problem = damage_of_map(store.derived(), snapshot.settings.map)
    return [Message(problem, f": likewise map {quote(store.address)} draws it again")] if problem else []


def redraw_if_outdated(store: Store, listener: Listener) -> list[str]:
    """Do what `draw.redraw_if_outdated` does, which loads more than a check needs."""
    from likewise.map import draw

    return draw.redraw_if_outdated(store, listener)
