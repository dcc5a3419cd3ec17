"""Made tests/golden/states/, once, with the program of commit 3413963, and what that program did to each state.

In a checkout of that commit: python PATH/OF/THIS/FILE, with its tests/ on PYTHONPATH. It stops that program where later
ones have other parts. What is left is a state: a folder in folders.tar.xz, or a dump in databases.tar.xz.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ |= {"LIKEWISE_RUNTIME": "torch", "LIKEWISE_VECTOR_CACHE": "off"}
sys.path.append(str(Path(__file__).parent))

import indexer.copying
import psycopg
from indexer.core import IndexCore
from postgres_server import programs, server_uri
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
    save,
)
from word_encoder import WordEncoder

import indexer.stores.postgres.store
from indexer import Index
from indexer.encoders import registry
from indexer.stores.local import failpoint
from indexer.stores.local.catalog import Catalog
from indexer.stores.local.writer import LocalWriter
from indexer.stores.postgres.writer import PostgresWriter
from search.cli import main as program

ENCODERS = {name: WordEncoder(**settings) for name, settings in {"first": FIRST, "words": {}}.items()}
BLIND = {letter: WordEncoder(**blind_to(letter)) for letter in (GREEK, CYRILLIC)}
for each, encoder in BLIND.items():
    make_blind(encoder, each)
for one in (*ENCODERS.values(), *BLIND.values()):
    registry._loaded[one.recipe.identity] = one


def load_spec(spec: Any, runtime: Any) -> Any:
    chosen = BLIND.get(spec.model, ENCODERS["words"])
    return chosen, chosen.recipe


registry._load_spec = load_spec


@dataclass(frozen=True)
class Said:
    """The outcome of a command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out.splitlines()[-1])


def likewise(*arguments: str | Path, stdin: str | bytes = "") -> Said:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            program([str(argument) for argument in arguments])
        except SystemExit as ended:
            return Said(int(ended.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("a command line ends")


def in_child(action: Callable[[], object], *, killed: bool = False) -> None:
    """Run an action in a process of its own, which is killed in it or is not."""
    if (child := os.fork()) == 0:
        try:
            action()
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL if killed else status == 0, status


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_writes(count: int) -> None:
    """Have this process killed when it has committed so many batches."""
    left = count

    def killing(put: Any) -> Any:
        def write(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            result = put(*arguments, **named)
            left -= 1
            if not left:
                die()
            return result

        return write

    for writer in (LocalWriter, PostgresWriter):
        writer.put = killing(writer.put)


def ok(*arguments: str, stdin: str = "") -> None:
    said = likewise(*arguments, stdin=stdin)
    assert said.code == 0, said


def base(state: GoldenState) -> None:
    Index.create(state.address("x"), ENCODERS["first"]).close()
    ok("index", state.address("x"), "-", stdin=RECORDS)


def migrate(state: GoldenState) -> None:
    ok("migrate", state.address("x"), "--model", "words", "--yes")


def migrate_without_the_switch(state: GoldenState) -> None:
    assert likewise("migrate", state.address("x"), "--model", "words").code == 2


def back(state: GoldenState) -> None:
    ok("migrate", state.address("x"), "--back")


def half(state: GoldenState) -> None:
    IndexCore.batch_characters = property(lambda self: 60)
    die_after_writes(2)
    migrate(state)


def making_next(state: GoldenState) -> None:
    import_module("indexer.stores.local.beside")._mark = die
    migrate(state)


def dropping(state: GoldenState) -> None:
    def half_removed(folder: Path) -> None:
        (folder / "catalog.db").unlink()
        die()

    shutil.rmtree = half_removed
    indexer.stores.postgres.store.sweep = die
    ok("migrate", state.address("x"), "--drop")


def unfinished(state: GoldenState) -> None:
    indexer.copying.BATCH_DOCUMENTS = 2
    die_after_writes(2)
    ok("copy", state.address("x"), state.address("copy"))


def copied(state: GoldenState) -> None:
    import_module("indexer.stores.local.swap").sync = die
    ok("copy", state.address("x"), state.address("copy"))


def rebuilding(state: GoldenState) -> None:
    die_after_writes(1)
    ok("index", state.address("x"), "-", "--rebuild")


def beginning_a_rebuild(state: GoldenState) -> None:
    Catalog.initialise = die
    ok("index", state.address("x"), "-", "--rebuild")


def creating(state: GoldenState) -> None:
    Catalog.initialise = die
    Index.create(state.address("x"), ENCODERS["first"])


def exchange(step: str, place: str, state: GoldenState) -> None:
    failpoint._STEP, failpoint._remaining = f"exchange.{step}", 1
    (migrate if place == "next" else back)(state)


def keep_the_one_before(state: FolderState) -> None:
    """Make an index of its own of the vectors before, as who moves the folder does."""
    index = state.folder / "x.index"
    (index / "previous").rename(state.folder / "moved")
    shutil.rmtree(index)
    (state.folder / "moved").rename(index)


Step = Callable[[Any], None]

EXCHANGES: dict[str, tuple[list[Step], list[Step]]] = {
    f"{place} {step}": ([base] if place == "next" else [base, migrate], [partial(exchange, step, place)])
    for place in ("next", "previous")
    for step in ("out", "swapped", "in")
}
STEPS: dict[str, tuple[list[Step], list[Step]]] = EXCHANGES | {
    "half": ([base], [half]),
    "whole": ([base, migrate_without_the_switch], []),
    "previous": ([base, migrate], []),
    "making next": ([base], [making_next]),
    "dropping": ([base, migrate], [dropping]),
    "stale mark": ([base, migrate, keep_the_one_before], []),
    "unfinished": ([base], [unfinished]),
    "copied": ([base], [unfinished, copied]),
    "rebuilding": ([base], [rebuilding]),
    "beginning a rebuild": ([base], [beginning_a_rebuild]),
    "creating": ([], [creating]),
}
"""For each state what is done first, and then what is killed."""


def make(state: GoldenState, name: str) -> None:
    """Leave a state in an empty folder or database."""
    for killed, steps in zip((False, True), STEPS[name], strict=True):
        for step in steps:
            in_child(partial(step, state), killed=killed)


def make_pair(state: GoldenState) -> None:
    """Leave an index and the one before it, each with documents that only one of the models can read."""
    x = state.address("x")

    def work() -> None:
        Index.create(x, BLIND[CYRILLIC]).close()
        greek = "".join(json.dumps({"id": f"g{i}", "text": f"λόγος {i}"}) + "\n" for i in range(3))
        ok("index", x, "-", stdin=RECORDS + greek)
        ok("migrate", x, "--model", GREEK, "--yes")
        ok("index", x, "-", stdin="".join(json.dumps({"id": f"c{i}", "text": f"журнал {i}"}) + "\n" for i in range(3)))

    in_child(work)


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    uri = server_uri()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve()
        expected: dict[str, dict[str, Any]] = {}
        for name, scripts in FOLDER_STATES.items():
            (root / "made" / name).mkdir(parents=True)
            make(FolderState(root / "made" / name), name)
            expected[name] = {}
            for script in scripts:
                shutil.copytree(root / "made" / name, root / "used")
                expected[name][script] = outcome(likewise, FolderState(root / "used"), script, [*ENCODERS.values()])
                shutil.rmtree(root / "used")
        save(expected, HERE / "folders.json")
        (root / "made" / "pair").mkdir()
        make_pair(FolderState(root / "made" / "pair"))
        for lock in (root / "made").rglob("LOCK"):
            lock.write_text("")  # it names a process of this machine
        pack(root / "made", HERE / "folders.tar.xz")
        expected = {}
        (root / "dumps").mkdir()
        for name, scripts in {**DATABASE_STATES, "pair": ()}.items():
            state = DatabaseState(new_database(uri, f"made {name}"))
            if name == "pair":
                make_pair(state)
            else:
                make(state, name)
            (root / "dumps" / f"{name}.sql").write_bytes(dump(state.uri))
            expected[name] = {}
            for script in scripts:
                used = DatabaseState(new_database(uri, f"used {name} {script}", template=f"made {name}"))
                expected[name][script] = outcome(likewise, used, script, [*ENCODERS.values()])
        save({name: scripts for name, scripts in expected.items() if scripts}, HERE / "databases.json")
        pack(root / "dumps", HERE / "databases.tar.xz")


def new_database(uri: str, name: str, template: str = "template0") -> str:
    """Make a database, as a copy of another one; return its URI."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    server, _, options = uri.partition("?")
    return f"{server.rpartition('/')[0]}/{name.replace(' ', '%20')}?{options}"


def dump(uri: str) -> bytes:
    """Return the statements that make the tables of a database again, without those of pg_dump's own settings."""
    options = ("--inserts", "--rows-per-insert=1000", "--no-owner", "--no-privileges", "--schema=likewise*")
    said = subprocess.run([programs() / "pg_dump", *options, uri], stdout=subprocess.PIPE, check=True).stdout
    lines = [
        line
        for line in said.split(b"\n")
        if line
        and not line.startswith((b"--", b"SET ", b"\\restrict", b"\\unrestrict", b"SELECT pg_catalog.set_config"))
    ]
    return b"\n".join(lines) + b"\n"


def pack(folder: Path, archive: Path) -> None:
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name, filter=plain)


if __name__ == "__main__":
    main()
