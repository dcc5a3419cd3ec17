"""The rights of roles survive a rebuild and a change of the model: docs/postgres.md names the statements."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from postgres_server import new_address

from indexer import Document, Index
from indexer.errors import StorageError
from indexer.settings import Settings
from indexer.stores.addresses.life_cycle import draft
from indexer.stores.addresses.open import engine_of
from indexer.stores.port import Slot
from likewise.postgres.address import parse_address
from search import Searcher

GRANTS = re.findall(r"^GRANT .*;$", (Path(__file__).parents[3] / "docs" / "postgres.md").read_text(), re.MULTILINE)
VECTOR = np.ones((1, 2), np.float32)

Rights = set[tuple[Any, ...]]


class Shared:
    """An index of one document with the roles `reader` and `writer` of docs/postgres.md."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.run = connection.execute
        self.address = new_address()
        self.reader, self.writer = (f"{role} {secrets.token_hex(4)}" for role in ("reader", "writer"))
        with Index.create(self.address, dimensions=2) as index:
            index.add([Document("a", "apple")], vectors=VECTOR)
        for role in (self.reader, self.writer):
            self.run(f'CREATE ROLE "{role}" LOGIN')
            for grant in GRANTS:
                if "TO reader;" in grant or role == self.writer:
                    statement = re.sub(r"\b(reader|writer);", f'"{role}";', grant)
                    self.run(statement.replace("likewise_0123456789abcdef", self.tables()))

    def tables(self) -> str:
        ((tables,),) = self.run(
            "SELECT tables FROM likewise.index WHERE name = %s", (parse_address(self.address).index,)
        ).fetchall()
        return str(tables)

    def of(self, role: str) -> str:
        return f"{self.address}&options=-c%20role%3D{role.replace(' ', '%5C%20')}"

    def rights(self) -> Rights:
        """The rights on the schema and on each of its tables, columns and sequences, by name."""
        rows = self.run(
            "SELECT c.relname, '', a.grantee::regrole::text, a.privilege_type, a.is_grantable"
            " FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = to_regnamespace(%(tables)s)"
            " UNION ALL SELECT c.relname, t.attname, a.grantee::regrole::text, a.privilege_type, a.is_grantable"
            " FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a"
            " WHERE c.relnamespace = to_regnamespace(%(tables)s)"
            " UNION ALL SELECT '', '', a.grantee::regrole::text, a.privilege_type, a.is_grantable"
            " FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname = %(tables)s",
            {"tables": self.tables()},
        ).fetchall()
        return set(rows)

    def replace(self, slot: Slot) -> None:
        """Put another index of one document in its place, as `--rebuild` and `migrate` do."""
        engine = engine_of(self.address)
        with engine.exclusive():
            if slot == "draft":
                with draft(engine, Settings(2)):
                    pass
            else:
                if slot == "next":
                    engine.make("next", Settings(2)).close()
                engine.publish(slot)
        engine.close()


@pytest.fixture
def shared() -> Iterator[Shared]:
    with closing(psycopg.connect(parse_address(new_address()).conninfo, autocommit=True)) as connection:
        shared = Shared(connection)
        yield shared
        for role in (shared.reader, shared.writer):
            connection.execute(f'DROP OWNED BY "{role}"')
            connection.execute(f'DROP ROLE "{role}"')


def tried(shared: Shared) -> None:
    """The reader searches and may not write; the writer writes."""
    with Searcher(shared.of(shared.reader)) as searcher:
        assert searcher.count() == 0
    with Index.open(shared.of(shared.reader)) as index, pytest.raises(StorageError, match="permission denied"):
        index.add([Document("b", "banana")], vectors=VECTOR)
    with Index.open(shared.of(shared.writer)) as index:
        assert index.add([Document("b", "banana")], vectors=VECTOR).added == ("b",)
    with Searcher(shared.of(shared.reader)) as searcher:
        assert searcher.count() == 1


def test_roles_keep_their_rights_when_an_index_is_rebuilt(shared: Shared) -> None:
    shared.run(f'GRANT UPDATE (tokens) ON {shared.tables()}.document TO "{shared.reader}" WITH GRANT OPTION')
    shared.run(f"GRANT USAGE ON SCHEMA {shared.tables()} TO PUBLIC")
    before, tables = shared.rights(), shared.tables()
    shared.replace("draft")
    assert shared.tables() != tables
    assert shared.rights() == before
    assert ("document", "tokens", f'"{shared.reader}"', "UPDATE", True) in before
    tried(shared)


def test_rights_follow_a_change_of_the_model_and_the_way_back(shared: Shared) -> None:
    before = shared.rights()
    shared.replace("next")
    assert shared.rights() == before
    tried(shared)
    shared.run(f'REVOKE ALL ON ALL TABLES IN SCHEMA {shared.tables()} FROM "{shared.reader}"')
    shared.run(f'GRANT TRUNCATE ON {shared.tables()}.document TO "{shared.writer}"')
    changed = shared.rights()
    shared.replace("previous")
    assert shared.rights() == changed != before


def test_the_former_owner_keeps_everything(shared: Shared) -> None:
    shared.run(f'GRANT "{shared.writer}" TO CURRENT_USER')
    shared.run(f'ALTER TABLE {shared.tables()}.document OWNER TO "{shared.writer}"')
    shared.replace("draft")
    kept = {
        privilege
        for table, _, role, privilege, _ in shared.rights()
        if (table, role) == ("document", f'"{shared.writer}"')
    }
    assert kept >= {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}
