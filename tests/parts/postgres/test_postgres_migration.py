"""The first commit migrates an index in a database to a newer format, here to one that is made up; readers never do."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from opened import snapshot_of
from postgres_server import new_address, remove_index, server_uri

from indexer import BadInput, Document, Index, NewerFormat
from indexer.errors import StorageError, in_shell
from indexer.ledger import Code
from indexer.settings import Settings
from indexer.stores.addresses.open import create_store, open_store
from indexer.stores.port import Batch, LedgerRow
from likewise.postgres import schema
from likewise.postgres.address import parse_address

ROWS = [LedgerRow("/f", f"r{number}", "skipped", Code.EMPTY()) for number in range(3)]
DOCUMENT, VECTOR = Document("d", "text"), np.ones((1, 4), np.float32)


class Old:
    """An index of format 1, and a connection of the administrator."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.name = parse_address(address).index
        self.connection = psycopg.connect(server_uri(), autocommit=True)
        create_store(address, Settings(4)).close()
        with Index.open(address) as index:
            index.add([DOCUMENT], vectors=VECTOR)
        store = open_store(address)
        with store.writer() as writer:
            writer.put(Batch(rows=ROWS, run=writer.begin_run()))
        store.close()
        ((self.tables,),) = self.run("SELECT tables FROM likewise.index WHERE name = %s", self.name)

    def run(self, query: str, *parameters: object) -> list[Any]:
        cursor = self.connection.execute(query, parameters or None)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []

    def stored(self) -> tuple[int, bool]:
        """Return the format of the index, and whether it has the column of format 2."""
        ((version,),) = self.run("SELECT format_version FROM likewise.index WHERE name = %s", self.name)
        columns = self.run(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = 'ledger'",
            self.tables,
        )
        return version, ("made_up",) in columns


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> Iterator[Old]:
    """An index of format 1, while this version knows a format 2, whose ledger has one more column."""
    old = Old(new_address())
    statement = "ALTER TABLE {tables}.ledger ADD COLUMN IF NOT EXISTS made_up text NOT NULL DEFAULT 'empty'"
    monkeypatch.setattr(schema, "MIGRATIONS", [statement])
    monkeypatch.setattr(schema, "FORMAT_VERSION", 2)
    yield old
    monkeypatch.undo()
    old.connection.close()
    store: Any = open_store(old.address)
    remove_index(store.engine)
    store.close()


def ledger_of(address: str) -> list[LedgerRow]:
    with Index.open(address) as index:
        return list(snapshot_of(index).ledger("skipped"))


def test_readers_read_the_older_format_and_the_first_commit_migrates(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ledger_of(old.address), old.stored()) == (ROWS, (1, False))
    with Index.open(old.address) as index:
        assert index.check().problems == ()
        assert index.add([DOCUMENT], vectors=VECTOR).unchanged == ("d",)
        assert (index.info().format_version, old.stored()) == (1, (1, False))
        index.compact()
        assert (index.info().format_version, old.stored()) == (2, (2, True))
        assert index.add([Document("e", "more")], vectors=VECTOR).added == ("e",)
        assert index.add([DOCUMENT], vectors=VECTOR).unchanged == ("d",)
        assert index.check().problems == ()
    assert ledger_of(old.address) == ROWS
    monkeypatch.setattr(schema, "FORMAT_VERSION", 1)
    with pytest.raises(NewerFormat, match="has format 2 and this likewise reads up to 1: install a newer one"):
        Index.open(old.address)


def test_a_migration_that_fails_has_not_begun(old: Old) -> None:
    with Index.open(old.address) as index, pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, "SELECT 1 / 0"])
        with pytest.raises(BadInput, match="division by zero"):
            index.add([Document("e", "more")], vectors=VECTOR)
        assert (index.info().documents, old.stored()) == (1, (1, False))
    with Index.open(old.address) as index:
        index.add([Document("e", "more")], vectors=VECTOR)
        assert (index.info().documents, old.stored()) == (2, (2, True))


def test_only_the_owner_migrates_and_then_other_roles_write(old: Old) -> None:
    role = f"role_{secrets.token_hex(4)}"
    old.run(f"CREATE ROLE {role}")
    old.run(f"GRANT USAGE ON SCHEMA likewise, {old.tables} TO {role}")
    old.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA likewise, {old.tables} TO {role}")
    address = f"{old.address}&options=-c%20role%3D{role}"
    try:
        assert (ledger_of(address), old.stored()) == (ROWS, (1, False))
        old.run(f"GRANT UPDATE ON likewise.index TO {role}")
        old.run(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {old.tables} TO {role}")
        old.run(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {old.tables} TO {role}")
        with Index.open(address) as index:
            with pytest.raises(StorageError) as refused:
                index.add([Document("e", "more")], vectors=VECTOR)
            (owner,) = old.run("SELECT current_user")[0]
            said, _, command = in_shell(refused.value).rpartition(": ")
            assert said.endswith(
                f"has format 1, and only the role {owner}, which owns its tables, may bring it to format 2: "
                f"let {owner} write once"
            )
            assert command.startswith(f"likewise compact 'postgresql://{owner}@")
            (named,) = shlex.split(command.removeprefix("likewise compact "))
            assert parse_address(named).index == old.name
            assert old.stored() == (1, False)
            with Index.open(named) as of_owner:
                of_owner.compact()
            assert old.stored() == (2, True)
            assert index.add([Document("e", "more")], vectors=VECTOR).added == ("e",)
    finally:
        old.run(f"DROP OWNED BY {role}")
        old.run(f"DROP ROLE {role}")
