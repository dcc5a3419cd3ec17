"""Copies that were begun and never finished: found, named with their size, and held while a process fills one."""

from __future__ import annotations

from dataclasses import dataclass

from indexer.errors import IndexLocked
from indexer.stores.postgres.address import Address, named
from indexer.stores.postgres.connections import DeadlineConnection
from indexer.stores.postgres.schema import DRAFT_LOCK, KEPT_DRAFT_MARK, is_true

_UNFINISHED = f"{KEPT_DRAFT_MARK}unfinished"
"""End of the name of an index that `likewise copy` fills."""

_NAMED_INDEXES = 10
"""How many indexes an error names at most."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a broken-off copy left under a hidden name.

    Attributes:
        index: the name that it was to have.
        bytes: its size.
    """

    index: str
    bytes: int


def unfinished_name(index: str) -> str:
    """Return the hidden name under which a copy that is to be this index is filled."""
    return f"{index}{_UNFINISHED}"


def unfinished(connection: DeadlineConnection, index: str | None = None) -> list[Unfinished]:
    """Return what copies that were broken off have left in this database, for one name or for all, by name.

    What a command is filling at this moment is left out.
    """
    rows = connection.execute(
        "SELECT name FROM likewise.index WHERE right(name, %s) = %s ORDER BY 1", (len(_UNFINISHED), _UNFINISHED)
    ).fetchall()
    found = []
    for (name,) in rows:
        meant = name.removesuffix(_UNFINISHED)
        if index in (None, meant) and not _is_held(connection, name):
            found.append(Unfinished(meant, tables_size(connection, name)))
    return found


def index_names(connection: DeadlineConnection) -> list[str]:
    """Return the names of some indexes of this database that this role may know, without hidden ones, by name."""
    rows = connection.execute(
        "SELECT name FROM likewise.index WHERE name !~ '[[:cntrl:]]' ORDER BY 1 LIMIT %s", (_NAMED_INDEXES + 1,)
    ).fetchall()
    names = [name for (name,) in rows]
    return names if len(names) <= _NAMED_INDEXES else [*names[:_NAMED_INDEXES], "..."]


def tables_size(connection: DeadlineConnection, name: str) -> int:
    """Return the bytes of the tables of an index; 0 where no row has this name."""
    row = connection.execute(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM likewise.index i"
        " JOIN pg_namespace n ON n.nspname = i.tables JOIN pg_class c ON c.relnamespace = n.oid"
        " WHERE i.name = %s AND c.relkind = 'r'",
        (name,),
    ).fetchone()
    return int(row[0]) if row else 0


def note_of(left: Unfinished, address: Address) -> str:
    """Return a sentence about a copy that was broken off, with the commands that end it."""
    return (
        f"an unfinished copy that is to be index {left.index!r} takes {left.bytes / 2**20:,.1f} MB in this database: "
        f'the same likewise copy goes on with it, likewise copy --drop "{named(address, left.index)}" removes it'
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
