"""The ledger of a database of format 1, whose reasons are sentences: read as it is, migrated by the first commit."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from older_formats import forget_readers
from opened import snapshot_of
from postgres_server import new_address, remove_index, server_uri

from indexer import Document, Index
from indexer.errors import StorageError, in_shell
from indexer.ledger import NO_REASON, Code, Reason
from indexer.settings import Settings
from indexer.stores.addresses.open import create_store, open_store
from indexer.stores.port import Batch, LedgerRow, RunOutcome
from indexer.stores.postgres.address import parse_address

SENTENCES = [
    (Code.DUPLICATE(), "duplicate id: a later record of the same run has it"),
    (Reason(Code.WRONG_CELLS, ("2", "3"), 3), "line 3: has 2 cells where the header has 3"),
    (Reason(Code.OTHER, ("foreign words",), 7), "line 7: foreign words"),
    (Code.OTHER("a sentence of nobody"), "a sentence of nobody"),
    (NO_REASON, ""),
]
ROWS = [LedgerRow("/f", f"r{number}", "skipped", reason) for number, (reason, _) in enumerate(SENTENCES)]
DOCUMENT, VECTOR = Document("d", "text"), np.ones((1, 4), np.float32)


class Old:
    """An index whose ledger is as format 1 had it, and a connection of the administrator."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.name = parse_address(address).index
        self.connection = psycopg.connect(server_uri(), autocommit=True)
        create_store(address, Settings(4)).close()
        with Index.open(address) as index:
            index.add([DOCUMENT], vectors=VECTOR)
        store = open_store(address)
        with store.writer() as writer:
            writer.put(Batch(rows=[*ROWS, LedgerRow("/g", "r0", "gone")], run=writer.begin_run()))
        store.close()
        ((self.tables,),) = self.run("SELECT tables FROM likewise.index WHERE name = %s", self.name)
        for reason, sentence in SENTENCES:
            self.run(f"UPDATE {self.tables}.ledger SET reason = %s WHERE reason = %s", sentence, reason.stored())
        forget_readers(address)
        self.run("UPDATE likewise.index SET format_version = 1 WHERE name = %s", self.name)

    def run(self, query: str, *parameters: object) -> list[Any]:
        cursor = self.connection.execute(query, parameters or None)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []

    def stored(self) -> tuple[int, list[str]]:
        ((version,),) = self.run("SELECT format_version FROM likewise.index WHERE name = %s", self.name)
        rows = self.run(f"SELECT reason FROM {self.tables}.ledger WHERE state = 'skipped' ORDER BY id")
        return version, [reason for (reason,) in rows]


@pytest.fixture
def old() -> Iterator[Old]:
    old = Old(new_address())
    yield old
    old.connection.close()
    store: Any = open_store(old.address)
    remove_index(store.engine)
    store.close()


FORMAT_1 = (1, [sentence for _, sentence in SENTENCES])
CURRENT = (3, [reason.stored() for reason, _ in SENTENCES])


def ledger_of(address: str) -> list[LedgerRow]:
    with Index.open(address) as index:
        return list(snapshot_of(index).ledger("skipped"))


def test_readers_show_both_formats_and_the_first_writer_migrates(old: Old, likewise: Callable[..., Any]) -> None:
    before = likewise("info", old.address, "--ledger", "--json").out
    assert (ledger_of(old.address), old.stored()) == (ROWS, FORMAT_1)
    with Index.open(old.address) as index:
        assert index.check().problems == ()
        assert (index.info().format_version, old.stored()) == (1, FORMAT_1)
        assert index.add([DOCUMENT], vectors=VECTOR).unchanged == ("d",)
        assert index.remove([]) == 0
        index.compact()
        assert index.add([Document("e", "more")], vectors=VECTOR).added == ("e",)
        assert (index.info().format_version, old.stored()) == (3, CURRENT)
        assert index.add([DOCUMENT], vectors=VECTOR).unchanged == ("d",)
    assert ledger_of(old.address) == ROWS
    assert likewise("info", old.address, "--ledger", "--json").out == before


def test_the_end_of_a_run_finds_a_duplicate_of_an_earlier_format(old: Old) -> None:
    store = open_store(old.address)
    with store.writer() as writer:
        assert writer.end_run(writer.begin_run(), RunOutcome()) == 1
    store.close()


def test_a_migration_that_fails_has_not_begun(old: Old) -> None:
    # A constraint that the sentences satisfy ends the transaction in the middle of the migration.
    old.run(f"ALTER TABLE {old.tables}.ledger ADD CONSTRAINT c CHECK (reason NOT LIKE '%wrong_cells%')")
    with Index.open(old.address) as index:
        with pytest.raises(psycopg.errors.CheckViolation):
            index.add([Document("e", "more")], vectors=VECTOR)
        assert (index.info().documents, old.stored()) == (1, FORMAT_1)
        old.run(f"ALTER TABLE {old.tables}.ledger DROP CONSTRAINT c")
        index.add([Document("e", "more")], vectors=VECTOR)
        assert (index.info().documents, old.stored()) == (2, CURRENT)


def test_only_the_owner_migrates_and_then_other_roles_write(old: Old) -> None:
    role = f"role_{secrets.token_hex(4)}"
    old.run(f"CREATE ROLE {role}")
    old.run(f"GRANT USAGE ON SCHEMA likewise, {old.tables} TO {role}")
    old.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA likewise, {old.tables} TO {role}")
    address = f"{old.address}&options=-c%20role%3D{role}"
    try:
        assert (ledger_of(address), old.stored()) == (ROWS, FORMAT_1)
        old.run(f"GRANT UPDATE ON likewise.index TO {role}")
        old.run(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {old.tables} TO {role}")
        old.run(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {old.tables} TO {role}")
        with Index.open(address) as index:
            with pytest.raises(StorageError) as refused:
                index.add([Document("e", "more")], vectors=VECTOR)
            (owner,) = old.run("SELECT current_user")[0]
            said, _, command = in_shell(refused.value).rpartition(": ")
            assert said.endswith(
                f"has format 1, and only the role {owner}, which owns its tables, may bring it to format 3: "
                f"let {owner} write once"
            )
            assert command.startswith(f"likewise compact 'postgresql://{owner}@")
            (named,) = shlex.split(command.removeprefix("likewise compact "))
            assert parse_address(named).index == old.name
            assert old.stored() == FORMAT_1
            with Index.open(named) as of_owner:
                of_owner.compact()
            assert old.stored() == CURRENT
            assert index.add([Document("e", "more")], vectors=VECTOR).added == ("e",)
    finally:
        old.run(f"DROP OWNED BY {role}")
        old.run(f"DROP ROLE {role}")


def test_a_copy_inside_the_database_keeps_its_format(old: Old) -> None:
    copy = new_address()
    with Index.open(old.address) as index:
        index.copy(copy)
    with Index.open(copy) as index:
        assert index.info().format_version == 1
        assert list(snapshot_of(index).ledger("skipped")) == ROWS
        index.add([Document("e", "more")], vectors=VECTOR)
        assert index.info().format_version == 3
    store: Any = open_store(copy)
    remove_index(store.engine)
    store.close()
