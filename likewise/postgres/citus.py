"""Tables of an index on several nodes of Citus: made, and recognised when they show the same commit on every node.

Documents are distributed by their id, with their passages and values; all other tables stay with the coordinator. A
transaction over several nodes is not one snapshot: while a commit is completed, and after a crash until Citus has
recovered it, some nodes have the commit and others do not. So each commit writes its number on every shard (table
`shard`), and a reader compares these numbers with that of the registry.
"""

from __future__ import annotations

from psycopg import sql

from indexer.errors import BadInput, IndexUnavailable
from likewise.postgres.address import Address
from likewise.postgres.connections import DeadlineConnection
from likewise.postgres.schema import is_true, statement

STUCK_SECONDS = 5.0
"""Maximum seconds to wait for the rest of a commit. A commit takes milliseconds, unless a node has crashed."""

BEGIN = (
    "SET LOCAL citus.max_adaptive_executor_pool_size = 1",  # one connection for each node, and so one snapshot
    "SET LOCAL citus.enable_local_execution = off",  # it would search its own shard after the others
    "SET LOCAL citus.propagate_set_commands = local",  # the settings that follow reach the nodes
)

MARKS = "SELECT generation FROM {tables}.shard"

_DISTRIBUTE = """
ALTER TABLE {tables}.document DROP CONSTRAINT document_key_key;
CREATE INDEX document_key ON {tables}.document (key);
ALTER TABLE {tables}.passage DROP CONSTRAINT passage_pkey;
DROP INDEX {tables}.passage_document;
ALTER TABLE {tables}.passage ADD PRIMARY KEY (document_id, id);
CREATE INDEX passage_number ON {tables}.passage (id);
ALTER TABLE {tables}.field_value REPLICA IDENTITY FULL;
CREATE TABLE {tables}.shard (id bigint PRIMARY KEY, generation bigint NOT NULL);
SELECT create_distributed_table({document}, 'id', shard_count => {shards}, colocate_with => 'none');
SELECT create_distributed_table({passage}, 'document_id', colocate_with => {document});
SELECT create_distributed_table({field_value}, 'document_id', colocate_with => {document});
SELECT create_distributed_table({shard}, 'id', colocate_with => {document});
INSERT INTO {tables}.shard SELECT min(i), 0 FROM generate_series(1, 100 * {shards}) i
    GROUP BY get_shard_id_for_distribution_column({shard}, i)
"""
"""Unique keys must contain the column that distributes: that a uri is unique is left to locks (commit.py)."""

_TABLES = ("document", "passage", "field_value", "shard")


def shards_for(connection: DeadlineConnection, wanted: int | None) -> int:
    """Return the number of shards of a new index: as wanted, or the number of nodes; 0 for plain tables.

    Raises:
        BadInput: shards are wanted and the database does not have the extension.
    """
    if wanted == 0:
        return 0
    if not is_true(connection, "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"):
        if wanted:
            raise BadInput(
                f"an index of {wanted} shards: the database {connection.info.dbname} does not have the extension citus"
            )
        return 0
    row = connection.execute(
        "SELECT count(DISTINCT groupid) FROM pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
    ).fetchone()
    nodes = int(row[0]) if row else 0
    return wanted or (nodes if nodes > 1 else 0)


def distribute(connection: DeadlineConnection, tables: str, shards: int) -> None:
    """Distribute the empty tables of an index, in the caller's transaction."""
    connection.execute("SET LOCAL citus.multi_shard_modify_mode = sequential")  # the schema is of this transaction
    names = {table: sql.Literal(f"{tables}.{table}") for table in _TABLES}
    for part in _DISTRIBUTE.split(";\n"):
        connection.execute(statement(part, tables, shards=sql.Literal(shards), **names))


def is_distributed(connection: DeadlineConnection, tables: str) -> bool:
    return is_true(connection, "SELECT to_regclass(%s) IS NOT NULL", f"{tables}.shard")


def shard_count(connection: DeadlineConnection, tables: str) -> int:
    """Return the number of shards of an index; 0 for plain tables."""
    return len(connection.execute(statement(MARKS, tables)).fetchall()) if is_distributed(connection, tables) else 0


def size_of(connection: DeadlineConnection, tables: str) -> int:
    """Return the bytes of the tables of an index, on all nodes."""
    size, distributed = "pg_total_relation_size(c.oid)", is_distributed(connection, tables)
    if distributed:
        size = f"CASE WHEN c.relname = ANY(%s) THEN citus_total_relation_size(c.oid) ELSE {size} END"
    query = (
        f"SELECT coalesce(sum({size}), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind = 'r'"
    )
    parameters = ([list(_TABLES)] if distributed else []) + [tables]
    ((size_bytes,),) = connection.execute(sql.SQL(query), parameters).fetchall()
    return int(size_bytes)


def unfinished_commit(address: Address) -> IndexUnavailable:
    return IndexUnavailable(
        f"{address.shown}: a node has not completed the last commit: ask again in a minute, when Citus has recovered "
        "it, or let a superuser run SELECT recover_prepared_transactions()"
    )
