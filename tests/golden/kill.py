"""Leaves the states of test_states.py: what a command leaves that is killed in its middle.

Each command runs in a process of its own, which is forked from that of the tests and changed before it begins.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from said import Said
from states import CYRILLIC, FIRST, GREEK, RECORDS, FolderState, GoldenState, blind_to, make_blind
from word_encoder import WordEncoder

from indexer import Index
from indexer.encoders import registry
from indexer.indexing.core import IndexCore
from indexer.stores.addresses import copying
from indexer.stores.local import slots
from indexer.stores.local.catalog.catalog import Catalog
from indexer.stores.local.disk import failpoint
from indexer.stores.local.writer import LocalWriter
from likewise.postgres import engine as postgres_engine
from likewise.postgres.writer import PostgresWriter
from likewise.shell import main as program


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
            for encoder in (*ENCODERS.values(), *BLIND.values()):
                registry._loaded[encoder.recipe.identity] = encoder
            registry._load_spec = _named
            action()
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL if killed else status == 0, status


ENCODERS = {name: WordEncoder(**settings) for name, settings in {"first": FIRST, "words": {}}.items()}
BLIND = {letter: WordEncoder(**blind_to(letter)) for letter in (GREEK, CYRILLIC)}
for each, encoder in BLIND.items():
    make_blind(encoder, each)


def _named(spec: Any, runtime: Any) -> WordEncoder:
    return BLIND.get(spec.model, ENCODERS["words"])


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
    slots._mark = die
    migrate(state)


def dropping(state: GoldenState) -> None:
    def half_removed(folder: Path) -> None:
        (folder / "catalog.db").unlink()
        die()

    shutil.rmtree = half_removed
    postgres_engine.sweep = die
    ok("migrate", state.address("x"), "--drop")


def unfinished(state: GoldenState) -> None:
    copying.BATCH_DOCUMENTS = 2
    die_after_writes(2)
    ok("copy", state.address("x"), state.address("copy"))


def copied(state: FolderState) -> None:
    slots._sync = lambda path: die() if path == state.folder else None
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
    "copied": ([base], [copied]),
    "rebuilding": ([base], [rebuilding]),
    "beginning a rebuild": ([base], [beginning_a_rebuild]),
    "creating": ([], [creating]),
}
"""For each state what is done first, and then what is killed."""


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


def make(state: GoldenState, name: str) -> None:
    """Leave a state in an empty folder or database."""
    if name == "pair":
        return make_pair(state)
    for killed, steps in zip((False, True), STEPS[name], strict=True):
        for step in steps:
            in_child(partial(step, state), killed=killed)
