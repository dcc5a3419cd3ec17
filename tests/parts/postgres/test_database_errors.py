"""Errors between a person and a database: each has one clear line and an exit code, and never shows a password."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psycopg
import pytest
from postgres_server import address_of, new_address, remove_index, server_uri

import likewise.service.commands.serve
from indexer import Document, Index
from indexer.errors import BadInput, IndexDamaged, IndexUnavailable, LikewiseError, NotPermitted, StorageError
from indexer.stores.addresses.open import open_store
from likewise.postgres.address import parse_address
from likewise.postgres.connections import connect, translated
from search import Searcher

PASSWORD = "never-to-be-shown"
RECORDS = '{"id": "a", "text": "fresh bread"}\n{"id": "b", "text": "green tea"}\n'


def at(user: str, database: str) -> str:
    """The tests' server, for another role and another database."""
    given = parse_address(server_uri())
    scheme, _, rest = given.conninfo.partition("://")
    hosts, _, parameters = rest.rpartition("@")[2].partition("?")
    return f"{scheme}://{user}:{PASSWORD}@{hosts.partition('/')[0]}/{database}?{parameters}"


def at_server(database: str) -> str:
    """Another database of the tests' server, for its own role."""
    scheme, _, rest = server_uri().partition("://")
    hosts, _, rest = rest.partition("/")
    return f"{scheme}://{hosts}/{database}?{rest.partition('?')[2]}"


@contextmanager
def administrator() -> Iterator[psycopg.Connection[Any]]:
    with closing(psycopg.connect(parse_address(server_uri()).conninfo, autocommit=True)) as connection:
        yield connection


@pytest.fixture(scope="module")
def weak() -> Iterator[str]:
    """A role that may connect, and nothing else."""
    role = f"weak_{os.getpid()}"
    with administrator() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        yield role
        connection.execute(f"DROP ROLE {role}")


def one_line(said: Any, code: int) -> str:
    assert PASSWORD not in said.err
    return str(said.failed(code))


class Gate(threading.Thread):
    """A server that asks for the password and repeats it in its error, as no server should."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.asked: list[str] = []

    def run(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:  # closed
                return
            with client, client.makefile("rwb") as stream:
                while struct.unpack("!ii", stream.read(8))[1] in (80877103, 80877104):  # TLS, GSSAPI
                    stream.write(b"N")
                    stream.flush()
                stream.write(b"R" + struct.pack("!ii", 8, 3))
                stream.flush()
                while stream.read(1) != b"p":  # the rest of the first message has none
                    pass
                password = stream.read(struct.unpack("!i", stream.read(4))[0] - 4)[:-1]
                self.asked.append(password.decode())
                error = b"SFATAL\0C28P01\0Mpassword authentication failed for " + password + b"\0\0"
                stream.write(b"E" + struct.pack("!i", len(error) + 4) + error)
                stream.flush()

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    server = Gate()
    server.start()
    yield server
    server.close()


@pytest.mark.parametrize(
    "arguments", [("info",), ("search", "bread", "--json"), ("index", "-"), ("check",), ("pairs",)]
)
def test_a_wrong_password_is_not_repeated(
    likewise: Callable[..., Any], gate: Gate, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *rest = arguments
    expected = "password authentication failed for ***"
    assert expected in one_line(likewise(name, f"postgresql://u:{PASSWORD}@127.0.0.1:{gate.port}/db", *rest), 3)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert expected in one_line(likewise(name, f"postgresql://u@127.0.0.1:{gate.port}/db", *rest), 3)
    assert set(gate.asked) == {PASSWORD}


@pytest.mark.parametrize(
    ("address", "code", "says"),
    [
        ("postgresql://u:{}@127.0.0.1:1/db", 3, "postgresql://u@127.0.0.1:1/db?index=default: connection failed"),
        ("postgresql://u:{}@no-such-host.invalid/db", 3, "failed to resolve host"),
        ("postgresql://u:{}@h/db?colour=red", 2, 'invalid URI query parameter: "colour"'),
        ("postgresql://u:{}@h/db?connect_timeout=soon", 2, "connect_timeout"),
        ("postgresql://u:{}@[h/db", 2, "the address of the database cannot be read: write postgresql://USER@HOST"),
        ("postgresql://u:@{}@h/db", 2, "the address of the database cannot be read"),
    ],
)
def test_a_server_that_is_not_there_or_an_address_that_is_none(
    likewise: Callable[..., Any], address: str, code: int, says: str
) -> None:
    for command in (["info"], ["index", "-"], ["search", "bread"]):
        assert says in one_line(likewise(command[0], address.format(PASSWORD), *command[1:]), code)


def test_wrong_usage_repeats_no_password(likewise: Callable[..., Any]) -> None:
    address = f"postgresql://u:{PASSWORD}@h/db"
    for arguments in (
        ["info", address, address],
        ["search", "nothing.index", address],
        [address],
        ["index", address],
        ["serve", address, address],
        ["pairs", "--index", address, address],
    ):
        said = likewise(*arguments)
        assert said.code == 2
        assert PASSWORD not in said.out + said.err
        shows_address = arguments[0] != "pairs"
        assert ("postgresql://u@h/db" in said.err) == shows_address, said.err


def test_a_database_that_is_not_there(likewise: Callable[..., Any]) -> None:
    address = at("postgres", "no_such_database")
    assert 'database "no_such_database" does not exist' in one_line(likewise("info", address), 3)
    assert 'database "no_such_database" does not exist' in one_line(likewise("index", address, "-", stdin=RECORDS), 3)


def test_a_role_without_rights(likewise: Callable[..., Any], weak: str) -> None:
    address = address_of(f"rights {os.getpid()}")
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    (name,) = (psycopg.conninfo.conninfo_to_dict(parse_address(server_uri()).conninfo)["dbname"],)
    mine = f"{at(weak, str(name))}&index=rights%20{os.getpid()}"
    for command in (["info"], ["search", "bread"], ["index", "-"], ["remove", "a"]):
        line = one_line(likewise(command[0], mine, *command[1:], stdin=RECORDS), 3)
        assert "permission denied for schema likewise; ask for the grants" in line
    with administrator() as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA likewise TO {weak}; GRANT SELECT ON likewise.index TO {weak}")
        try:
            assert "permission denied for schema likewise_" in one_line(likewise("search", mine, "bread"), 3)
        finally:
            connection.execute(f"DROP OWNED BY {weak}")


@pytest.mark.parametrize(
    ("statement", "kind", "ends"),
    [
        (
            "CREATE EXTENSION nothing",
            StorageError,
            "is not available; install its package on the server (docs/postgres.md)",
        ),
        (
            "SET ROLE weak; ALTER SCHEMA public RENAME TO x",
            NotPermitted,
            "must be owner of schema public; ask the owner",
        ),
        ("SET ROLE weak; SELECT FROM pg_authid", NotPermitted, "pg_authid; ask for the grants of docs/postgres.md"),
        (
            "SET default_transaction_read_only = on; CREATE TABLE x ()",
            NotPermitted,
            "in a read-only transaction: this server only reads, as a standby does: write to the primary",
        ),
    ],
)
def test_each_refusal_says_what_helps(statement: str, kind: type[LikewiseError], ends: str, weak: str) -> None:
    address = parse_address(address_of("anything"))
    statement = statement.replace("weak", weak)
    with pytest.raises(kind) as refusal, translated(address), connect(address) as connection:
        for part in statement.split("; "):
            connection.execute(part)  # type: ignore[call-overload]
    assert str(refusal.value).endswith(ends)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "line", "becomes"),
    [
        (psycopg.errors.IoError, 'could not extend file "base/5/16421": Input/output error', StorageError),
        # What Citus reports if a node ends in the middle of a transaction.
        (psycopg.errors.IoError, "failed to COPY to shard 104040 on 127.0.0.1:49651", IndexUnavailable),
        (psycopg.errors.IoError, "failed to complete COPY on 127.0.0.1:49651", IndexUnavailable),
        (psycopg.errors.ConnectionFailure, "connection to the remote node failed", IndexUnavailable),
        (psycopg.errors.AdminShutdown, "terminating connection due to administrator command", IndexUnavailable),
        (psycopg.errors.InternalError_, "", IndexUnavailable),
        (psycopg.errors.InFailedSqlTransaction, "current transaction is aborted", IndexUnavailable),
        (psycopg.errors.DeadlockDetected, "canceling the transaction since it was involved", IndexUnavailable),
    ],
)
def test_a_node_that_ends_is_not_an_error_of_a_disk(kind: type[Exception], line: str, becomes: type[Exception]) -> None:
    address = parse_address("postgresql://u@h/db")
    with pytest.raises(becomes) as refused, translated(address):
        raise kind(line)
    assert str(refused.value) == f"{address.shown}: {line or 'a server ended and gave no reason'}"


def test_a_role_that_only_reads_one_index(
    likewise: Callable[..., Any], weak: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the rights of other indexes' readers, and without the rights that a hardened server takes from
    everybody."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("likewise.postgres.words.KEPT_PASSAGES", 2)
    address = address_of(f"read {os.getpid()}")
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "reader"))
    hidden = "FUNCTION pg_control_checkpoint(), pg_control_system()"
    with administrator() as connection:
        query = "SELECT tables FROM likewise.index WHERE name = %s"
        ((tables,),) = connection.execute(query, (parse_address(address).index,)).fetchall()
        connection.execute(
            f"GRANT USAGE ON SCHEMA likewise, {tables} TO {weak}; GRANT SELECT ON likewise.index TO {weak};"  # type: ignore[arg-type]
            f" GRANT SELECT ON ALL TABLES IN SCHEMA {tables} TO {weak}; REVOKE EXECUTE ON {hidden} FROM public"
        )
        mine = address.replace("postgresql://postgres:@", f"postgresql://{weak}@")
        try:
            assert [
                hit["uri"] for hit in likewise("search", mine, "bread", "--mode", "words", "--json").json["hits"]
            ] == ["a"]
            assert likewise("check", mine, "--json").json["ok"]
            assert len(list((tmp_path / "reader" / "likewise" / "words").glob("*/*"))) == 1
        finally:
            connection.execute(f"GRANT EXECUTE ON {hidden} TO public; DROP OWNED BY {weak}")  # type: ignore[arg-type]


@pytest.mark.parametrize("drop", ["SCHEMA {}", "TABLE {}.change"])
def test_tables_that_somebody_has_dropped(likewise: Callable[..., Any], drop: str) -> None:
    address = address_of(f"it's dropped {os.getpid()} {drop}")
    name = parse_address(address).index.replace("'", "''")
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    with Searcher(address) as living, administrator() as connection:
        assert living.search("bread", mode="words").matched == 1
        query = f"FROM likewise.index WHERE name = '{name}'"
        ((tables,),) = connection.execute(f"SELECT tables {query}").fetchall()  # type: ignore[arg-type]
        connection.execute(f"DROP {drop.format(tables)} CASCADE")  # type: ignore[arg-type]
        with pytest.raises(IndexDamaged, match="tables of this index are missing"):
            living.search("bread", mode="words")
        for command in (["info"], ["search", "bread"], ["index", "-"], ["check"], ["remove", "a"], ["compact"]):
            line = one_line(likewise(command[0], address, *command[1:], stdin=RECORDS), 3)
            assert f"forget the index with DELETE {query} and index its sources again" in line
        connection.execute(f"DELETE {query}")  # type: ignore[arg-type]
        assert likewise("index", address, "-", stdin=RECORDS).code == 0
        assert living.search("bread", mode="words").matched == 1


@pytest.mark.parametrize(
    "setting",
    [
        "standard_conforming_strings = off",
        "client_encoding = 'LATIN1'",
        "client_encoding = 'SQL_ASCII'",
        "default_transaction_isolation = 'serializable'",
        "bytea_output = 'escape'",
        "timezone = 'Asia/Tokyo'",
    ],
)
def test_settings_of_a_role_change_no_answer(setting: str) -> None:
    role = f"other_{os.getpid()}"
    written = Document("b\\'\N{CHECK MARK}", "\\x41 ' \N{CHECK MARK}", metadata={"d": "2021-05-05"})
    address = new_address().replace("postgresql://postgres:@", f"postgresql://{role}@")
    with administrator() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET {setting}")  # type: ignore[arg-type]
        try:
            with Index.create(address, dimensions=2) as index:
                index.add([written, Document("a", "x")], vectors=np.eye(2, dtype=np.float32))
                assert index.add([Document("a", "y")], vectors=np.ones((1, 2), np.float32)).replaced == ("a",)
                assert index.get(written.uri) == written
                assert index.remove(["a"]) == 1
                assert index.check().ok
            with Searcher(address) as searcher:
                hits = searcher.search_vector(np.array([1, 0], np.float32), where="d = '2021-05-05'")
                assert [(hit.uri, hit.score) for hit in hits] == [(written.uri, 1.0)]
            assert isolation_of(address) == "read committed"
            remove_index(open_store(address).engine)
        finally:
            connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")  # type: ignore[arg-type]


def isolation_of(address: str) -> str:
    """Return how a writer's transaction is isolated."""
    with connect(parse_address(address)) as connection, connection.transaction():
        (row,) = connection.execute("SHOW transaction_isolation").fetchall()
        return str(row[0])


def test_a_database_without_the_extension(likewise: Callable[..., Any], weak: str) -> None:
    database = f"bare_{os.getpid()}"
    with administrator() as connection:
        connection.execute(f"CREATE DATABASE {database}")
        try:
            address = at(weak, database)
            assert "is not an index, and its database has none" in one_line(likewise("info", address), 2)
            line = one_line(likewise("index", address, "-", stdin=RECORDS), 3)
            assert f"may not create extensions: run CREATE EXTENSION vector once in the database {database}" in line
            with closing(psycopg.connect(parse_address(at_server(database)).conninfo, autocommit=True)) as there:
                there.execute("CREATE SCHEMA likewise; CREATE TABLE likewise.index (name text)")
            assert "the extension vector was dropped" in one_line(likewise("info", at_server(database)), 3)
        finally:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")


def test_an_index_of_a_newer_format(likewise: Callable[..., Any]) -> None:
    address = new_address()
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    with administrator() as connection:
        name = parse_address(address).index
        connection.execute("UPDATE likewise.index SET format_version = 99 WHERE name = %s", (name,))
    for command in (["info"], ["search", "bread"], ["index", "-"], ["check"], ["remove", "a"]):
        said = likewise(command[0], address, *command[1:], stdin=RECORDS)
        assert "has format 99 and this likewise reads up to 1: install a newer one" in one_line(said, 3)


@pytest.mark.parametrize(
    "name",
    [
        'it\'s "mine"; --',
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("my papers", "größer/../%41", "100%", "*", "a.b\\c")),
    ],
)
def test_indexes_of_a_database_do_not_see_each_other(likewise: Callable[..., Any], name: str) -> None:
    mine, other = address_of(f"{name} {os.getpid()}"), address_of(f"{name} {os.getpid()} ")
    assert likewise("index", mine, "-", stdin=RECORDS).code == 0
    assert likewise("info", other).code == 2
    assert likewise("index", other, "-", stdin='{"id": "c", "text": "snow"}').code == 0
    assert [hit["uri"] for hit in likewise("search", mine, "snow bread", "--json").json["hits"]] == ["a", "b"]
    assert likewise("remove", other, "a").code == 2
    assert likewise("list", other).out.startswith("c\t")
    with Searcher(mine) as searcher:
        assert Searcher(searcher.address).get("a").text == "fresh bread"


def test_what_the_extra_brings_is_missing(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = tmp_path / "x.index", "postgresql://u@h/db"
    assert likewise("index", folder, "-", stdin=RECORDS).code == 0
    for name in [name for name in sys.modules if name.startswith("likewise.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for command in (
        ["info", address],
        ["index", address, "-"],
        ["search", address, "bread"],
        ["copy", folder, address],
    ):
        line = one_line(likewise(*command), 2)
        assert "needs psycopg, which is not installed: pip install 'likewise[postgres]'" in line
    with pytest.raises(BadInput, match="pip install"):
        open_store("postgresql://u@h/db")


@pytest.mark.parametrize("engine", ["folder", "PostgreSQL"])
def test_records_with_nul_are_read_and_noted(likewise: Callable[..., Any], tmp_path: Path, engine: str) -> None:
    lines = [
        {"id": "a", "text": "good"},
        {"id": "b", "text": "words", "note": "x\0y"},
        {"id": "c", "title": "t\0", "text": "mo\0re words", "no\0te": 1},
        {"id": "d\0", "text": "words", "list": ["x", {"y": "\0z"}]},
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    address = tmp_path / "x.index" if engine == "folder" else new_address()
    likewise("index", address, tmp_path / "r.jsonl", "--json").reported(0, indexed=4, failed=0, noted=1)
    noted = likewise("info", address, "--ledger", "noted", "--json").out.splitlines()
    assert {row["uri"] for row in map(json.loads, noted)} == {"b", "c", "d"}
    with Index.open(address) as index:
        documents = {document.uri: (document.title, document.text, document.metadata) for document in index}
        assert index.check().ok
    assert documents == {
        "a": ("", "good", {}),
        "b": ("", "words", {"note": "xy"}),
        "c": ("t", "more words", {"note": 1}),
        "d": ("", "words", {"list": ["x", {"y": "z"}]}),
    }


def test_a_document_that_postgresql_cannot_hold_fails_alone(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good")
    (tmp_path / "b.md").write_text('---\nnote: "x\\0y"\n---\nbad\n')
    (tmp_path / "c.md").write_text('---\n"no\\0te": 1\n---\nbad\n')
    (tmp_path / "e.md").write_text("---\nlist: [x, {y: 1}]\n---\ngood too\n")
    address, b = new_address(), str(tmp_path / "b.md")
    likewise("index", address, tmp_path, "--json").reported(1, indexed=2, unchanged=0, failed=2)
    likewise("index", address, tmp_path, "--json").reported(0, indexed=0, unchanged=2, failed=2)
    failed = likewise("info", address, "--ledger", "failed", "--json").out.splitlines()
    reasons = {row["uri"]: row["reason"] for row in map(json.loads, failed)}
    assert reasons[b] == f"{b}: metadata field 'note' holds a NUL, which PostgreSQL cannot hold"
    assert reasons.keys() == {b, str(tmp_path / "c.md")}
    assert likewise("check", address).code == 0
    assert likewise("search", address, "good", "--json").json["matched"] == 2
    with Index.open(address) as index, pytest.raises(BadInput, match="b: metadata field 'note' holds a NUL"):
        index.add([Document("b", "bad", metadata={"note": "\0"})])


@pytest.mark.slow
def test_two_runs_at_once_make_each_document_once(environment: SimpleNamespace, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for part in ("first", "both", "last"):
        rows = [
            {"id": f"{part}-{n}", "text": f"{part} {n}", "vector": random.normal(size=4).tolist()} for n in range(200)
        ]
        (tmp_path / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    address = new_address()
    small = "import indexer.indexing.core as core; core.BATCH_CHARACTERS = 3000; "
    small += "from likewise.shell.terminal import progress; progress.LOOK_S = 3600"  # no lines about the time it takes
    program = f"{small}; from likewise.shell import main; main()"
    command = [sys.executable, "-c", program, "index", address, "--dimensions", "4", "--json"]
    runs = [
        subprocess.Popen([*command, *(str(tmp_path / f"{part}.jsonl") for part in parts)], stdout=-1, stderr=-1)
        for parts in (("first", "both"), ("both", "last"))
    ]
    for run in runs:
        out, err = run.communicate(timeout=110)
        assert (run.returncode, err) == (0, b"")
        assert json.loads(out)["seen"] == 400
    with Index.open(address) as index:
        uris = [document.uri for document in index]
        assert len(uris) == len(set(uris)) == len(index) == 600
        report = index.check()
        assert report.ok
        assert "did not finish" not in " ".join(report.notes)


def test_the_process_that_watches_is_not_told_a_password_that_others_see(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], dict[str, str]]] = []

    class Process:
        returncode = 0

        def __init__(self, arguments: list[str], *, env: dict[str, str], **_: Any) -> None:
            started.append((arguments, env))

        def __enter__(self) -> Process:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def wait(self) -> int:
            return 0

        def terminate(self) -> None:
            pass

    monkeypatch.setattr("subprocess.Popen", Process)
    monkeypatch.setattr("indexer.stores.addresses.open.is_store", lambda address: True)
    address = f"postgresql://u:{PASSWORD}@h/db"
    with likewise.service.commands.serve._watching([address], ("notes",)):
        pass
    ((arguments, env),) = started
    assert arguments[3:] == ["watch", "--", "notes"]
    assert not any(PASSWORD in argument for argument in arguments)
    assert env["LIKEWISE_INDEX"] == address


def test_the_width_of_the_first_vector_and_an_address_with_a_password() -> None:
    address = new_address().replace(":@", f":{PASSWORD}@", 1)
    with Index.create(address, dimensions="auto") as index:
        index.add([Document("a", "x")], vectors=np.ones((1, 3), np.float32))
        assert index.dimensions == 3
        assert PASSWORD not in index.address + repr(index)
        with pytest.raises(BadInput) as refused:
            Index.create(address, dimensions=3)
        assert PASSWORD not in str(refused.value)
    with Searcher(address) as searcher:
        assert [hit.uri for hit in searcher.search_vector(np.ones(3, np.float32))] == ["a"]
        assert PASSWORD not in searcher.address + repr(searcher)
    with Index.temporary(dimensions="auto") as temporary:
        assert Path(temporary.address).is_dir()


def test_a_name_that_is_not_there_gets_those_that_are(likewise: Callable[..., Any]) -> None:
    address = new_address()
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    with administrator() as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM likewise.index ORDER BY 1").fetchall()]
    line = one_line(likewise("search", f"{address}x", "bread"), 2)
    shown = line.partition("its database has ")[2].partition("; likewise index creates one there")[0].split(", ")
    assert 0 < len(shown) <= 11
    assert shown == [*[each for each in names if each.isprintable()][:10], "..."][: len(shown)]
    assert not {each for each in names if not each.isprintable()} & {*shown}


def test_the_information_on_an_index_names_no_parts_of_a_folder(likewise: Callable[..., Any]) -> None:
    address = new_address()
    assert likewise("index", address, "-", stdin=RECORDS).code == 0
    said = likewise("info", address)
    assert "\nsearch " in said.out
    assert "segments" not in said.out
    assert "unsealed" not in said.out


def test_an_extension_in_a_schema_of_its_own(likewise: Callable[..., Any]) -> None:
    database = f"schema_{os.getpid()}"
    with administrator() as connection:
        connection.execute(f"CREATE DATABASE {database}")  # type: ignore[arg-type]
        try:
            there = parse_address(at_server(database)).conninfo
            with closing(psycopg.connect(there, autocommit=True)) as session:
                session.execute("CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")
            line = one_line(likewise("index", at_server(database), "-", stdin=RECORDS), 3)
            advice = line.partition("; ALTER ROLE ")[2]
            assert advice.endswith(' SET search_path = "$user", public, "extensions"')
            with closing(psycopg.connect(there, autocommit=True)) as session:
                path = advice.partition(" SET ")[2]
                session.execute(f"ALTER DATABASE {database} SET {path}")  # type: ignore[arg-type]
            assert likewise("index", at_server(database), "-", stdin=RECORDS).code == 0
        finally:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")  # type: ignore[arg-type]
