"""What was begun and never finished: parts on shards that no index has, and copies that nobody goes on with.

The schema of a part is made on its shard in a transaction of that server, and stays there, empty, where the
coordinator's transaction fails afterwards. Its comment names the coordinator. Only that coordinator removes it, and
only if none of its indexes has it, nobody is making it, and no table in it has a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
from psycopg import pq, sql

from indexer.errors import IndexLocked, StorageError
from indexer.stores.postgres.address import Address, named, parse_address
from indexer.stores.postgres.connections import DeadlineConnection
from indexer.stores.postgres.schema import DRAFT_LOCK, KEPT_DRAFT_MARK, is_true, statement
from indexer.stores.postgres.shards import PARTITIONED, Shard, at_shard, coordinator_of, marked

UNFINISHED_COPY = "unfinished"
UNFINISHED_MOVE = "distributed"
"""What follows KEPT_DRAFT_MARK in the name of an index that `likewise copy`, or `likewise distribute`, fills."""

_NAMED_INDEXES = 10
"""How many indexes an error names at most."""

_PART = r"^likewise_[0-9a-f]{16}_part$"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An index that a broken-off command left under a hidden name.

    Attributes:
        index: the name that it was to have.
        kind: UNFINISHED_COPY or UNFINISHED_MOVE.
        bytes: its size on this server.
    """

    index: str
    kind: str
    bytes: int


def unfinished(connection: DeadlineConnection, index: str | None = None) -> list[Unfinished]:
    """Return what commands that were broken off have left in this database, for one name or for all, by name.

    What a command is filling at this moment is left out.
    """
    rows = connection.execute(
        "SELECT name FROM likewise.index WHERE strpos(name, %s) > 0 ORDER BY 1", (KEPT_DRAFT_MARK,)
    ).fetchall()
    found = []
    for (name,) in rows:
        meant, _, kind = name.partition(KEPT_DRAFT_MARK)
        if kind in (UNFINISHED_COPY, UNFINISHED_MOVE) and index in (None, meant) and not _is_held(connection, name):
            found.append(Unfinished(meant, kind, tables_size(connection, name)))
    return found


def index_names(connection: DeadlineConnection) -> list[str]:
    """Return the names of some indexes of this database that this role may know, without hidden ones, by name."""
    rows = connection.execute(
        "SELECT name FROM likewise.index WHERE name !~ '[[:cntrl:]]' ORDER BY 1 LIMIT %s", (_NAMED_INDEXES + 1,)
    ).fetchall()
    names = [name for (name,) in rows]
    return names if len(names) <= _NAMED_INDEXES else [*names[:_NAMED_INDEXES], "..."]


def tables_size(connection: DeadlineConnection, name: str) -> int:
    """Return the bytes of the tables of an index on this server; 0 where no row has this name."""
    row = connection.execute(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM likewise.index i"
        " JOIN pg_namespace n ON n.nspname = i.tables JOIN pg_class c ON c.relnamespace = n.oid"
        " WHERE i.name = %s AND c.relkind = 'r'",
        (name,),
    ).fetchone()
    return int(row[0]) if row else 0


def note_of(left: Unfinished, address: Address) -> str:
    """Return a sentence about a copy, or a move, that was broken off, with the commands that end it."""
    place = named(address, left.index)
    size = f"{left.bytes / 2**20:,.1f} MB"
    if left.kind == UNFINISHED_MOVE:
        return (
            f"an unfinished move of index {left.index!r} to shards takes {size} here: likewise distribute goes on with "
            f'it, likewise copy --drop "{place}" removes it'
        )
    return (
        f"an unfinished copy that is to be index {left.index!r} takes {size} in this database: the same likewise copy "
        f'goes on with it, likewise copy --drop "{place}" removes it'
    )


def _is_held(connection: DeadlineConnection, name: str) -> bool:
    return is_true(
        connection,
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND classid::bigint = %s AND objid::bigint = hashtext(%s)::bigint & 4294967295)",
        DRAFT_LOCK,
        name,
    )


def hold(connection: DeadlineConnection, address: Address, name: str) -> None:
    """Be the only one who fills, finishes or removes this unfinished index, as long as the connection lives.

    Raises:
        IndexLocked: another process is.
    """
    if not is_true(connection, "SELECT pg_try_advisory_lock(%s, hashtext(%s))", DRAFT_LOCK, name):
        raise IndexLocked(f"{address.shown}: another process is making it: wait until it has ended")


@contextmanager
def nothing_left_on(connection: DeadlineConnection, uris: Sequence[str]) -> Iterator[None]:
    """Remove what a block has made on the shards if it fails, where they and the coordinator still answer.

    The block is one transaction of the coordinator or several. What cannot be removed now is removed before the next
    index is put on these shards, or by `likewise check --repair`.
    """
    try:
        yield
    except BaseException:
        if uris and not connection.closed:
            with suppress(psycopg.Error, StorageError):
                if connection.info.transaction_status != pq.TransactionStatus.IDLE:
                    connection.rollback()
                remove_empty_parts(connection, [Shard(number, parse_address(uri)) for number, uri in enumerate(uris)])
        raise


def remove_empty_parts(connection: DeadlineConnection, shards: Iterable[Shard]) -> int:
    """Drop the parts on shards that this coordinator made and no index of it has; return how many.

    A shard that does not answer is left out. Outside a transaction.
    """
    removed = 0
    for shard in shards:
        with suppress(StorageError), at_shard(shard) as remote:
            for part in _parts_without_index(connection, remote):
                removed += _remove(connection, remote, part)
    return removed


def empty_parts(connection: DeadlineConnection, shards: Iterable[Shard]) -> Iterator[tuple[Shard, str]]:
    """Yield what `remove_empty_parts` would drop: the shard and the name of the schema. It changes nothing."""
    for shard in shards:
        with suppress(StorageError), at_shard(shard) as remote:
            for part in _parts_without_index(connection, remote):
                if _is_empty(remote, part):
                    yield shard, part


def _parts_without_index(connection: DeadlineConnection, remote: DeadlineConnection) -> list[str]:
    coordinator = coordinator_of(connection)
    if coordinator is None:
        return []
    rows = remote.execute(
        "SELECT nspname FROM pg_namespace WHERE nspname ~ %s AND obj_description(oid, 'pg_namespace') = %s ORDER BY 1",
        (_PART, marked(coordinator)),
    ).fetchall()
    return [part for (part,) in rows if not _has_index(connection, part)]


def _has_index(connection: DeadlineConnection, part: str) -> bool:
    """Return whether the coordinator has tables of this part. In its catalog, which no policy hides."""
    return is_true(
        connection, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", part.removesuffix("_part")
    )


def _is_empty(remote: DeadlineConnection, part: str) -> bool:
    rows = (f"EXISTS (SELECT FROM {{tables}}.{table})" for table in PARTITIONED)
    return remote.execute(statement(f"SELECT {' OR '.join(rows)}", part)).fetchone() == (False,)


def _remove(connection: DeadlineConnection, remote: DeadlineConnection, part: str) -> bool:
    # Who makes a part holds this lock until the coordinator's tables are visible.
    key = DRAFT_LOCK, part.removesuffix("_part")
    if not is_true(connection, "SELECT pg_try_advisory_lock(%s, hashtext(%s))", *key):
        return False
    try:
        with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable), remote.transaction():
            remote.execute("SET LOCAL lock_timeout = '50ms'")
            names = sql.SQL(", ").join(sql.Identifier(part, table) for table in PARTITIONED)
            remote.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))
            if not _has_index(connection, part) and _is_empty(remote, part):
                remote.execute(statement("DROP SCHEMA {tables} CASCADE", part))
                return True
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", key)
    return False
