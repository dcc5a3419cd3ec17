"""Encoders that need no model as fixtures, and the command line called in this process."""

from __future__ import annotations

import gc
import io
import json
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from drawn_parts import PARTS
from engine.stores.reference import ReferenceEngine
from hardware import hide_gpus, keep_folders_in_memory, share_out
from said import Said
from word_encoder import WordEncoder

import indexer.encoders
from indexer.doors import has_part
from indexer.encoders import registry
from indexer.encoders.recipes.recipe import RecipeSpec
from indexer.records import KnownFile
from indexer.sources import Entry, ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store

pytest_plugins = ["tiny_models"]

# Torch embeds documents in every test, whatever the CPU, and in the processes that tests start: they inherit this.
os.environ["LIKEWISE_RUNTIME"] = "torch"
# No test takes vectors from the cache of the user who runs it.
os.environ["LIKEWISE_VECTOR_CACHE"] = "off"

# Threads of OpenMP that wait for each other keep a core busy, unless they are told to sleep. Tests share the cores with
# processes that they start: with the cores taken by others, those of test_raw_pooling.py took eight times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A process that may not keep bytecode compiles all of its modules, and tests start hundreds of processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Nothing that the collection of tests makes is garbage, and it makes much.
gc.disable()

hide_gpus()
keep_folders_in_memory()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`."""
    return share_out()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that may take longest, so that no process works on alone at the end."""
    if any(mark in config.getoption("markexpr") for mark in ("slow", "long")):
        minutes: dict[Path, float] = {}
        for item in items:
            mark = item.get_closest_marker("timeout")
            minutes[item.path] = max(minutes.get(item.path, 0), mark.args[0] if mark else 0)
        items.sort(key=lambda item: -minutes[item.path])


def pytest_collection_finish() -> None:
    """Leave the modules of all tests out of later collections of garbage: each of them takes 2 s with these."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a part that is not installed: the tests of the engine run without any."""
    for mark in item.iter_markers("needs"):
        for part in mark.args:
            assert part in PARTS
            if not has_part(part):
                pytest.skip(f"the part {part} is not installed")


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Lets the process find encoders without loading a model, until the end of the test.

    Its arguments: the encoders of their recipes; `named`, a function that returns the encoder for a requested recipe;
    `alone=True` forgets every other encoder.
    """

    def find(
        *encoders: WordEncoder, named: Callable[[RecipeSpec], WordEncoder] | None = None, alone: bool = False
    ) -> None:
        if alone:
            patch.setattr(registry, "_loaded", {})
            patch.setattr(registry, "_compiled", {})
        if named is not None:
            patch.setattr(registry, "_load_spec", lambda spec, runtime: named(spec))
        for encoder in encoders:
            patch.setitem(registry._loaded, encoder.recipe.identity, encoder)

    with pytest.MonkeyPatch.context() as patch:
        yield find


@pytest.fixture
def make_encoder(register: Callable[..., None]) -> Callable[..., WordEncoder]:
    """Word encoders, which stored recipes find again as they would find a model."""

    def make(**settings: Any) -> WordEncoder:
        encoder = WordEncoder(**settings)
        register(encoder)
        return encoder

    return make


@pytest.fixture(scope="module")
def module_encoder() -> Iterator[WordEncoder]:
    """A word encoder for all tests of a file."""
    encoder = WordEncoder(name="words of a file")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._loaded, encoder.recipe.identity, encoder)
        yield encoder


@pytest.fixture
def encoder(make_encoder: Callable[..., WordEncoder]) -> WordEncoder:
    return make_encoder()


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A temporary folder that every user may enter: pytest keeps those of `tmp_path` to the one who runs it."""
    with tempfile.TemporaryDirectory(prefix="likewise-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


@pytest.fixture
def likewise(
    encoder: WordEncoder,
    register: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Callable[..., Said]:
    """Runs a command line in this process; every model that is named is the word encoder."""
    if not has_part("shell"):
        pytest.skip("the part shell is not installed")
    from likewise.shell import main

    def load(model: str, **settings: Any) -> WordEncoder:
        return encoder

    def run(*arguments: str | Path, stdin: str | bytes = b"") -> Said:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("default")
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                main([str(argument) for argument in arguments])
            said = capfd.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err, shlex.join(map(str, arguments)))

    monkeypatch.setattr("likewise.shell.terminal.progress.LOOK_S", 3600.0)  # no lines about the time that a test takes
    monkeypatch.setattr(indexer.encoders, "load_encoder", load, raising=False)
    register(named=lambda _: encoder)
    monkeypatch.delenv("LIKEWISE_INDEX", raising=False)
    return run


@pytest.fixture
def lines() -> Callable[..., str]:
    """Records as JSON lines."""

    def write(*records: Any) -> str:
        return "".join(json.dumps(record) + "\n" for record in records)

    return write


@pytest.fixture
def collect() -> Callable[..., list[Entry]]:
    """Reads SOURCEs into a list of entries."""

    def run(*arguments: Path | str, known: dict[str, KnownFile] | None = None, **options: Any) -> list[Entry]:
        settings = ReadOptions(**options)
        sources = open_sources([str(argument) for argument in arguments], settings, holds_store)
        return [entry for source in sources for entry in read(source, settings, (known or {}).get)]

    return run


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes and searchers use reference stores, where a test does not depend on an engine; a path is only a name."""
    monkeypatch.setattr("indexer.stores.addresses.open.engine_of", lambda address, *_: ReferenceEngine.at(str(address)))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """How to run Python in a process of its own, with this project on its path."""
    root = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", str(root))
    return SimpleNamespace(python=sys.executable, root=root)
