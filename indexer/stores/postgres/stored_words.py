"""The words of an index, kept in its database in pieces: a reader that has no replica downloads one and follows the
changes, instead of reading all texts.

The table is derived from the texts. It is made when the words are first stored, and is no part of the format.
"""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path

from psycopg import sql

from indexer.stores.postgres.connections import DeadlineConnection
from indexer.stores.postgres.schema import is_true, statement
from indexer.stores.postgres.views import View

_PIECE_BYTES = 2**20

_LOCK = 0x776F7264
"""First half of the key of the lock of the process that stores words ("word")."""

_FILE = re.compile(r"(?:documents|passages)/\.?[\w-]+(?:\.[\w-]+)*|documents\.npy|analysis|commit|checksums\.json")
"""Names of the files of a replica. Another name might be a place outside of its folder."""

_TABLE = """
CREATE TABLE {tables}.words (
    base     text NOT NULL,     -- the name of the replica, which begins with the number of its commit
    analysis text NOT NULL,     -- that turned the texts into terms
    file     text NOT NULL,
    piece    integer NOT NULL,
    content  bytea NOT NULL,
    PRIMARY KEY (file, piece)
);
ALTER TABLE {tables}.words ALTER COLUMN content SET STORAGE EXTERNAL
"""

_READERS = """
SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END FROM pg_class c, aclexplode(c.relacl) a
WHERE c.oid = to_regclass(%s) AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
"""


def stored_base(view: View, analysis: str) -> str | None:
    """Return the name of the replica that the database has; None if it has none that this role may read."""
    if view.rows("SELECT has_table_privilege(to_regclass('{tables}.words'), 'SELECT')") != [(True,)]:
        return None
    rows = view.rows("SELECT base FROM {tables}.words WHERE file = 'analysis' AND analysis = %s", analysis)
    return rows[0][0] if rows else None


def download(view: View, folder: Path, base: str) -> None:
    """Write a replica that the database has into a folder of its name.

    Raises:
        OSError: it cannot be written there.
        ValueError: the database has a file of another name.
    """
    temporary = folder / f"{secrets.token_hex(8)}.tmp"
    try:
        for file, piece, content in view.stream(
            "SELECT file, piece, content FROM {tables}.words WHERE base = %s ORDER BY file, piece", base, size=4
        ):
            if not _FILE.fullmatch(file):
                raise ValueError(f"a replica of words has no file {file[:40]!r}")
            path = temporary / file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab" if piece else "wb") as output:
                output.write(content)
        try:
            temporary.rename(folder / base)
        except OSError:
            if not (folder / base).is_dir():  # another process of this machine was faster
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def upload(connection: DeadlineConnection, tables: str, folder: Path, analysis: str) -> None:
    """Store a replica instead of the one that the database has, if this role may and no other process does it now."""
    with connection.transaction():
        if not is_true(connection, "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", _LOCK, tables):
            return
        if is_true(connection, "SELECT to_regclass(%s) IS NULL", f"{tables}.words"):
            if not is_true(connection, "SELECT has_schema_privilege(%s, 'CREATE')", tables):
                return
            for part in _TABLE.split(";\n"):
                connection.execute(statement(part, tables))
            for (role,) in connection.execute(_READERS, (f"{tables}.document",)).fetchall():
                # PostgreSQL itself has quoted the name.
                connection.execute(statement("GRANT SELECT ON {tables}.words TO {role}", tables, role=sql.SQL(role)))
        elif not is_true(connection, "SELECT has_table_privilege(%s, 'INSERT, DELETE')", f"{tables}.words"):
            return
        connection.execute(statement("DELETE FROM {tables}.words", tables))
        command = statement("COPY {tables}.words FROM STDIN (FORMAT BINARY)", tables)
        with connection.cursor() as cursor, cursor.copy(command) as copy:
            copy.set_types(["text", "text", "text", "int4", "bytea"])
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder).as_posix()
                if path.is_file() and _FILE.fullmatch(name) and path.suffix != ".lock":
                    with path.open("rb") as file:
                        for piece, content in enumerate(iter(lambda file=file: file.read(_PIECE_BYTES), b"")):  # type: ignore[misc]
                            copy.write_row((folder.name, analysis, name, piece, content))
