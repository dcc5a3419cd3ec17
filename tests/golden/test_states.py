"""Work that killed commands left is completed or undone.

kill.py leaves the states. states/ has a record of what an earlier program did to each: what its readers saw, and what
each command left. Here the same commands leave the same index, and no more behind it.
"""

from __future__ import annotations

import importlib
import io
import itertools
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from postgres_server import server_uri

from indexer import Index
from indexer.stores.local.disk import failpoint

sys.path.insert(0, str(Path(__file__).parent))
from kill import make
from states import (
    CYRILLIC,
    DATABASE_STATES,
    FIRST,
    FOLDER_STATES,
    GREEK,
    HERE,
    RECORDS,
    DatabaseState,
    FolderState,
    GoldenState,
    blind_to,
    make_blind,
    outcome,
)

QUICK = {
    *(("half", "migrate"), ("next swapped", "write"), ("previous in", "write"), ("making next", "write")),
    *(("copied", "copy"), ("rebuilding", "rebuild")),
}
"""The part of the default suite: commands that continue the work of a killed one, one of each kind."""


def cases(states: dict[str, tuple[str, ...]], quick: set[tuple[str, str]]) -> list[Any]:
    every = [(state, script) for state, scripts in states.items() for script in scripts]
    return [pytest.param(*case, marks=[] if case in quick else pytest.mark.slow) for case in every]


@pytest.fixture(scope="module")
def made_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the folder of a state, which is made once. Nobody changes it."""

    @cache
    def make_once(name: str) -> Path:
        folder = tmp_path_factory.mktemp("states") / "made"
        folder.mkdir()
        make(FolderState(folder), name)
        return folder

    return make_once


@pytest.fixture
def folder_state(made_folder: Callable[[str], Path], tmp_path: Path) -> Callable[[str], FolderState]:
    """Returns a copy of a state in a folder."""

    def copy(name: str) -> FolderState:
        shutil.copytree(made_folder(name), tmp_path / "state")
        return FolderState(tmp_path / "state")

    return copy


_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def new_database() -> Iterator[Callable[..., str]]:
    """Returns the name of a new database, empty or as a copy of another one."""
    import psycopg

    made: list[str] = []

    def create(template: str = "template0") -> str:
        made.append(f"state {os.getpid()} {next(_NUMBERS)}")
        with closing(psycopg.connect(server_uri(), autocommit=True)) as connection:
            connection.execute(f'CREATE DATABASE "{made[-1]}" TEMPLATE "{template}"')
        return made[-1]

    yield create
    with closing(psycopg.connect(server_uri(), autocommit=True)) as connection:
        for database in made:
            connection.execute(f'DROP DATABASE "{database}" WITH (FORCE)')


def state_in(database: str) -> DatabaseState:
    server, _, options = server_uri().partition("?")
    return DatabaseState(f"{server.rpartition('/')[0]}/{quote(database)}?{options}")


@pytest.fixture(scope="module")
def made_database(new_database: Callable[..., str]) -> Callable[[str], str]:
    """Returns the database of a state, which is made once. Nobody changes it."""

    @cache
    def make_once(name: str) -> str:
        database = new_database()
        make(state_in(database), name)
        return database

    return make_once


@pytest.fixture
def database_state(
    made_database: Callable[[str], str], new_database: Callable[..., str]
) -> Callable[[str], DatabaseState]:
    """Returns a copy of a state in a database of its own."""
    return lambda name: state_in(new_database(made_database(name)))


def left_behind(names: list[str]) -> Counter[str]:
    """Leftovers that nobody needs any longer: drafts, and schemas that no row names."""
    return Counter(name for name in names if name.endswith(("HEX", "without a row")))


def require_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise AssertionError unless a script left what is recorded, and at most the recorded leftovers."""
    names, before = found.pop("names"), expected["names"]
    assert found == {name: value for name, value in expected.items() if name != "names"}
    assert set(names) - set(left_behind(names)) == set(before) - set(left_behind(before))
    assert left_behind(names) <= left_behind(before)


@pytest.mark.parametrize(("name", "script"), cases(FOLDER_STATES, QUICK))
def test_in_a_folder(
    name: str, script: str, folder_state: Callable[[str], FolderState], likewise: Any, encoder: Any, make_encoder: Any
) -> None:
    expected = json.loads((HERE / "folders.json").read_text(encoding="utf-8"))[name][script]
    require_same(outcome(likewise, folder_state(name), script, [encoder, make_encoder(**FIRST)]), expected)


@pytest.mark.parametrize(("name", "script"), cases(DATABASE_STATES, set()))
def test_in_a_database(
    name: str, script: str, database_state: Any, likewise: Any, encoder: Any, make_encoder: Any
) -> None:
    expected = json.loads((HERE / "databases.json").read_text(encoding="utf-8"))[name][script]
    require_same(outcome(likewise, database_state(name), script, [encoder, make_encoder(**FIRST)]), expected)


@pytest.mark.parametrize("name", [name for name in FOLDER_STATES if name != "creating"])
@pytest.mark.slow
def test_who_asks_first_and_then_writes_finds_the_same(
    name: str, folder_state: Any, likewise: Any, encoder: Any, make_encoder: Any
) -> None:
    expected = json.loads((HERE / "folders.json").read_text(encoding="utf-8"))[name]
    state, encoders = folder_state(name), [encoder, make_encoder(**FIRST)]
    for script in ("read", "read", "write"):
        require_same(outcome(likewise, state, script, encoders), expected[script])


def killed(action: Callable[[], object], at: str | float, stdin: str = "") -> bool:
    """Run an action in a process that is killed at a named step, or after so many seconds; return whether it was."""
    data = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    if (child := os.fork()) == 0:
        try:
            os.environ["LIKEWISE_KILL_AT"] = at if isinstance(at, str) else ""
            importlib.reload(failpoint)
            sys.stdin = data
            action()
        finally:
            os._exit(0)
    if isinstance(at, float):
        time.sleep(at)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


STEPS = ("commit.begun", "commit.written", "commit.done", "commit.acknowledged", *failpoint.EXCHANGE_STEPS, None)
SECONDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, None)


@pytest.mark.parametrize(
    "engine",
    [pytest.param("folder", marks=pytest.mark.slow), pytest.param("database", marks=pytest.mark.long)],
)
def test_a_pair_keeps_what_one_model_cannot_read_through_every_switch(
    engine: str, request: pytest.FixtureRequest, likewise: Any, make_encoder: Any, lines: Callable[..., str]
) -> None:
    from likewise.shell import main

    for letter in (GREEK, CYRILLIC):
        make_blind(make_encoder(**blind_to(letter)), letter)
    state: GoldenState = request.getfixturevalue(f"{engine}_state")("pair")
    x, moments = state.address("x"), STEPS if engine == "folder" else SECONDS
    expected = {record["id"]: record["text"] for record in map(json.loads, RECORDS.splitlines())}
    expected |= {f"g{i}": f"λόγος {i}" for i in range(3)} | {f"c{i}": f"журнал {i}" for i in range(3)}
    live, other = GREEK, CYRILLIC

    def held() -> dict[str, str]:
        with Index.open(x) as index:
            assert index.check().ok
            return {document.uri: document.text for document in index}

    def readable(letter: str) -> dict[str, str]:
        return {uri: text for uri, text in expected.items() if letter not in text}

    def model() -> str:
        return str(likewise("info", x, "--json").json["model"])

    assert held() == readable(live)
    for number, moment in enumerate(moments):  # there and back four times
        changed = {f"w{i}": f"a changed text {number} of the number {i}" for i in range(200)}
        changed[f"only {number}"] = f"{other} {number}"
        records = lines(*({"id": uri, "text": text} for uri, text in changed.items()))
        if moment is not None:
            killed(lambda: main(["index", x, "-"]), moment, records)
        assert likewise("index", x, "-", stdin=records).code == 0
        expected |= changed
        assert (model(), held()) == (f"blind to {live}", readable(live))
        if moment is not None:
            assert killed(lambda: main(["migrate", x, "--back"]), moment) or isinstance(moment, float)
            assert held() == readable(GREEK if model() == f"blind to {GREEK}" else CYRILLIC)
        if model() == f"blind to {live}":
            assert likewise("migrate", x, "--back").code == 0
        live, other = other, live
        assert (model(), held()) == (f"blind to {live}", readable(live))
    assert likewise("index", x, "-", stdin=lines({"id": "d0", "text": "the last text"})).code == 0  # a writer sweeps
    expected["d0"] = "the last text"
    inside = [name for name in state.names() if name != "x.index"]
    assert inside == (["x.index/previous"] if engine == "folder" else ["x", "x\rprevious"])
    assert likewise("migrate", x, "--back").code == 0
    assert held() == readable(other)
