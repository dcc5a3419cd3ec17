"""Stores by their address: opened, created, recognized. The only file outside of the engines that names an engine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from indexer.errors import BadInput
from indexer.settings import Settings
from indexer.stores.port import Store

if TYPE_CHECKING:
    from indexer.stores.postgres.store import PostgresStore

_CATALOG, _LOCK = "catalog.db", "LOCK"
_SCHEMES = ("postgresql://", "postgres://")
_NAME = re.compile(r"[?&]index=([^&#]*)")
_DEFAULT_NAME = "default"

_MISWRITTEN = re.compile(r"\s*postgres(?:ql)?(?:\+\w+)?:/", re.IGNORECASE)
"""The beginning of what is meant as the URI of a database; SQLAlchemy's names a driver."""

_PASSWORD = re.compile(
    r"(\bpostgres(?:ql)?(?:\+\w+)?://[^\s:@/?]*):(?:[^\s/?]*|(?!\d*(?:[/?,\s]|$))\S*)@", re.IGNORECASE
)
"""A password in the URI of a database. One that holds an @ or a slash is wrong there, and found all the same."""

_FIRST_PARAMETERS = re.compile(r"(?<=[?&])(?:(?:ssl)?password=[^&\s]*&)+")
_LAST_PARAMETERS = re.compile(r"[?&](?:ssl)?password=[^&\s]*")

_DRIVERS = ("psycopg", "pgvector")


def is_uri(address: str | PathLike[str]) -> bool:
    """Return whether an address is the URI of an index in a database, and not a path.

    Raises:
        BadInput: it was meant as such a URI, and would be a path that holds a password.
    """
    if not isinstance(address, str) or address.startswith(_SCHEMES):
        return isinstance(address, str)
    if _MISWRITTEN.match(address):
        raise BadInput(
            "the address of a database begins with postgresql:// in small letters, without a driver or a space: write "
            "postgresql://USER@HOST/DATABASE?index=NAME"
        )
    return False


def name_in(uri: str) -> str:
    """Return the name of the index that the URI of a database gives."""
    names = _NAME.findall(uri)
    return unquote(names[-1]) if names else _DEFAULT_NAME


def without_passwords(text: str) -> str:
    """Return an address, or a message, with the URIs of databases in it as they are without their passwords."""
    if "://" not in text:
        return text
    text = _FIRST_PARAMETERS.sub("", _PASSWORD.sub(r"\1@", text))
    return _LAST_PARAMETERS.sub("", text)


def open_store(address: str | PathLike[str]) -> Store:
    """Open the store at an address: the path of a folder, or the URI of an index in a database.

    Raises:
        NotAnIndex: there is no store.
    """
    if is_uri(address):
        return _postgres().open(str(address))
    from indexer.stores.local.store import LocalStore

    return LocalStore(Path(address))


def create_store(address: str | PathLike[str], settings: Settings) -> Store:
    """Make an empty store at an address. It appears complete or not at all.

    Raises:
        BadInput: something exists there already, or there is no stemmer for the language.
        StorageError: the disk or the database refuses.
    """
    if is_uri(address):
        return _postgres().create(str(address), settings)
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
        with _postgres().draft(str(address), settings) as draft:
            yield draft
        return
    from indexer.stores.local.store import LocalStore

    with LocalStore.draft(Path(address), settings) as folder:
        yield folder


@contextmanager
def kept_draft(address: str | PathLike[str], settings: Settings) -> Iterator[Store]:
    """As `draft_store`, but what a block that failed has written is kept where nobody sees it, for the next one.

    It is thrown away if it was made with another model or other passages.

    Raises:
        BadInput: something exists at the address already, or there is no stemmer for the language.
        IndexLocked: another process is making it.
        StorageError: the disk or the database refuses.
    """
    if is_uri(address):
        with _postgres().kept_draft(str(address), settings) as draft:
            yield draft
        return
    from indexer.stores.local.store import LocalStore

    with LocalStore.kept_draft(Path(address), settings) as folder:
        yield folder


def drop_unfinished(address: str | PathLike[str]) -> int:
    """Remove what `kept_draft` keeps for an address; return its size in bytes.

    Raises:
        BadInput: there is no such thing.
        IndexLocked: another process is filling it.
        StorageError: the disk or the database refuses.
    """
    if is_uri(address):
        return _postgres().drop_unfinished(str(address))
    from indexer.stores.local.store import LocalStore

    return LocalStore.drop_unfinished(Path(address))


def is_store(address: str | PathLike[str]) -> bool:
    """Return whether there is a store at an address. It may be damaged.

    Raises:
        StorageError: this user may not look into the folder, or the database cannot be asked.
    """
    if is_uri(address):
        return _postgres().exists(str(address))
    from indexer.stores.local.store import LocalStore

    return LocalStore.exists(Path(address))


def _postgres() -> type[PostgresStore]:
    """Return the store of addresses that are URIs.

    Raises:
        BadInput: what it needs is not installed.
    """
    try:
        from indexer.stores.postgres.store import PostgresStore
    except ImportError as error:
        if error.name is None:  # psycopg is there, and the library of the server's clients is not
            missing = f"{_DRIVERS[0]}: {error}".splitlines()[0]
        elif error.name.partition(".")[0] in _DRIVERS:
            missing = f"{error.name}, which is not installed"
        else:
            raise
        raise BadInput(
            f"an index in a database needs {missing}: pip install 'likewise[postgres]', or in a clone "
            "pip install -e '.[postgres]'"
        ) from error
    return PostgresStore


def holds_store(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names is a store, whose files are not documents."""
    return _CATALOG in names and _LOCK in names
