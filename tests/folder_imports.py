"""The imports between the folders of the engine. `make docs` writes them into docs/architecture.md."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from drawn_parts import ENGINE, part_of
from source_imports import FACES, FILES, MODULES, ROOT, VALUES, edges, module_of

PAGE = ROOT / "docs" / "architecture.md"

Arrow = tuple[str, str]

ENGINE_FILES = [
    file
    for file in FILES
    if part_of(module_of(file)) == ENGINE
    and not file.is_relative_to("likewise")
    and not file.is_relative_to("search/adapters")
]

_ROW = re.compile(r"^(\| (?:`((?:indexer|search)[\w/]*)`|the values) \| .+ \|).*\|$", re.MULTILINE)
_BLOCK = re.compile(r"(?<=^## Imports between sub-folders$).*?```text\n(.*?)```", re.MULTILINE | re.DOTALL)


def room(file: Path) -> str:
    """Return the folder of the page's table that a file belongs to, or "values"."""
    if module_of(file) in VALUES:
        return "values"
    return "/".join(file.parent.parts[:2])


def imported() -> tuple[set[Arrow], set[Arrow]]:
    """Return the arrows between rooms of the engine, and the arrows between the folders of one room.

    The `__init__` of a package that only gives names of other files does not count.
    """
    between, inside = set[Arrow](), set[Arrow]()
    for file in (file for file in ENGINE_FILES if module_of(file) not in FACES):
        for target in (MODULES[module] for module in edges(file)):
            if target not in ENGINE_FILES:
                continue
            if room(file) != room(target):
                between.add((room(file), room(target)))
            elif file.parent != target.parent:
                inside.add((file.parent.as_posix(), target.parent.as_posix()))
    return between, inside


def with_imports(page: str, between: Collection[Arrow], inside: Collection[Arrow]) -> str:
    """Return the page with these arrows. Folders of `indexer/` are written without it."""

    def row(found: re.Match[str]) -> str:
        ends = sorted(end for start, end in between if start == (found[2] or "values") and end != "values")
        return f"{found[1]} {', '.join(f'`{short(end)}`' for end in ends) or '-'} |"

    starts = sorted({start for start, _ in inside})
    lines = [
        f"{short(start)} → {', '.join(short(end) for begin, end in sorted(inside) if begin == start)}\n"
        for start in starts
    ]
    page = _ROW.sub(row, page)
    return _BLOCK.sub(lambda block: block[0].replace(f"```text\n{block[1]}", f"```text\n{''.join(lines)}"), page)


def short(folder: str) -> str:
    """Return the name of a folder in the page."""
    return folder.removeprefix("indexer/")


if __name__ == "__main__":
    PAGE.write_text(with_imports(PAGE.read_text(encoding="utf-8"), *imported()), encoding="utf-8")
