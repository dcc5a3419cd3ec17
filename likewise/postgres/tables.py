"""The tables of whole indexes: made, named in the registry, and dropped when no row names them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from psycopg import errors

from indexer.errors import BadInput, NotAnIndex
from indexer.stores.port import SIDE_SLOTS
from likewise.postgres import schema
from likewise.postgres.citus import distribute
from likewise.postgres.connections import DeadlineConnection


def create_tables(connection: DeadlineConnection, dimensions: int, settings: Mapping[str, str], shards: int) -> str:
    """Make the tables of an empty index, in the caller's transaction; return the name of their schema.

    Args:
        shards: number of shards of distributed tables; 0 for plain tables.
    """
    if dimensions > schema.MAX_DIMENSIONS:
        raise BadInput(f"vectors of {dimensions} dimensions are too wide for PostgreSQL: up to {schema.MAX_DIMENSIONS}")
    tables = _new_schema(connection)
    schema.create_schema(connection, tables, dimensions)
    if shards:
        distribute(connection, tables, shards)
    with connection.cursor() as cursor:
        cursor.executemany(
            schema.statement("INSERT INTO {tables}.setting VALUES (%s, %s)", tables),
            list((schema.MARK | dict(settings)).items()),
        )
    return tables


def register(connection: DeadlineConnection, name: str, tables: str) -> None:
    """Name the tables of an index, in the caller's transaction. Raises BadInput if the name is taken."""
    inserted = connection.execute(
        "INSERT INTO likewise.index (name, tables, format_version, history) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING RETURNING name",
        (name, tables, schema.FORMAT_VERSION, secrets.token_hex(8)),
    ).fetchone()
    if inserted is None:
        raise BadInput(f"index {name!r} exists in this database already")
    forget_side_indexes(connection, name)


def forget_side_indexes(connection: DeadlineConnection, name: str) -> None:
    """Forget the side indexes of a new index of this name, in the caller's transaction; `sweep` drops the tables.

    They belong to an earlier index, whose row was deleted by hand. Their documents are not documents of the new index.
    """
    names = [f"{name}{schema.SIDE_MARK}{slot}" for slot in SIDE_SLOTS]
    if schema.is_true(connection, "SELECT EXISTS (SELECT FROM likewise.index WHERE name = ANY(%s))", names):
        connection.execute("DELETE FROM likewise.index WHERE name = ANY(%s)", (names,))


def has_registry(connection: DeadlineConnection) -> bool:
    """Return whether this database has had an index."""
    return schema.is_true(connection, "SELECT to_regclass('likewise.index') IS NOT NULL")


def is_registered(connection: DeadlineConnection, name: str) -> bool:
    """Return whether the registry has an index of this name; False if there is no registry yet."""
    return has_registry(connection) and schema.is_true(
        connection, "SELECT EXISTS (SELECT FROM likewise.index WHERE name = %s)", name
    )


def unregister(connection: DeadlineConnection, name: str) -> None:
    """Forget an index, in the caller's transaction; `sweep` drops its tables."""
    connection.execute("DELETE FROM likewise.index WHERE name = %s", (name,))


def rename(connection: DeadlineConnection, name: str, new: str) -> None:
    """Give an index another name, in the caller's transaction.

    Raises:
        BadInput: the new name is taken.
        NotAnIndex: another process has removed the index.
    """
    try:
        renamed = connection.execute("UPDATE likewise.index SET name = %s WHERE name = %s", (new, name))
    except errors.UniqueViolation as error:
        raise BadInput(f"index {new!r} exists in this database already") from error
    if renamed.rowcount != 1:
        raise NotAnIndex(f"index {name!r} is no longer in this database: another process has removed it")


def _new_schema(connection: DeadlineConnection) -> str:
    """Return the name of a schema whose advisory locks no other index has."""
    while True:
        tables = f"likewise_{secrets.token_hex(8)}"
        taken = connection.execute(
            "SELECT FROM likewise.index WHERE hashtext(tables) = hashtext(%s)", (tables,)
        ).fetchone()
        if taken is None:
            return tables


def create_draft(
    connection: DeadlineConnection, index: str, dimensions: int, settings: Mapping[str, str], shards: int
) -> str:
    """Make an empty index under a name that no address can have; return that name.

    The draft is removed if this connection ends before the draft is renamed.
    """
    name = f"{index}{schema.DRAFT_MARK}{secrets.token_hex(8)}"
    with connection.transaction():
        tables = create_tables(connection, dimensions, settings, shards)
        register(connection, name, tables)
        connection.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", (schema.DRAFT_LOCK, tables))
    return name


def sweep(connection: DeadlineConnection) -> None:
    """Drop schemas that no row names: indexes that were replaced while somebody read them, or never finished.

    Schemas that a transaction still reads are left for the next call. A schema that is being made is not visible yet. A
    schema that is being filled has a row until the process that held its lock has ended.
    """
    with connection.transaction():
        connection.execute(
            "DELETE FROM likewise.index WHERE name IN (SELECT name FROM likewise.index WHERE name LIKE %s"
            " AND pg_try_advisory_xact_lock(%s, hashtext(tables)) FOR UPDATE SKIP LOCKED)",
            (f"%{schema.DRAFT_MARK}%", schema.DRAFT_LOCK),
        )
    orphans = connection.execute(
        "SELECT n.nspname FROM pg_namespace n WHERE n.nspname ~ '^likewise_[0-9a-f]{16}$'"
        " AND NOT EXISTS (SELECT 1 FROM likewise.index i WHERE i.tables = n.nspname)"
        " AND pg_catalog.pg_has_role(n.nspowner, 'USAGE')"
    ).fetchall()
    for (tables,) in orphans:
        with connection.transaction():
            free = connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", (schema.LOCK, tables)
            ).fetchone()
            if free != (True,) or _may_be_hidden(connection, tables):
                continue  # a successor that is being filled, or an index of somebody else
            connection.execute("SET LOCAL lock_timeout = '50ms'")
            try:
                with connection.transaction():
                    connection.execute(schema.statement("DROP SCHEMA {tables} CASCADE", tables))
            except (errors.LockNotAvailable, errors.DeadlockDetected):
                continue


def _may_be_hidden(connection: DeadlineConnection, tables: str) -> bool:
    """Return whether a policy may hide the row of these tables from this role, in the caller's transaction."""
    if not schema.is_true(connection, "SELECT row_security_active('likewise.index')"):
        return False
    try:
        with connection.transaction(force_rollback=True):  # a row that is hidden is in the way all the same
            inserted = connection.execute(
                "INSERT INTO likewise.index (name, tables, format_version, history) VALUES (%s, %s, 0, '')"
                " ON CONFLICT DO NOTHING",
                (f"{tables}{schema.DRAFT_MARK}", tables),
            )
            return inserted.rowcount == 0
    except errors.InsufficientPrivilege:
        return True
