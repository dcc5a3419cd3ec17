"""Single calls to the store of an index: each on a snapshot, or with a writer, of its own."""

from __future__ import annotations

from typing import Any

from indexer.stores.reading.store import Store


def store_of(of: Any) -> Store:
    """Return the store behind an Index, a Searcher or an IndexCore."""
    inside = getattr(of, "_core", None) or getattr(of, "answering", None) or of
    store: Store = getattr(inside, "store", inside)
    return store


class _Calls:
    def __init__(self, of: Any, way: str) -> None:
        self._store = store_of(of)
        self._way = way

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            with getattr(self._store, self._way)() as opened:
                return getattr(opened, name)(*arguments, **named)

        return call


def snapshot_of(of: Any) -> Any:
    """`snapshot_of(index).words("pear", 5)` asks a new snapshot of an Index, a Searcher or a Store."""
    return _Calls(of, "snapshot")


def writer_of(of: Any) -> Any:
    """`writer_of(index).settle()` changes an Index or a Store under the writer lock."""
    return _Calls(of, "writer")
