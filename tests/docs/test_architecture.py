"""The lists of docs/architecture.md have the arrows that the imports have, and its tables name what there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from drawn_parts import ENGINE, PARTS, part_of
from source_imports import FILES, MODULES, ROOT, VALUES, edges, module_of, tree

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

Arrow = tuple[str, str]

ENGINE_FILES = [
    file
    for file in FILES
    if part_of(module_of(file)) == ENGINE
    and not file.is_relative_to("likewise")
    and not file.is_relative_to("search/adapters")
]


def listed(page: str) -> tuple[set[Arrow], set[Arrow]]:
    """The arrows between folders and those between sub-folders, which are listed without `indexer/`."""
    between, inside = (block.partition("```")[0] for block in page.split("```text\n")[1:3])
    return set(_arrows(between)), {(_whole(start), _whole(end)) for start, end in _arrows(inside)}


def _arrows(block: str) -> Iterator[Arrow]:
    for line in block.splitlines():
        start, ends = line.split(" → ")
        yield from ((start, end) for end in ends.split(", "))


def _whole(folder: str) -> str:
    return folder if folder.startswith("search/") else f"indexer/{folder}"


def room(file: Path) -> str:
    """The folder in the first list that a file belongs to."""
    if module_of(file) in VALUES:
        return "values"
    return "/".join(file.parent.parts[:2])


def imported() -> tuple[set[Arrow], set[Arrow]]:
    """The arrows between rooms of the engine and those between the folders of one room, as they are in the source."""
    between, inside = set[Arrow](), set[Arrow]()
    for file in ENGINE_FILES:
        for target in (MODULES[module] for module in edges(file)):
            if target not in ENGINE_FILES:
                continue
            if room(file) != room(target):
                between.add((room(file), room(target)))
            elif file.parent != target.parent:
                inside.add((file.parent.as_posix(), target.parent.as_posix()))
    return between, inside


def test_every_import_between_two_folders_is_listed_and_every_arrow_is_an_import() -> None:
    between, inside = imported()
    by_rule = {(start, end) for start, end in between if end == "values"}
    assert listed(PAGE) == (between - by_rule, inside)
    assert len(by_rule) >= 5


def test_the_lists_are_read_as_they_are_meant() -> None:
    assert listed("```text\nx → x/y, z\n```\n```text\na → b, a/c\nsearch/a → search/a/b\n```") == (
        {("x", "x/y"), ("x", "z")},
        {("indexer/a", "indexer/b"), ("indexer/a", "indexer/a/c"), ("search/a", "search/a/b")},
    )


def test_every_value_is_listed_and_imported_by_another_folder() -> None:
    text = re.search(r"may import the values: (.*?) of\s+`indexer/`", PAGE, re.DOTALL)
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
    described = set(re.findall(r"^\| `((?:indexer|search)[\w/]*)` \|", PAGE, re.MULTILINE))
    assert described == {room(file) for file in ENGINE_FILES} - {"values"}


def test_every_part_has_the_line_of_its_drawing() -> None:
    lines = re.findall(r"^\| `likewise/(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert lines == [(part, drawn["what"]) for part, drawn in sorted(PARTS.items())]


def test_every_step_names_a_function_of_its_files() -> None:
    steps = re.findall(r"^\| .+ \| (`(?:indexer|search|likewise)/.+) \| (`.+`) \|$", PAGE, re.MULTILINE)
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
