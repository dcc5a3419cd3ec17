"""Stores by their address: opened, created, recognized. The only file outside of the engines that names an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

from indexer.errors import BadInput
from indexer.settings import Settings
from indexer.stores.port import Store

_CATALOG, _LOCK = "catalog.db", "LOCK"
_SCHEMES = ("postgresql://", "postgres://")


def is_uri(address: str | PathLike[str]) -> bool:
    """Return whether an address is the URI of an index in a database, and not a path."""
    return isinstance(address, str) and address.startswith(_SCHEMES)


def open_store(address: str | PathLike[str], *, partial: bool = False) -> Store:
    """Open the store at an address: the path of a folder, or the URI of an index in a database.

    Args:
        partial: leave out shards that cannot be reached; the notes of each question name them.

    Raises:
        NotAnIndex: there is no store.
    """
    if is_uri(address):
        from indexer.stores.postgres.store import PostgresStore

        return PostgresStore.open(str(address), partial=partial)
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
def distributed_store(address: str, shards: Sequence[str]) -> Iterator[tuple[Store, Store, Callable[[], object]]]:
    """Make an empty index over several servers, or open what an earlier attempt left of it.

    Yields:
        The index at the address; the one to fill, which takes its place if the block ends well; and a function that
        keeps everybody else from writing to the first until then.

    Raises:
        BadInput: the address is a folder's, or a server is named twice.
        NotAnIndex: there is no index at the address.
        StorageError: a server cannot be reached, or refuses.
    """
    if not is_uri(address):
        raise BadInput(f"{address}: is a folder, and only an index in PostgreSQL is on several servers: copy it there")
    from indexer.stores.postgres.store import PostgresStore

    with closing(PostgresStore.open(address)) as source, source.distributed(shards) as move:
        yield source, move.target, move.lock


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
