"""A process loads only what it uses. Fresh processes report what they have imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from indexer import Document, Index
from indexer.doors import TABLE

ROOT = Path(__file__).parents[2]
MODELS = {"torch", "transformers", "sentence_transformers", "openvino", "tokenizers", "safetensors"}
HEAVY = MODELS | {"faiss", "numpy", "scipy", "sqlite3", "lark", "rich", "tantivy", "lxml"}
FOR_WRITERS = {"sqlite_utils", "pandas", "pip"}
FRAMEWORKS = {"langchain_core", "llama_index", "haystack"}
WEB = {"starlette", "uvicorn", "mcp", "pydantic", "prometheus_client"}

NOT_FOR_A_QUESTION = (
    *("indexer.encoders.load.", "indexer.encoders.recipes.locate.", "indexer.encoders.torch.", "indexer.exchange."),
    *("indexer.filters.grammar.", "indexer.indexing.", "indexer.languages.detect.", "indexer.languages.notes."),
    *("indexer.sources.", "search.hits.explain.", "search.hits.rerank.", "search.query.missing_values."),
    *("difflib.", "lark.", "tomllib."),
)
"""Beginnings of the names of modules, each name with a dot at its end."""

TAIL = "\nimport json as _j, sys as _s; print(_j.dumps(sorted({name.split('.')[0] for name in _s.modules})))"


def loaded(program: str, *arguments: str) -> tuple[set[str], str]:
    """The top-level packages a program has loaded at its end, and what else it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", program + TAIL, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=110,
        check=True,
    )
    *before, last = said.stdout.splitlines()
    return set(json.loads(last)), "\n".join(before)


def command(*arguments: str) -> str:
    call = f"likewise.shell.main({list(arguments)!r})"
    return f"import likewise.shell\ntry:\n    {call}\nexcept SystemExit as end:\n    print(end.code)"


@pytest.mark.parametrize("package", ["indexer", "likewise", "search"])
def test_importing_a_room_costs_next_to_nothing(package: str) -> None:
    packages, _ = loaded(f"import {package}")
    assert package in packages
    assert not packages & (HEAVY | FRAMEWORKS | WEB)


@pytest.mark.slow  # each framework alone takes seconds to import
@pytest.mark.parametrize(
    ("name", "framework"),
    [("langchain", "langchain_core"), ("llamaindex", "llama_index.core"), ("haystack", "haystack")],
)
def test_an_adapter_loads_its_own_framework_alone(name: str, framework: str) -> None:
    """Haystack itself loads torch where it is installed."""
    pytest.importorskip(framework)
    quiet = "import os; os.environ['HAYSTACK_TELEMETRY_ENABLED'] = 'False'\n"
    packages, _ = loaded(f"{quiet}import likewise.adapters.{name}")
    assert packages & FRAMEWORKS == {framework.split(".", maxsplit=1)[0]}
    own, _ = loaded(f"{quiet}import {framework}")
    assert not (packages - own) & (MODELS | {"faiss", "tantivy"})


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    packages, printed = loaded(command(*arguments))
    assert "click" in packages
    assert not packages & (HEAVY | WEB)
    assert printed.splitlines()[-1] == "0"


def test_help_loads_the_shell_alone_of_ours(environment: SimpleNamespace) -> None:
    """It imports every command's file, and none of those may import what its command needs."""
    code = f"{command('--help')}\nimport sys\nprint(*sys.modules)"
    said = subprocess.run([environment.python, "-c", code], capture_output=True, text=True, timeout=110, check=True)
    rooms = ("indexer", "likewise", "search")
    ours = {name for name in said.stdout.splitlines()[-1].split() if name.split(".")[0] in rooms}
    shell = {name for name in ours if name.startswith("likewise.shell")}
    places = {place.partition(":")[0] for place in TABLE["commands"].values()}
    of_commands = {parent for place in places for parent in (place, place.rsplit(".", 1)[0], place.rsplit(".", 2)[0])}
    assert ours - shell - of_commands == {*rooms, "indexer.doors", "indexer.errors", "indexer.lazy_names"}


@pytest.mark.parametrize("name", ["index", "search"])
def test_help_of_a_command_loads_no_model(name: str) -> None:
    packages, printed = loaded(command(name, "--help"))
    assert name in printed
    assert not packages & (MODELS | {"faiss"})


def test_without_a_model_neither_models_nor_frameworks_are_loaded(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add([Document("a", "text", metadata={"n": 1})], vectors=np.eye(4)[:1])
    program = (
        "import sys; from search import Searcher\n"
        "print(Searcher(sys.argv[1]).search_vector([1, 0, 0, 0], 3, where='n = 1')[0].uri)"
    )
    packages, printed = loaded(program, str(tmp_path / "x.index"))
    assert printed == "a"
    assert not packages & (MODELS | WEB | {"rich", "click"} | FOR_WRITERS)
    for arguments in (["info"], ["list"], ["show", "a"], ["search", "text", "--mode", "words"], ["remove", "a"]):
        packages, _ = loaded(command(arguments[0], str(tmp_path / "x.index"), *arguments[1:]))
        assert not packages & (WEB | {"pandas", "pip"} | (MODELS if arguments[0] != "search" else set())), arguments
        assert ("sqlite_utils" in packages) == (arguments[0] == "remove"), arguments


@pytest.mark.slow
def test_writers_hide_pandas_from_sqlite_utils_alone() -> None:
    pytest.importorskip("pandas")
    packages, printed = loaded("import indexer.stores.local.catalog.database, sys; print('pandas' in sys.modules)")
    assert ("sqlite_utils" in packages, printed) == (True, "False")
    _, printed = loaded("import indexer.stores.local.catalog.database, pandas; print(pandas.Series([1]).sum())")
    assert printed == "1"


def test_a_question_by_words_loads_no_reader_of_files(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add([Document("a", "text")], vectors=np.eye(4)[:1])
    search = command("search", str(tmp_path / "x.index"), "text", "--mode", "words", "--json")
    _, printed = loaded(f"{search}\nimport sys; print('indexer.sources.files.reading' in sys.modules)")
    assert '"matched": 1' in printed
    assert printed.splitlines()[-1] == "False"


def test_a_dense_question_loads_nothing_that_other_questions_or_writers_use(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add([Document("a", "text")], vectors=np.eye(4)[:1])
    program = (
        "import sys; from search import Searcher\n"
        "print(Searcher(sys.argv[1]).search_vector([1, 0, 0, 0], 3)[0].uri, *sys.modules)"
    )
    _, printed = loaded(program, str(tmp_path / "x.index"))
    uri, *modules = printed.split()
    assert uri == "a"
    assert {"search.answering", "indexer.stores.local.segments.faiss_segment"} <= {*modules}
    assert [each for each in modules if f"{each}.".startswith(NOT_FOR_A_QUESTION)] == []


def test_a_client_of_a_service_loads_neither_a_store_nor_a_web_framework() -> None:
    packages, _ = loaded("import likewise.client.client")
    assert "httpx" in packages
    assert not packages & (MODELS | WEB | {"sqlite3", "faiss", "tantivy"})  # httpx imports rich and click


@pytest.mark.parametrize("path", ["indexer.workers", "search.client", "search.server"])
def test_a_public_path_loads_its_part_when_a_name_is_used(path: str) -> None:
    packages, printed = loaded(f"import sys, {path}\nprint(*(name for name in sys.modules if 'likewise.' in name))")
    assert printed == ""
    assert not packages & (HEAVY | WEB | {"httpx", "ray"})


@pytest.mark.slow
def test_a_second_run_over_the_same_files_loads_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    (tmp_path / "a.txt").write_text("one text")
    os.utime(tmp_path / "a.txt", (1, 1))
    both = command("index", str(folder), str(tmp_path / "a.txt"), "--json")
    first, printed = loaded(both)
    assert '"indexed": 1' in printed
    assert "torch" in first
    second, printed = loaded(both)
    assert '"unchanged": 1' in printed
    assert not second & MODELS


def test_openvino_reports_nothing_to_its_makers(tmp_path: Path) -> None:
    """By itself it sends an event with each import, and keeps a number of the user in the home folder."""
    program = "import indexer.encoders, openvino.tools.ovc as ovc; print(type(ovc.telemetry).__module__)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    assert said.stdout == "openvino.tools.ovc.telemetry_stub\n"
    assert list(tmp_path.iterdir()) == []


def test_changing_back_to_another_model_loads_no_reader_of_files() -> None:
    program = "import sys, likewise.migration.migrate\nprint('indexer.sources.files.reading' in sys.modules)"
    packages, printed = loaded(program)
    assert printed == "False"
    assert not packages & MODELS
