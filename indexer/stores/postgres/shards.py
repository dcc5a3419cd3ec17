"""An index whose documents are on several servers: hash partitions by document, over postgres_fdw.

The server of the address, the coordinator, keeps the registry, settings, ledger and the names of fields; each shard
keeps whole documents with their passages and fields, in a schema of the same name, with a graph of its own. A document
is written to one shard in one transaction there, so that it is never half visible; there is no commit of several
servers at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from indexer.errors import BadInput, StorageError
from indexer.stores.postgres.address import Address, parse_address
from indexer.stores.postgres.connections import DeadlineConnection, connect, one_line
from indexer.stores.postgres.schema import (
    DRAFT_LOCK,
    MAY_IDENTIFY,
    create_document_tables,
    is_true,
    prepare_database,
    run_script,
    statement,
    width,
)

_PARTITIONED = """
CREATE TABLE {tables}.document (
    id bigint NOT NULL, key bytea NOT NULL, uri text COLLATE "C" NOT NULL, title text COLLATE "C" NOT NULL,
    path text COLLATE "C", format text COLLATE "C", modified text COLLATE "C", metadata text NOT NULL,
    content_hash bytea NOT NULL, row_hash bytea NOT NULL, tokens integer NOT NULL, passages integer NOT NULL,
    text text NOT NULL, raw bytea, sections text NOT NULL
) PARTITION BY HASH (id);
CREATE TABLE {tables}.passage (
    id bigint NOT NULL, document_id bigint NOT NULL, start integer NOT NULL, stop integer NOT NULL, line integer,
    heading text NOT NULL, page integer, checksum bytea NOT NULL, vector halfvec{dimensions} NOT NULL
) PARTITION BY HASH (document_id);
CREATE TABLE {tables}.field_value (
    field_id integer NOT NULL, document_id bigint NOT NULL, number numeric, text text COLLATE "C"
) PARTITION BY HASH (document_id);
"""

PARTITIONED = ("document", "passage", "field_value")

_WIDTH = """
CREATE VIEW {tables}.graph_width (width, was_set) AS
    SELECT width, set_config('hnsw.ef_search', width::text, true) FROM generate_series(1, 1000) AS width
"""
"""Sets how wide a graph is searched in the transaction under way: postgres_fdw passes on queries, and no settings."""

_CONNECT_SECONDS = 5

_OPTIONS = "-c hnsw.iterative_scan=strict_order -c hnsw.max_scan_tuples=200000 -c statement_timeout=60s"
"""Settings of a session do not reach a shard: the coordinator's connections to it have their own."""

_REMEMBERED_SECONDS = 5.0
"""How long a shard is taken to be reachable, or not, before it is tried again."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A server that holds a part of an index: the number of its partition from 0, and its address."""

    number: int
    address: Address

    @property
    def shown(self) -> str:
        """The server in a message, without the name of an index."""
        return self.address.shown.partition("?index=")[0].partition("&index=")[0]


def part_of(tables: str) -> str:
    """Return the name of the schema on a shard: another one, because the coordinator may be a shard too."""
    return f"{tables}_part"


def create_partitions(connection: DeadlineConnection, tables: str, dimensions: int, uris: Sequence[str]) -> None:
    """Make the tables of documents on the shards, and partitions that lead to them, in the caller's transaction.

    What is made on a shard is committed there at once, and is left there, empty, if this transaction is not:
    leftovers.py removes it.

    Raises:
        BadInput: a server is named twice.
        StorageError: a shard cannot be reached, or refuses.
    """
    shards = [Shard(number, parse_address(uri)) for number, uri in enumerate(uris)]
    if len({shard.address.conninfo for shard in shards}) < len(shards):
        raise BadInput("a shard is named twice: each server holds one part of an index")
    connection.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw")
    connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (DRAFT_LOCK, tables))
    coordinator = coordinator_of(connection)
    mark = sql.Literal(None if coordinator is None else marked(coordinator))
    run_script(connection, _PARTITIONED, tables, dimensions=width(dimensions))
    for shard in shards:
        with at_shard(shard) as remote:
            prepare_database(remote)
            with remote.transaction():
                remote.execute(statement("CREATE SCHEMA {tables}", part_of(tables)))
                remote.execute(statement("COMMENT ON SCHEMA {tables} IS {mark}", part_of(tables), mark=mark))
                create_document_tables(remote, part_of(tables), dimensions)
                remote.execute(statement(_WIDTH, part_of(tables)))
        _link(connection, tables, shard, len(shards))


def coordinator_of(connection: DeadlineConnection) -> str | None:
    """Return what tells a coordinator from every other, also from itself after it was set back to an earlier time.

    None where this role may not know it.
    """
    if not is_true(connection, f"SELECT {MAY_IDENTIFY}"):
        return None
    row = connection.execute(
        "SELECT s.system_identifier, d.oid, c.timeline_id FROM pg_control_system() s, pg_control_checkpoint() c,"
        " pg_database d WHERE d.datname = current_database()"
    ).fetchone()
    return "-".join(map(str, row or ()))


def marked(coordinator: str) -> str:
    """Return the comment of a part's schema."""
    return f"likewise: part of an index of the coordinator {coordinator}"


def _link(connection: DeadlineConnection, tables: str, shard: Shard, count: int) -> None:
    """Make the foreign server of a shard and the partitions that are on it."""
    values = psycopg.conninfo.conninfo_to_dict(shard.address.conninfo)
    server = _server(tables, shard.number)
    known = {
        "host": str(values.get("host") or "localhost"),
        "port": str(values.get("port") or 5432),
        "dbname": str(values.get("dbname") or values.get("user") or "postgres"),
        "connect_timeout": str(_CONNECT_SECONDS),
        "extensions": "vector",
        "async_capable": "true",
        "fetch_size": "2000",
        "batch_size": "1000",
        "options": _OPTIONS,
    }
    login = {name: str(values[name]) for name in ("user", "password") if values.get(name)}
    connection.execute(
        sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})").format(server, _options(known))
    )
    connection.execute(
        sql.SQL("CREATE USER MAPPING FOR CURRENT_USER SERVER {}{}").format(
            server, sql.SQL(" OPTIONS ({})").format(_options(login)) if login else sql.SQL("")
        )
    )
    connection.execute(
        sql.SQL("CREATE FOREIGN TABLE {}.{} (width integer, was_set text) SERVER {} OPTIONS ({})").format(
            *(sql.Identifier(tables), sql.Identifier(f"graph_width_{shard.number}"), server),
            _options({"schema_name": part_of(tables), "table_name": "graph_width"}),
        )
    )
    for table in PARTITIONED:
        connection.execute(
            sql.SQL(
                "CREATE FOREIGN TABLE {}.{} PARTITION OF {}.{} FOR VALUES WITH (MODULUS {}, REMAINDER {})"
                " SERVER {} OPTIONS ({})"
            ).format(
                *(sql.Identifier(tables), sql.Identifier(f"{table}_{shard.number}")),
                *(sql.Identifier(tables), sql.Identifier(table), sql.Literal(count), sql.Literal(shard.number)),
                *(server, _options({"schema_name": part_of(tables), "table_name": table})),
            )
        )
    connection.execute("INSERT INTO likewise.shard VALUES (%s, %s, %s)", (tables, shard.number, shard.shown))


def _options(values: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in values.items()
    )


def shards_of(connection: DeadlineConnection, tables: str) -> list[Shard]:
    """Return the shards of an index, by number; none of one that is on a single server."""
    rows = connection.execute("SELECT number, uri FROM likewise.shard WHERE tables = %s ORDER BY 1", (tables,))
    return [Shard(number, parse_address(uri)) for number, uri in rows.fetchall()]


@contextmanager
def at_shard(shard: Shard) -> Iterator[DeadlineConnection]:
    """Yield a connection of our own to a shard.

    Raises:
        StorageError: it cannot be reached, or refuses.
    """
    try:
        with closing(connect(shard.address, _CONNECT_SECONDS)) as remote:
            yield remote
    except psycopg.Error as error:
        raise StorageError(f"shard {shard.number} ({shard.shown}): {one_line(error, shard.address)}") from error


def drop_on_shards(connection: DeadlineConnection, tables: str) -> None:
    """Drop what shards hold of an index that is gone. One that cannot be reached keeps it until the next time.

    Raises:
        StorageError: a shard cannot be reached.
    """
    for shard in shards_of(connection, tables):
        with at_shard(shard) as remote:
            remote.execute("SET lock_timeout = '50ms'")  # who reads it goes on reading
            remote.execute(statement("DROP SCHEMA IF EXISTS {tables} CASCADE", part_of(tables)))
        connection.execute(sql.SQL("DROP SERVER IF EXISTS {} CASCADE").format(_server(tables, shard.number)))
        connection.execute("DELETE FROM likewise.shard WHERE tables = %s AND number = %s", (tables, shard.number))


def _server(tables: str, number: int) -> sql.Identifier:
    return sql.Identifier(f"{tables}_{number}")


class Reachable:
    """Which shards of an index can be reached, for searches that do without the others."""

    def __init__(self) -> None:
        self._until = 0.0
        self._tables, self._missing = "", tuple[Shard, ...]()

    def missing(self, connection: DeadlineConnection, tables: str) -> tuple[Shard, ...]:
        """Return the shards that cannot be reached, tried at most every few seconds."""
        if self._tables != tables or time.monotonic() >= self._until:
            self._missing = tuple(shard for shard in shards_of(connection, tables) if not _answers(shard))
            self._tables, self._until = tables, time.monotonic() + _REMEMBERED_SECONDS
        return self._missing

    def forget(self) -> None:
        self._until = 0.0


def _answers(shard: Shard) -> bool:
    try:
        with closing(connect(shard.address, _CONNECT_SECONDS)) as remote:
            remote.seconds = float(_CONNECT_SECONDS)
            remote.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True
