"""The engine of an address, and the index that is there. The engine of a database is found by its scheme."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import closing
from os import PathLike
from pathlib import Path

from indexer import doors
from indexer.errors import BadInput, NotAnIndex
from indexer.settings import Settings
from indexer.stores.addresses.life_cycle import create
from indexer.stores.reading.store import Engine, Store

_CATALOG, _LOCK = "catalog.db", "LOCK"

EngineOpener = Callable[[str, int | None], Engine]
"""What the part or the plugin of a scheme gives: address and number of shards in, engine out. The number is None if
nobody has asked for one. The engine's own `address` must not hold a password.
"""

_MISWRITTEN = re.compile(r"\s*postgres(?:ql)?(?:\+\w+)?:/", re.IGNORECASE)
"""The beginning of a text that is meant as the URI of a database. A URI of SQLAlchemy names a driver too."""

_KEYWORDS = re.compile(r"(?:^|\s)(?:host|dbname|user|password|service)\s*=\s*\S")
"""Keywords of a libpq connection string, which no path has."""

_PASSWORD = re.compile(
    r"(\bpostgres(?:ql)?(?:\+\w+)?://[^\s:@/?]*):(?:[^\s/?]*|(?!\d*(?:[/?,\s]|$))\S*)@", re.IGNORECASE
)
"""A password in the URI of a database. A password with an @ or a slash is not valid in a URI, but it is found too."""

_SCHEME = re.compile(r"(?!https?:)([a-z][a-z0-9+.-]*)://")
"""The scheme of an address. A question may hold the address of a page, which is no index."""

_FIRST_PARAMETERS = re.compile(r"(?<=[?&])(?:(?:ssl)?password=[^&\s]*&)+")
_LAST_PARAMETERS = re.compile(r"[?&](?:ssl)?password=[^&\s]*")


def is_uri(address: str | PathLike[str]) -> bool:
    """Return whether an address is the URI of an index in a database, and not a path.

    Raises:
        BadInput: it was meant as such a URI, and would be a path that holds a password.
    """
    if not isinstance(address, str):
        return False
    scheme = _SCHEME.match(address)
    if scheme is not None and doors.is_given("engines", scheme[1]):
        return True
    if _MISWRITTEN.match(address) or len(_KEYWORDS.findall(address)) > 1:
        raise BadInput(
            "the address of a database begins with postgresql:// in small letters, without a driver or a space, and "
            "has no keywords such as host=: write postgresql://USER@HOST/DATABASE?index=NAME"
        )
    return False


def without_passwords(text: str) -> str:
    """Return an address or a message without the passwords of the URIs in it."""
    if "://" not in text:
        return text
    text = _FIRST_PARAMETERS.sub("", _PASSWORD.sub(r"\1@", text))
    return _LAST_PARAMETERS.sub("", text)


def engine_of(address: str | PathLike[str], shards: int | None = None) -> Engine:
    """Return the engine of an address: the path of a folder, or the URI of an index in a database.

    Args:
        shards: number of shards of an index that is made in a database with Citus; 0 makes plain tables. None: as the
            index that it replaces, or one for each node.

    Raises:
        BadInput: the engine, or a package that it needs, is not installed, or a folder shall have shards.
    """
    if not is_uri(address):
        if shards is not None:
            raise BadInput(f"{address}: is a folder, and only an index in a database has shards")
        from indexer.stores.local.engine import LocalEngine

        return LocalEngine(Path(address))
    text = str(address)
    opener: EngineOpener = doors.require("engines", text.partition("://")[0], "an index in a database")
    return opener(text, shards)


def open_store(address: str | PathLike[str], shards: int | None = None) -> Store:
    """Open the index at an address.

    Args:
        shards: number of shards of an index that replaces it; see `engine_of`.

    Raises:
        NotAnIndex: there is no index; it is raised when the index is read, but at once for the address of a service.
    """
    if str(address).startswith(("http://", "https://")):
        raise NotAnIndex("an index is a folder or a postgresql:// address: likewise.client.Client asks a service")
    return engine_of(address, shards).open()


def require_shards(store: Store, shards: int | None) -> None:
    """Raise BadInput if an index does not have the number of shards that somebody asks for."""
    if shards is None:
        return
    with store.snapshot() as snapshot:
        stored = snapshot.info().details.get("shard_count", 0)
    if stored != shards:
        raise BadInput(f"{store.address}: has {stored} shards and not {shards}: only a copy can have another number")


def create_store(address: str | PathLike[str], settings: Settings, shards: int | None = None) -> Store:
    """Make an empty index at an address. Errors are those of `life_cycle.create` and `engine_of`."""
    engine = engine_of(address, shards)
    try:
        return create(engine, settings)
    except BaseException:
        engine.close()
        raise


def is_store(address: str | PathLike[str]) -> bool:
    """Return whether there is an index at an address. It may be damaged.

    Raises:
        StorageError: this user may not look into the folder, or the database cannot be asked.
    """
    engine = engine_of(address)
    with closing(engine):
        return engine.exists()


def holds_store(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names is a store, whose files are not documents."""
    return _CATALOG in names and _LOCK in names
