"""Rights of roles on the tables of an index. An index that takes the place of another one takes over its rights."""

from __future__ import annotations

from psycopg import sql

from likewise.postgres.connections import DeadlineConnection

_RIGHTS = """
SELECT 'SCHEMA ' || quote_ident({new}) AS on_what, '' AS columns, a.grantee, a.privilege_type, a.is_grantable
FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a WHERE n.nspname = {tables}
UNION ALL
SELECT r.on_what, '', a.grantee, a.privilege_type, a.is_grantable
FROM relation r, aclexplode(coalesce(r.relacl, acldefault(r.acl_type, r.relowner))) a WHERE r.nspname = {tables}
UNION ALL
SELECT r.on_what, format('(%I)', c.attname), a.grantee, a.privilege_type, a.is_grantable
FROM relation r JOIN pg_attribute c ON c.attrelid = r.oid, aclexplode(c.attacl) a WHERE r.nspname = {tables}
"""
"""The rights on the tables of an index, written as rights on the tables of the same names in the new schema."""

_DIFFERENCE = """
WITH relation AS (
    SELECT c.oid, n.nspname, c.relacl, c.relowner,
        (CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END)::"char" AS acl_type,
        format('%s %I.%I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, {new}, c.relname) AS on_what
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ({old}, {new}) AND c.relkind IN ('r', 'p', 'v', 'S') AND EXISTS (
        SELECT FROM pg_class same WHERE same.relname = c.relname AND same.relnamespace = to_regnamespace({new}))
), difference AS (({wanted}) EXCEPT ({held}))
SELECT on_what, privilege_type || columns, is_grantable,
    CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
FROM difference, pg_namespace n WHERE n.nspname = {new} AND grantee <> n.nspowner
"""


def take_over_grants(connection: DeadlineConnection, old: str, new: str, *, revoke: bool) -> None:
    """Grant on the tables of one index what is granted on those of another, in the caller's transaction.

    The owner of the old tables counts as a role to which everything is granted.

    Args:
        old, new: names in the registry.
        revoke: take back what is not granted on the old tables, because it was revoked there in the meantime.
    """
    query = "SELECT tables FROM likewise.index WHERE name = %s"
    old, new = (str(row[0]) for name in (old, new) for row in connection.execute(query, (name,)))
    if revoke:
        for on_what, privilege, _, grantee in _difference(connection, old, new, wanted=new, held=old):
            _run(connection, f"REVOKE {privilege} ON {on_what} FROM {grantee} CASCADE")
    for on_what, privilege, grantable, grantee in _difference(connection, old, new, wanted=old, held=new):
        _run(connection, f"GRANT {privilege} ON {on_what} TO {grantee}{' WITH GRANT OPTION' if grantable else ''}")


def _difference(
    connection: DeadlineConnection, old: str, new: str, wanted: str, held: str
) -> list[tuple[str, str, bool, str]]:
    """Return the rights on the tables `wanted` that those on the tables `held` lack: on what, privilege, whether the
    role may grant it further, and the role."""
    names = {"old": sql.Literal(old), "new": sql.Literal(new)}
    wanted_rights, held_rights = (
        sql.SQL(_RIGHTS).format(tables=sql.Literal(tables), **names) for tables in (wanted, held)
    )
    return connection.execute(sql.SQL(_DIFFERENCE).format(wanted=wanted_rights, held=held_rights, **names)).fetchall()


def _run(connection: DeadlineConnection, statement: str) -> None:
    connection.execute(sql.SQL(statement))  # PostgreSQL itself has quoted the names
