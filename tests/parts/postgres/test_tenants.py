"""Row-level security as docs/postgres.md writes it: a tenant sees its index and nothing of the others'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from postgres_server import OwnServer

from indexer import Document, Index
from indexer.errors import BadInput, NotAnIndex, StorageError
from likewise.postgres import words
from search import Searcher

pytestmark = pytest.mark.slow  # a server of its own, because policies on the registry hold for all indexes

DOCS = Path(__file__).parents[3] / "docs" / "postgres.md"
VECTOR = np.ones(4, np.float32)
TENANTS = {"tenant_a": "apple", "tenant_b": "banana"}


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with closing(OwnServer()) as server:
        yield server


@pytest.fixture(autouse=True)
def kept_replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(words, "KEPT_PASSAGES", 2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "likewise" / "words"


def at(server: OwnServer, role: str, index: str) -> str:
    return server.address(index).replace("postgresql://postgres:@", f"postgresql://{role}@")


@pytest.fixture(scope="module")
def administrator(server: OwnServer) -> Iterator[psycopg.Connection[Any]]:
    uri = server.address("").partition("&index=")[0]
    with closing(psycopg.connect(uri, autocommit=True)) as connection:
        for tenant, fruit in TENANTS.items():
            fill(at(server, "postgres", fruit), fruit)
            connection.execute(f"CREATE ROLE {tenant} LOGIN")
            for grant in written("GRANT"):
                mine = re.sub(r"\b(reader|writer);", f"{tenant};", grant)
                mine = mine.replace("likewise_0123456789abcdef", tables_of(connection, fruit))
                connection.execute(mine)  # type: ignore[arg-type]
        for statement in (*written("ALTER TABLE"), *written("CREATE POLICY")):
            connection.execute(statement)  # type: ignore[arg-type]
        yield connection


def written(begin: str) -> list[str]:
    """Return the statements of docs/postgres.md that begin so."""
    found = re.findall(rf"^{begin} .*;$", DOCS.read_text(), re.MULTILINE)
    assert found
    return found


def tables_of(connection: psycopg.Connection[Any], index: str) -> str:
    ((tables,),) = connection.execute("SELECT tables FROM likewise.index WHERE name = %s", (index,)).fetchall()
    return str(tables)


def fill(address: str, fruit: str) -> None:
    with Index.create(address, dimensions=4) as index:
        documents = [Document(f"{fruit}{n}", f"{fruit} common {n}", metadata={"n": n}) for n in range(5)]
        index.add(documents, vectors=np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32))


def test_a_tenant_has_its_index_and_nothing_else(
    server: OwnServer, administrator: psycopg.Connection[Any], kept_replicas: Path
) -> None:
    for tenant, fruit in TENANTS.items():
        address = at(server, tenant, fruit)
        with Searcher(address) as searcher:
            for mode in ("words", "dense", "hybrid"):
                vector = None if mode == "words" else VECTOR
                hits = searcher.search("common", 9, where="n >= 1", mode=mode, vector=vector)  # type: ignore[arg-type]
                assert (sorted(hit.uri for hit in hits), hits.matched) == ([f"{fruit}{n}" for n in range(1, 5)], 4)
            assert searcher.values("n").documents == 5
        with Index.open(address) as index:
            assert index.check().problems == ()
            assert index.add([Document("new", "new")], vectors=VECTOR[None]).added == ("new",)
            assert index.remove(["new"]) == 1
        (other,) = {*TENANTS.values()} - {fruit}
        with pytest.raises(NotAnIndex):
            Searcher(at(server, tenant, other)).search("common", mode="words")
        with pytest.raises(NotAnIndex):
            Index.open(at(server, tenant, other)).check()
        with psycopg.connect(address.partition("&index=")[0]) as connection:
            assert connection.execute("SELECT name FROM likewise.index").fetchall() == [(fruit,)]
    assert len(list(kept_replicas.iterdir())) == 2  # no folder is shared
    for folder in kept_replicas.iterdir():
        contents = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert not (b"appl" in contents and b"banana" in contents)


def test_no_sweep_drops_tables_whose_row_a_policy_hides(
    server: OwnServer, administrator: psycopg.Connection[Any]
) -> None:
    run = administrator.execute
    run("CREATE ROLE fruits; GRANT fruits TO tenant_a, tenant_b; GRANT DELETE, INSERT ON likewise.index TO tenant_a")
    for fruit in TENANTS.values():
        tables = tables_of(administrator, fruit)
        run(f"ALTER SCHEMA {tables} OWNER TO fruits")  # type: ignore[arg-type]
    run("GRANT CREATE ON DATABASE postgres TO fruits")
    run("SET ROLE fruits; CREATE SCHEMA likewise_00000000000000aa; RESET ROLE")  # what nobody has
    run("DROP POLICY own ON likewise.index")
    run("CREATE POLICY own ON likewise.index USING (name LIKE 'apple%')")
    try:
        for _ in range(2):
            with Index.open(at(server, "tenant_a", "apple")) as index:
                index.compact()
            run("DROP POLICY own ON likewise.index")
            (policy,) = (line for line in written("CREATE POLICY") if "likewise.index" in line)
            run(policy)  # type: ignore[arg-type]
        left = run("SELECT nspname FROM pg_namespace WHERE nspname ~ '^likewise_'").fetchall()
        assert {name for (name,) in left} == {tables_of(administrator, fruit) for fruit in TENANTS.values()}
        with pytest.raises(BadInput, match="index=apple: exists already"):
            run("GRANT ALL ON likewise.index TO tenant_b")
            Index.create(at(server, "tenant_b", "apple"), dimensions=4)
    finally:
        run("REVOKE fruits FROM tenant_a, tenant_b")


def test_a_policy_on_the_tables_of_an_index_is_refused(
    server: OwnServer, administrator: psycopg.Connection[Any]
) -> None:
    tables = tables_of(administrator, "banana")
    administrator.execute(
        f"ALTER TABLE {tables}.document ENABLE ROW LEVEL SECURITY;"  # type: ignore[arg-type]
        f" CREATE POLICY part ON {tables}.document USING (id <= 2)"
    )
    address = at(server, "tenant_b", "banana")
    for use in (
        lambda: Searcher(address).search("common", mode="words"),
        lambda: Searcher(address).search("common", vector=VECTOR),
        lambda: Index.open(address).check(),
    ):
        with pytest.raises(StorageError, match="row-level security may hide rows of document from the role tenant_b"):
            use()
    with Searcher(at(server, "postgres", "banana")) as searcher:  # the owner, to whom it does not apply
        assert searcher.search("common", mode="words").matched == 5
