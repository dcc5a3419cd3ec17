"""Stores by their address: opened, created, recognized. The only file outside of the engines that names an engine."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike
from pathlib import Path

from indexer.settings import Settings
from indexer.stores.port import Store

_CATALOG, _LOCK = "catalog.db", "LOCK"


def open_store(address: str | PathLike[str]) -> Store:
    """Open the store at an address: the path of a folder.

    Raises:
        NotAnIndex: there is no store.
    """
    from indexer.stores.local.store import LocalStore

    return LocalStore(Path(address))


def create_store(address: str | PathLike[str], settings: Settings) -> Store:
    """Make an empty store at an address. It appears complete or not at all.

    Raises:
        BadInput: something exists there already, or there is no stemmer for the language.
        StorageError: the disk refuses.
    """
    from indexer.stores.local.store import LocalStore

    return LocalStore.create(Path(address), settings)


def is_store(address: str | PathLike[str]) -> bool:
    """Return whether there is a store at an address. It may be damaged.

    Raises:
        StorageError: this user may not look into the folder.
    """
    from indexer.stores.local.store import LocalStore

    return LocalStore.exists(Path(address))


def holds_store(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names is a store, whose files are not documents."""
    return _CATALOG in names and _LOCK in names
