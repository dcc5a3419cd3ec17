"""The door of this part: the engine of an address that begins with postgresql:// or postgres://."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.errors import BadInput, to_install

if TYPE_CHECKING:
    from likewise.postgres.engine import PostgresEngine

_DRIVERS = ("psycopg", "pgvector")


def open_engine(address: str, shards: int | None) -> PostgresEngine:
    """Return the engine of the URI of an index.

    Args:
        shards: as in `PostgresEngine`.

    Raises:
        BadInput: a driver of the database is not installed, or the URI cannot be read.
    """
    try:
        from likewise.postgres.engine import PostgresEngine
    except ImportError as error:
        if error.name is None:  # psycopg is there, and the library of the server's clients is not
            missing = f"{_DRIVERS[0]}: {error}".splitlines()[0]
        elif error.name.partition(".")[0] in _DRIVERS:
            missing = f"{error.name}, which is not installed"
        else:
            raise
        raise BadInput(f"an index in a database needs {missing}: {to_install('postgres')}") from error
    return PostgresEngine.at(address, shards)
