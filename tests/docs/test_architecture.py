"""docs/architecture.md lists the imports of the source, and its tables name functions and folders that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from drawn_parts import PARTS
from folder_imports import ENGINE_FILES, PAGE, Arrow, imported, room, with_imports
from source_imports import FILES, MODULES, ROOT, VALUES, edges, module_of, tree

TEXT = PAGE.read_text(encoding="utf-8")
MAX_WORDS = 1200
"""Maximum words about the engine. A person reads them in ten minutes, with time for the files that they name."""


def listed(page: str) -> tuple[set[Arrow], set[Arrow]]:
    """The arrows in the table of folders and in the last list, both written without `indexer/`."""
    rows = re.findall(r"^\| (`(?:indexer|search)[\w/]*`|the values) \| .* \| (.*) \|$", page, re.MULTILINE)
    between = {
        ("values" if start == "the values" else start.strip("`"), _whole(end))
        for start, ends in rows
        for end in re.findall(r"`([\w/]+)`", ends)
    }
    block = page.rpartition("```text\n")[2].partition("```")[0]
    return between, {(_whole(start), _whole(end)) for start, end in _arrows(block)}


def _arrows(block: str) -> Iterator[Arrow]:
    for line in block.splitlines():
        start, ends = line.split(" → ")
        yield from ((start, end) for end in ends.split(", "))


def _whole(folder: str) -> str:
    return folder if folder.partition("/")[0] in ("indexer", "search") else f"indexer/{folder}"


def words(text: str) -> int:
    """Return how many words a text has, in its tables too. Lines of tables are not words."""
    return len(re.findall(r"[^\s|]*\w[^\s|]*", text))


def test_every_import_between_two_folders_is_listed_and_every_arrow_is_an_import() -> None:
    between, inside = imported()
    by_rule = {(start, end) for start, end in between if end == "values"}
    assert listed(TEXT) == (between - by_rule, inside), "run: make docs"
    assert len(by_rule) >= 5


def test_imports_are_written_into_the_table_and_the_list() -> None:
    page = (
        "| `search` | Asks. | `old` |\n| `indexer/x` | Reads. | |\n| the values | `a`: small. | - |\n\n"
        "```text\nother\n```\n\n## Imports between sub-folders\n\nA list.\n\n```text\nx → y\n```\n"
    )
    between = {("search", "indexer"), ("search", "indexer/x"), ("search", "values"), ("values", "indexer/x")}
    inside = {("indexer/x", "indexer/x/z"), ("search/a", "search/a/b"), ("search/a", "search/a/c")}
    written = with_imports(page, between, inside)
    assert written == (
        "| `search` | Asks. | `indexer`, `x` |\n| `indexer/x` | Reads. | - |\n| the values | `a`: small. | `x` |\n\n"
        "```text\nother\n```\n\n## Imports between sub-folders\n\nA list.\n\n"
        "```text\nx → x/z\nsearch/a → search/a/b, search/a/c\n```\n"
    )
    assert listed(written) == (between - {("search", "values")}, inside)
    assert with_imports(written, between, inside) == written


def test_every_value_is_listed_and_imported_by_another_folder() -> None:
    text = re.search(r"^\| the values \| (.*?) of `indexer/`", TEXT, re.MULTILINE)
    assert text is not None
    assert {f"indexer.{name}" for name in re.findall(r"`(\w+)`", text[1])} == VALUES
    used = {
        module_of(target)
        for file in ENGINE_FILES
        for target in (MODULES[module] for module in edges(file))
        if room(target) == "values" and room(file) not in ("values", "indexer")
    }
    assert used == VALUES


def test_every_folder_is_described() -> None:
    described = re.findall(r"^\| `((?:indexer|search)[\w/]*)` \| \w.* \| .* \|$", TEXT, re.MULTILINE)
    assert sorted(described) == sorted({room(file) for file in ENGINE_FILES} - {"values"})


def test_every_part_has_the_line_of_its_drawing() -> None:
    lines = re.findall(r"^\| `likewise/(\w+)` \| (.+) \|$", TEXT, re.MULTILINE)
    assert lines == [(part, drawn["what"]) for part, drawn in sorted(PARTS.items())]


def test_the_engine_is_read_in_ten_minutes() -> None:
    assert words("| one `two/three.py` | four |\n| --- | --- |\n") == 3
    engine, _, rest = TEXT.partition("\n## The parts\n")
    assert rest
    assert words(engine) <= MAX_WORDS


def test_every_step_names_a_function_of_its_files() -> None:
    pages = [TEXT, *((ROOT / "likewise" / part / "README.md").read_text(encoding="utf-8") for part in PARTS)]
    row = re.compile(r"^\| .+ \| (`(?:indexer|search|likewise)/.+) \| (`.+`) \|$", re.MULTILINE)
    steps = [step for page in pages for step in row.findall(page)]
    assert len(steps) == 25
    for places, names in steps:
        files = [
            file for place in re.findall(r"`([^`]+)`", places) for file in FILES if file.as_posix().startswith(place)
        ]
        defined = set[str]()
        for file in files:
            for node in tree(file).body:
                if isinstance(node, ast.ClassDef | ast.FunctionDef):
                    defined.add(node.name)
                if isinstance(node, ast.ClassDef):
                    defined |= {
                        f"{node.name}.{each.name}"
                        for each in node.body
                        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                    }
        assert set(re.findall(r"`([\w.]+)`", names)) <= defined, (places, names)
