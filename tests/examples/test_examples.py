"""Every program of examples/ prints what it says, and examples/README.md lists them with their lines of code."""

from __future__ import annotations

import ast
import functools
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
ELSEWHERE = sorted(path.stem for path in EXAMPLES.glob("elsewhere/*.py"))
SLOW = {"citations_over_mcp", "clustering", "django_back_end", "evaluate", "in_postgresql", "many_languages"}
NEEDS = {"fastapi_back_end": "fastapi", "django_back_end": "django", "citations_over_mcp": "mcp"}
_NUMBER = re.compile(r"\d\.\d\d+")


def printed_by(path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[str, list[float]]:
    capfd.readouterr()
    if path.stem == "django_back_end":  # Django is configured once in a process, and another test does so too
        subprocess.run([sys.executable, str(path)], check=True)
    else:
        runpy.run_path(str(path), run_name="__main__")
    return comparable(capfd.readouterr().out)


def promised(name: str) -> tuple[str, list[float]]:
    documented = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return comparable(dedent(documented.partition("Prints:\n\n")[2]) + "\n")


def comparable(text: str) -> tuple[str, list[float]]:
    return _NUMBER.sub("#", text), [float(number) for number in _NUMBER.findall(text)]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in NAMES]
)
def test_an_example_prints_what_it_says(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    if name == "in_postgresql":
        pytest.importorskip("psycopg")
        from postgres_server import server_uri

        uri = server_uri()
        monkeypatch.setattr(sys, "argv", ["", f"{uri}{'&' if '?' in uri else '?'}index=example"])
    text, numbers = printed_by(EXAMPLES / f"{name}.py", capfd)
    expected_text, expected_numbers = promised(name)
    assert text == expected_text
    assert text
    # Weights of 16 bits differ between CPUs, and one of ten questions may then have another first hit.
    assert numbers == pytest.approx(expected_numbers, abs=0.101 if name == "many_languages" else 0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of sentence-transformers
@pytest.mark.parametrize("name", [name for name in ELSEWHERE if name != "evaluate"])
def test_the_same_without_likewise_prints_the_same(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sentence_transformers

    from indexer.encoders.recipes.locate import find_model

    model = functools.partial(sentence_transformers.SentenceTransformer, str(find_model("all-MiniLM-L6-v2")))
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", lambda name: model())
    text, numbers = printed_by(EXAMPLES / "elsewhere" / f"{name}.py", capfd)
    expected_text, expected_numbers = promised(name)
    assert text == expected_text
    assert numbers == pytest.approx(expected_numbers, abs=0.02)


def lines_of(path: Path) -> int:
    """The lines of a program that are neither empty nor comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    begin = first.end_lineno or 0 if isinstance(first, ast.Expr) else 0
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines()[begin:])


def test_the_table_lists_every_example_with_its_lines() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[(\w+)\]\(\1\.py\) \| .+ \| (\d+) \| (?:\[(\d+)\]\(elsewhere/(\w+)\.py\))? ?\|$", page, re.MULTILINE
    )
    assert [name for name, *_ in rows] == NAMES
    assert {name: int(here) for name, here, *_ in rows} == {name: lines_of(EXAMPLES / f"{name}.py") for name in NAMES}
    there = {name: int(lines) for name, _, lines, _ in rows if lines}
    assert there == {name: lines_of(EXAMPLES / "elsewhere" / f"{name}.py") for name in ELSEWHERE}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of umap
def test_the_notebook_draws_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("umap")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {}
    for cell in json.loads((EXAMPLES / "map.ipynb").read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if source.startswith("!"):
            for command in source.splitlines():
                arguments = shlex.split(command.removeprefix("!likewise "))
                program = [sys.executable, "-c", "from likewise.shell import main; main()"]
                subprocess.run([*program, *arguments], check=True, capture_output=True)
        elif cell["cell_type"] == "code":
            exec(source, names)
    assert len(names["rows"]) == len(names["hits"]) == 5
    assert len(set(names["table"]["x"])) > len(names["files"]) // 2
    assert _size(Path("map.png")) == (800, 600)


def _size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG, in pixels."""
    header = picture.read_bytes()[16:24]
    return int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
