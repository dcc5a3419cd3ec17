"""Stores by their address: opened, created, recognized. The only file outside of the engines that names an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from indexer.settings import Settings
from indexer.stores.port import Store

_CATALOG, _LOCK = "catalog.db", "LOCK"
_SCHEMES = ("postgresql://", "postgres://")


def is_uri(address: str | PathLike[str]) -> bool:
    """Return whether an address is the URI of an index in a database, and not a path."""
    return isinstance(address, str) and address.startswith(_SCHEMES)


def open_store(address: str | PathLike[str]) -> Store:
    """Open the store at an address: the path of a folder, or the URI of an index in a database.

    Raises:
        NotAnIndex: there is no store.
    """
    if is_uri(address):
        from indexer.stores.postgres.store import PostgresStore

        return PostgresStore.open(str(address))
    from indexer.stores.local.store import LocalStore

    return LocalStore(Path(address))


def create_store(address: str | PathLike[str], settings: Settings) -> Store:
    """Make an empty store at an address. It appears complete or not at all.

    Raises:
        BadInput: something exists there already, or there is no stemmer for the language.
        StorageError: the disk or the database refuses.
    """
    if is_uri(address):
        from indexer.stores.postgres.store import PostgresStore

        return PostgresStore.create(str(address), settings)
    from indexer.stores.local.store import LocalStore

    return LocalStore.create(Path(address), settings)


@contextmanager
def draft_store(address: str | PathLike[str], settings: Settings) -> Iterator[Store]:
    """Make an empty store that appears at its address, complete, when the block ends well.

    Raises:
        BadInput: something exists there already, or there is no stemmer for the language.
        StorageError: the disk or the database refuses.
    """
    if is_uri(address):
        from indexer.stores.postgres.store import PostgresStore

        with PostgresStore.draft(str(address), settings) as draft:
            yield draft
        return
    from indexer.stores.local.store import LocalStore

    with LocalStore.draft(Path(address), settings) as folder:
        yield folder


def is_store(address: str | PathLike[str]) -> bool:
    """Return whether there is a store at an address. It may be damaged.

    Raises:
        StorageError: this user may not look into the folder, or the database cannot be asked.
    """
    if is_uri(address):
        from indexer.stores.postgres.store import PostgresStore

        return PostgresStore.exists(str(address))
    from indexer.stores.local.store import LocalStore

    return LocalStore.exists(Path(address))


def holds_store(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names is a store, whose files are not documents."""
    return _CATALOG in names and _LOCK in names
