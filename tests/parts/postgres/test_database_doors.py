"""Every command with a DSN where INDEX stands: the same exit code and the same JSON as with a folder."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

import psycopg
import pytest
from postgres_server import address_of, server_uri

import likewise.map.draw
import likewise.map.projection
import likewise.shell.commands.doctor
import likewise.watch.watch
from indexer import Index
from likewise.postgres.address import parse_address
from likewise.service.served import ServedIndexes
from likewise.shell.program import COMMANDS
from likewise.shell.terminal.output import say_json

NAME = f"doors-{os.getpid()}"

TAKE_NO_INDEX = ("cache", "tokens", "embed", "model", "compare", "open")

PASSWORD = "never-to-be-shown"

TOPICS = ("bread", "tea", "stars", "dogs", "tax", "snow")


@dataclass(frozen=True)
class Door:
    """A command line, and the members of its JSON that differ between a folder and a database.

    INDEX stands for the address of an index, NEW for one that does not exist yet, and NOTES, QUERIES, QRELS and EXPECT
    for files. The command prints JSON, unless `prints` is what it prints without.
    """

    arguments: tuple[str, ...]
    differs: tuple[str, ...] = ()
    code: int = 0
    prints: str | None = None
    before: tuple[str, ...] = field(default=())


DOORS = {
    "index": Door(("INDEX", "NOTES", "--json")),
    "update": Door(("INDEX", "--json")),
    "status": Door(("INDEX", "--json")),
    "search": Door(("INDEX", "fresh bread", "--mode", "hybrid", "--where", "year >= 2001", "--explain", "--json")),
    "similar": Door(("INDEX", "bread-1", "--json")),
    "show": Door(("INDEX", "guide.md", "--json")),
    "list": Door(("INDEX", "--where", "year < 2003", "--json")),
    "remove": Door(("INDEX", "gone", "--json"), before=("index", "INDEX", "-")),
    "info": Door(
        ("INDEX", "--json"), ("bytes", "format_version", "history", "segments", "shard_count", "unsealed", "words")
    ),
    "check": Door(("INDEX", "--json"), ("notes",)),
    "compact": Door(("INDEX", "--json"), ("bytes", "bytes_before")),
    "compile": Door(("INDEX",), code=2, prints="words"),
    "copy": Door(("INDEX", "NEW", "--json"), ("copy",)),
    "migrate": Door(("INDEX", "--back"), code=2, prints="no vectors of another model are kept"),
    "export": Door(("INDEX", "--vectors")),
    "map": Door(("INDEX", "--json")),
    "evaluate": Door(("INDEX", "--queries", "QUERIES", "--qrels", "QRELS", "--json")),
    "tune": Door(("INDEX", "--queries", "QUERIES", "--qrels", "QRELS", "--json")),
    "pairs": Door(("INDEX", "-n", "3", "--json")),
    "doctor": Door(("INDEX", "--json"), ("findings",)),
    "watch": Door(("INDEX", "NOTES", "--json")),
    "serve": Door(("INDEX",)),
    "mcp": Door(("INDEX",)),
}


def with_password(address: str) -> str:
    """Put a password into an address, if the tests' server wants none."""
    return address.replace(":@", f":{PASSWORD}@", 1)


class Shelf:
    """A folder and a database with the same index, made by the first test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.indexes = {"folder": str(folder / f"{NAME}.index"), "database": with_password(address_of(NAME))}
        self.made: set[str] = set()
        notes = folder / "notes"
        notes.mkdir()
        (notes / "guide.md").write_text("# Guide\n\nHow dough becomes bread.\n\n## Tea\n\nSteep it.\n")
        rows = [
            {"id": f"{topic}-{n}", "text": f"{topic} {topic} number {n} fresh", "title": topic, "year": 2000 + n}
            for topic in TOPICS
            for n in range(4)
        ]
        (notes / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        questions = [{"_id": f"{topic}{n}", "text": f"{topic} {n}"} for topic in TOPICS for n in range(2)]
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
        judged = [f"{question['_id']}\t{str(question['text']).replace(' ', '-')}\t1\n" for question in questions]
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))

    def new(self, kind: str, command: str) -> str:
        name = f"{NAME} {command}"
        return str(self.folder / f"{name}.index") if kind == "folder" else with_password(address_of(name))

    def line(self, kind: str, command: str, arguments: tuple[str, ...]) -> list[str]:
        values = {
            "INDEX": self.indexes[kind],
            "NEW": self.new(kind, command),
            "NOTES": str(self.folder / "notes"),
            "QUERIES": str(self.folder / "queries.jsonl"),
            "QRELS": str(self.folder / "qrels.tsv"),
        }
        return [values.get(argument, argument) for argument in arguments]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("doors"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that go on forever answer once, and nothing is done that takes seconds and does not read the index."""

    def serve(create: Any, *address: Any, **processes: Any) -> None:
        from starlette.testclient import TestClient

        with TestClient(create(access_log=False), base_url="http://localhost") as client:
            say_json(client.get("/v1/indexes").json())
            say_json(client.post(f"/v1/indexes/{NAME}/search", json={"query": "bread"}).json())

    async def serve_stdio(addresses: dict[str, str]) -> None:
        indexes = ServedIndexes(addresses)
        say_json(indexes.choose(None).describe())
        indexes.close()

    monkeypatch.setattr("likewise.service.http.run.serve", serve)
    monkeypatch.setattr("likewise.service.mcp.serve_stdio", serve_stdio)
    monkeypatch.setattr(likewise.watch.watch.Watch, "run", lambda watch: watch.scan())
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(likewise.map.draw, "require_umap", lambda: None)
    projection = likewise.map.projection
    monkeypatch.setattr(projection, "_umap", lambda vectors, _: projection.principal_components(vectors))
    monkeypatch.setattr(likewise.map.draw, "find_regions", lambda *_: ())
    for part in ("_versions", "_processor", "_models", "_readers", "_extras"):
        monkeypatch.setattr(likewise.shell.commands.doctor, part, lambda: ())


def same(value: Any, other: Any) -> bool:
    """Return whether two values of JSON are equal; numbers may differ slightly."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(same(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return bool(value == (pytest.approx(other, abs=2e-3) if isinstance(other, float) else other))


def test_every_command_is_here() -> None:
    assert {*DOORS, *TAKE_NO_INDEX} == set(COMMANDS)


@pytest.mark.parametrize("command", DOORS)
def test_a_command_with_a_dsn(command: str, likewise: Callable[..., Any], shelf: Shelf, short: None) -> None:
    door = DOORS[command]
    answers: dict[str, list[Any]] = {}
    for kind, address in shelf.indexes.items():
        if kind not in shelf.made:
            assert likewise("index", address, shelf.folder / "notes").code == 0
            shelf.made.add(kind)
        if door.before:
            assert likewise(*shelf.line(kind, command, door.before), stdin='{"id": "gone", "text": "soon"}').code == 0
        said = likewise(command, *shelf.line(kind, command, door.arguments))
        assert said.code == door.code, said.err
        assert "Traceback" not in said.err
        assert PASSWORD not in said.out + said.err
        if door.prints is not None:
            assert door.prints in said.out + said.err
            continue
        answers[kind] = [json.loads(line) for line in said.out.splitlines()]
        assert answers[kind]
        for answer in answers[kind]:
            for name in door.differs:
                answer.pop(name, None)
    if door.prints is None:
        assert same(answers["database"], answers["folder"]), answers


@pytest.fixture(scope="module")
def older(shelf: Shelf) -> dict[str, str]:
    """The addresses of a folder and of a database without the mark: they were made before the first release."""
    addresses = {kind: shelf.new(kind, "older") for kind in shelf.indexes}
    for address in addresses.values():
        Index.create(address, dimensions=4).close()
    with closing(sqlite3.connect(Path(addresses["folder"]) / "catalog.db")) as catalog:
        catalog.execute("PRAGMA application_id = 0")
    with psycopg.connect(server_uri()) as connection:
        query = "SELECT tables FROM likewise.index WHERE name = %s"
        ((tables,),) = connection.execute(query, (f"{NAME} older",)).fetchall()
        connection.execute(f"DELETE FROM {tables}.setting WHERE name = 'mark'")
    return addresses


@pytest.mark.parametrize("kind", ["folder", "database"])
@pytest.mark.parametrize("command", DOORS)
def test_an_index_from_before_the_first_release_is_refused(
    command: str, kind: str, likewise: Callable[..., Any], shelf: Shelf, short: None, older: dict[str, str]
) -> None:
    line = shelf.line(kind, command, DOORS[command].arguments)
    said = likewise(command, *(older[kind] if word == shelf.indexes[kind] else word for word in line))
    address = older[kind] if kind == "folder" else parse_address(older[kind]).shown
    sentence = (
        f"{address}: was made before the first release of likewise, and cannot be read: index its sources again "
        f"(likewise index {quote(address)} SOURCE --rebuild replaces it)"
    )
    if command == "doctor":  # it examines an index, and reports what it finds
        findings = [finding["text"] for finding in said.json["findings"] if finding["problem"]]
        assert (said.code, findings) == (1, [sentence])
        return
    assert (said.code, said.err.splitlines()[-1]) == (3, f"likewise: error: {sentence}")


def test_a_dsn_stands_in_the_environment_and_in_an_option(
    likewise: Callable[..., Any], shelf: Shelf, short: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = shelf.indexes["database"]
    if "database" not in shelf.made:
        assert likewise("index", address, shelf.folder / "notes").code == 0
        shelf.made.add("database")
    monkeypatch.chdir(tmp_path)
    expected = likewise("search", address, "dogs", "--json").json
    assert expected["matched"] == 25
    assert likewise("search", "dogs", "--index", address, "--json").json == expected
    assert likewise("pairs", "--index", address, "--json").json["texts"] == 25
    monkeypatch.setenv("LIKEWISE_INDEX", address)
    assert likewise("search", "dogs", "--json").json == expected
    assert likewise("pairs", "--json").json["texts"] == 25
    assert likewise("doctor").out.count(NAME) >= 2
