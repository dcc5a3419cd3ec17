"""Addresses of indexes in databases: what they name, and that nothing shows a password of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from indexer import Index
from indexer.errors import BadInput
from indexer.stores.addresses.open import is_uri, without_passwords
from likewise.federation.index_names import name_in
from likewise.postgres.address import parse_address, passwords
from likewise.postgres.schema import pgvector_version


@pytest.mark.parametrize(
    ("text", "conninfo", "index", "shown"),
    [
        ("postgresql://u@h/db?index=papers", "postgresql://u@h/db", "papers", "postgresql://u@h/db?index=papers"),
        ("postgres://h", "postgres://h/", "default", "postgres://h/?index=default"),
        ("postgresql://", "postgresql:///", "default", "postgresql:///?index=default"),
        (
            "postgresql:///db?host=/run/a+b&index=my%20pa%25pers%2F%C3%A9'&sslmode=require",
            "postgresql:///db?host=/run/a+b&sslmode=require",
            "my pa%pers/é'",
            "postgresql:///db?host=/run/a+b&sslmode=require&index=my%20pa%25pers%2F%C3%A9%27",
        ),
        ("postgresql://h/db?index=a+b", "postgresql://h/db", "a+b", "postgresql://h/db?index=a%2Bb"),
        (
            "postgresql://h/db?index=über uns",
            "postgresql://h/db",
            "über uns",
            "postgresql://h/db?index=%C3%BCber%20uns",
        ),
        (
            "postgresql://u:s%40cret@h1:1,[::1]:2/db",
            "postgresql://u:s%40cret@h1:1,[::1]:2/db",
            "default",
            "postgresql://u@h1:1,[::1]:2/db?index=default",
        ),
        (
            "postgresql://u@h/db?password=secret&index=x&sslpassword=other",
            "postgresql://u@h/db?password=secret&sslpassword=other",
            "x",
            "postgresql://u@h/db?index=x",
        ),
    ],
)
def test_an_address_is_a_uri_of_libpq_and_a_name(text: str, conninfo: str, index: str, shown: str) -> None:
    address = parse_address(text)
    assert (address.conninfo, address.index, address.shown) == (conninfo, index, shown)
    assert is_uri(text)
    assert name_in(text) == index
    assert parse_address(shown).index == index
    assert parse_address(shown).shown == shown


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:se@cret@h/db",
        "postgresql://u:se/cret@h/db",
        "postgresql://u:se?cret@h/db",
        "postgresql://u:se?x=cret@h/db",
        "postgresql://u:se#cret@h/db",
        "postgresql://u:se%cret@h/db",
        "postgresql://u:cret%00@h/db",
        "postgresql://u:cret@[::1/db",
        "postgresql://u:cret@h:port/db",
        "postgresql://u@h/db?password",
        "postgresql://u@h/db?password=a=cret",
        "postgresql://u:cret@h/db?index=",
        "postgresql://u:cret@h/db?index=a%0Ab",
        "postgresql://u:cret@h/db?index=%FF",
        f"postgresql://u:cret@h/db?index={'x' * 201}",
    ],
)
def test_what_libpq_would_read_otherwise_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_address(text)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "POSTGRESQL://u:secret@h/db",
        " postgresql://u:secret@h/db",
        "postgresql+psycopg://u:secret@h/db",
        "postgresql:/u:secret@h/db",
        "host=h user=u password=secret dbname=db",
    ],
)
def test_what_was_meant_as_an_address_is_not_a_path(
    likewise: Callable[..., Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("bread")
    for arguments in (
        ["index", text, "a.txt"],
        ["search", text, "bread"],
        ["info", text],
        ["copy", "x", text],
        ["search", "bread", "--index", text],
    ):
        said = likewise(*arguments)
        said.failed(2)
        is_copy = arguments[0] == "copy"
        assert ("the address of a database begins with postgresql://" in said.err) != is_copy, said.err
        assert "secret" not in said.out + said.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(BadInput, match="begins with postgresql://"):
        Index.create(text, dimensions=2)


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.8.5", (0, 8, 5)), ("0.8.0.google-3", (0, 8, 0)), ("0.9.0rc1", (0, 9, 0)), ("1.0-dev", (1, 0)), ("abc", ())],
)
def test_the_version_of_pgvector_may_have_a_part_of_a_service(version: str, numbers: tuple[int, ...]) -> None:
    class Connection:
        def execute(self, query: str) -> Any:
            return SimpleNamespace(fetchone=lambda: (version,))

    assert pgvector_version(cast(Any, Connection())) == numbers


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:secret@h/db?index=x", "postgresql://u@h/db?index=x"),
        ("name=postgres://u:secret@h1:1,h2:2/db is one", "name=postgres://u@h1:1,h2:2/db is one"),
        ("two: postgresql://u:a@h and postgresql://v:b@h", "two: postgresql://u@h and postgresql://v@h"),
        ("postgresql://u:se@cret@h/db", "postgresql://u@h/db"),
        ("postgresql://u:se/cret@h/db", "postgresql://u@h/db"),
        ("postgresql://u@h/db?password=secret&index=x", "postgresql://u@h/db?index=x"),
        ("postgresql://u@h/db?index=x&password=secret", "postgresql://u@h/db?index=x"),
        ("postgresql://u@h/db?password=s&sslpassword=t&index=x", "postgresql://u@h/db?index=x"),
        ("postgresql://u@h/db?password=s&sslpassword=t", "postgresql://u@h/db"),
        ("postgresql://u@h:5432/db?user=a@b", "postgresql://u@h:5432/db?user=a@b"),
        ("postgresql://h:5432/db?user=a@b", "postgresql://h:5432/db?user=a@b"),
        ("POSTGRESQL+psycopg://u:secret@h/db", "POSTGRESQL+psycopg://u@h/db"),
        ("https://u:p@h", "https://u:p@h"),
        ("/home/me/notes.index", "/home/me/notes.index"),
    ],
)
def test_a_message_has_addresses_without_passwords(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def test_passwords_are_looked_for_as_they_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "from the environment")
    address = parse_address("postgresql://u:s%40cret@h/db?sslpassword=a%20key&password=abc")
    assert passwords(address) == ["from the environment", "s%40cret", "a%20key", "s@cret", "a key"]
    assert "cret" not in repr(address)
