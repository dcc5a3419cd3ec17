"""Parts are deleted from a copy of the tree: all of them, or one that nothing else may need."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from drawn_parts import ENGINE, PARTS, PUBLIC_PATHS, copy_without, part_of
from source_imports import MODULES, ROOT, edges

pytestmark = pytest.mark.slow  # each part is deleted alone, and every other module imported in a process of its own

ENGINE_ALONE = """
from pathlib import Path
from indexer import Index
from indexer.indexing.core import IndexCore
from indexer.indexing.runs import index_sources
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
from search import Searcher
from word_encoder import WordEncoder

encoder = WordEncoder()
Path("texts").mkdir()
Path("texts/moon.txt").write_text("The moon pulls the water of the sea.")
Path("texts/bread.md").write_text("# Bread\\n\\nKnead the dough and bake the bread.")
Path("texts/rows.csv").write_text("id,text,year\\nriver,The water of the river reaches the sea.,2024\\n")
Path("texts/page.pdf").write_bytes(b"%PDF-1.7 page")
Index.create("x.index", encoder).close()
with IndexCore.open("x.index", encoder) as core, core.writer() as writer:
    outcome = index_sources(core, writer, [(ReadOptions(), open_sources(["texts"], ReadOptions(), holds_store))])
print(outcome.summary.indexed, outcome.summary.skipped)
with core.store.snapshot() as snapshot:
    print(*(row.reason.text() for row in snapshot.ledger() if row.state == "skipped"))
with Searcher("x.index", encoder) as searcher:
    for mode in ("dense", "words", "hybrid"):
        print(mode, Path(searcher.search("bake bread", k=1, mode=mode)[0].uri).name)
    print(searcher.search("sea", where="year = 2024", mode="words")[0].uri)
"""


def run(folder: Path, program: str, *arguments: str) -> str:
    """Return what a program prints that has the packages of a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests")])}
    command = [sys.executable, "-P", "-c", program, *arguments]
    said = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)
    assert said.returncode == 0, said.stderr[-2000:]
    return said.stdout


def importing(wanted: Collection[str]) -> set[str]:
    """Return these modules and all modules that import one of them, directly or through others."""
    found = set(wanted)
    while more := {name for name, file in MODULES.items() if name not in found and edges(file) & found}:
        found |= more
    return found


NOT_IMPORTED = {"likewise.__main__", "likewise.workers.ray_workers"} | {
    f"{package}.adapters.{name}"
    for package in ("likewise", "search")
    for name in ("haystack", "langchain", "llamaindex", "mteb")
}
"""Modules whose frameworks take seconds to import, and the one that runs the command."""

IMPORT_ALL = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
"""


def test_the_engine_indexes_and_answers_without_any_part(tmp_path: Path) -> None:
    copy_without(tmp_path, PARTS)
    lines = run(tmp_path, ENGINE_ALONE).splitlines()
    assert lines[0] == "3 1"
    assert lines[1] == "no reader of pdf is installed: pip install likewise"
    assert lines[2:] == ["dense bread.md", "words bread.md", "hybrid bread.md", "river"]


def test_every_module_of_the_engine_is_imported_without_any_part(tmp_path: Path) -> None:
    copy_without(tmp_path, PARTS)
    names = [
        name for name in MODULES if part_of(name) == ENGINE and name not in PUBLIC_PATHS and name[:8] != "likewise"
    ]
    run(tmp_path, IMPORT_ALL, json.dumps(names))


IMPORT_PUBLIC_PATHS = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    try:
        path = importlib.import_module(name)
        getattr(path, path.__all__[0])
    except ImportError as error:
        print(error)
"""


def test_a_public_path_without_its_part_says_what_to_install(tmp_path: Path) -> None:
    copy_without(tmp_path, PARTS)
    assert run(tmp_path, IMPORT_PUBLIC_PATHS, json.dumps(list(PUBLIC_PATHS))).splitlines() == [
        f"{name} needs a part of likewise that is not installed ({part}): pip install likewise"
        for name, part in PUBLIC_PATHS.items()
    ]


@pytest.mark.parametrize("part", PARTS)
def test_what_does_not_name_a_part_does_without_it(part: str, tmp_path: Path) -> None:
    """Optional packages of other parts are imported too: the extras are installed for the tests."""
    copy_without(tmp_path, [part])
    missing = importing([name for name in MODULES if part_of(name) == part])
    names = [name for name in MODULES if name not in missing | NOT_IMPORTED and (tmp_path / MODULES[name]).exists()]
    assert len(names) > 200
    run(tmp_path, IMPORT_ALL, json.dumps(names))


SKIPPED_WITHOUT_PARTS = re.compile(r"the part \w+ is not installed$|not root|root may|is not set")


@pytest.mark.long
@pytest.mark.timeout(1800)  # about ten minutes under coverage
def test_the_tests_of_the_engine_pass_without_any_part_and_cover_it(open_path: Path) -> None:
    """Some of them run as a user who may enter this folder and not one of `tmp_path`."""
    copy_without(open_path, PARTS)
    for name in ("benchmarks", "data", "docs", "tests/engine", "tests/golden"):
        shutil.copytree(ROOT / name, open_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (ROOT / "pyproject.toml", ROOT / "tests/contracts/parts.toml", *(ROOT / "tests").glob("*.py")):
        place = open_path / file.relative_to(ROOT)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(file, place)
    processes = ["-n", "auto", "--dist", "loadfile"]
    measured = ["--cov=indexer", "--cov=search", "--cov-report=json", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "tests/engine", "-q", "-m", "not long", *processes, *measured]
    environment = {**os.environ, "PYTHONPATH": str(open_path)}
    said = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=open_path, env=environment)
    assert said.returncode == 0, said.stdout[-3000:]
    skipped = re.findall(r"^SKIPPED \[\d+\] \S+ (.+)$", said.stdout, re.MULTILINE)
    assert [reason for reason in skipped if not SKIPPED_WITHOUT_PARTS.search(reason)] == []
    assert json.loads((open_path / "coverage.json").read_text())["totals"]["percent_covered"] >= 90


def demo(folder: Path) -> list[tuple[str, float]]:
    """Return the hits of `make demo` with the packages of a folder."""
    recipe = re.findall(r"^\t\$\(BIN\)/likewise (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(recipe) == 4
    shutil.copytree(ROOT / "data", folder / "data", dirs_exist_ok=True)
    said = [run(folder, "from likewise.shell import main; main()", *shlex.split(line), "--json") for line in recipe]
    return [(hit["uri"], hit["score"]) for answer in said[1:] for hit in json.loads(answer)["hits"]]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_demo_answers_with_the_shell_alone(tmp_path: Path) -> None:
    copy_without(tmp_path / "whole", [])
    copy_without(tmp_path / "shell", [part for part in PARTS if part != "shell"])
    whole, alone = demo(tmp_path / "whole"), demo(tmp_path / "shell")
    assert len(whole) == 9
    assert [uri for uri, _ in alone] == [uri for uri, _ in whole]
    assert [score for _, score in alone] == pytest.approx([score for _, score in whole], abs=0.005)
