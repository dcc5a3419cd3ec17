"""Copies that were begun and never finished: found, named with their size, and held while a process fills one."""

from __future__ import annotations

from dataclasses import dataclass

from indexer.errors import IndexLocked, Message
from likewise.postgres.address import Address, named
from likewise.postgres.citus import size_of
from likewise.postgres.connections import DeadlineConnection
from likewise.postgres.schema import DRAFT_LOCK, DRAFT_MARK, KEPT_DRAFT_MARK, is_true

_UNFINISHED = f"{KEPT_DRAFT_MARK}unfinished"
"""End of the name of an index that `likewise copy` fills."""

_NAMED_INDEXES = 10
"""Maximum indexes that an error names."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The index that an interrupted command left under a hidden name.

    Attributes:
        index: the name that the finished index would have had.
        bytes: its size.
        resumable: whether it is a copy, which the same command resumes; otherwise it is a draft.
    """

    index: str
    bytes: int
    resumable: bool


def unfinished_name(index: str) -> str:
    """Return the hidden name of an index while `likewise copy` fills it."""
    return f"{index}{_UNFINISHED}"


def unfinished(connection: DeadlineConnection, index: str | None = None) -> list[Unfinished]:
    """Return what interrupted commands have left in this database, for one index name or for all, sorted by name.

    What a command is filling at this moment is omitted.
    """
    rows = connection.execute(
        "SELECT name, tables FROM likewise.index WHERE right(name, %s) = %s OR name LIKE %s ORDER BY 1",
        (len(_UNFINISHED), _UNFINISHED, f"%{DRAFT_MARK}%"),
    ).fetchall()
    found = []
    for name, tables in rows:
        is_draft = DRAFT_MARK in name
        meant = name.partition(DRAFT_MARK)[0] if is_draft else name.removesuffix(_UNFINISHED)
        if index in (None, meant) and not _is_held(connection, tables if is_draft else name):
            found.append(Unfinished(meant, tables_size(connection, name), resumable=not is_draft))
    return found


def index_names(connection: DeadlineConnection) -> list[str]:
    """Return the sorted names of some indexes of this database that this role may know. Hidden names are omitted."""
    rows = connection.execute(
        "SELECT name FROM likewise.index WHERE name !~ '[[:cntrl:]]' ORDER BY 1 LIMIT %s", (_NAMED_INDEXES + 1,)
    ).fetchall()
    names = [name for (name,) in rows]
    return names if len(names) <= _NAMED_INDEXES else [*names[:_NAMED_INDEXES], "..."]


def tables_size(connection: DeadlineConnection, name: str) -> int:
    """Return the bytes of the tables of an index; 0 if no row has this name."""
    row = connection.execute("SELECT tables FROM likewise.index WHERE name = %s", (name,)).fetchone()
    return size_of(connection, row[0]) if row else 0


def note_of(left: Unfinished, address: Address) -> str:
    """Return a sentence about what an interrupted command left, with the commands that finish or remove it."""
    what = "an unfinished copy that is to be" if left.resumable else "what a killed command was making as"
    return Message(
        f"{what} index {left.index!r} takes {left.bytes / 2**20:,.1f} MB in this database",
        (": the same likewise copy resumes it, " if left.resumable else ": ")
        + f'likewise copy --drop "{named(address, left.index)}" removes it',
    )


def _is_held(connection: DeadlineConnection, key: str) -> bool:
    """Return whether a process holds the lock of a draft, whose key is its tables, or of an unfinished copy."""
    return is_true(
        connection,
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND classid::bigint = %s AND objid::bigint = hashtext(%s)::bigint & 4294967295)",
        DRAFT_LOCK,
        key,
    )


def hold(connection: DeadlineConnection, address: Address, name: str) -> None:
    """Hold the lock for filling, finishing or removing this unfinished index, as long as the connection lives.

    Raises:
        IndexLocked: another process holds the lock.
    """
    if not is_true(connection, "SELECT pg_try_advisory_lock(%s, hashtext(%s))", DRAFT_LOCK, name):
        raise IndexLocked(f"{address.shown}: another process is making it: wait until it has ended")
