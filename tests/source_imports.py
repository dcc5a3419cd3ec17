"""The imports between the files of `indexer`, `search` and `likewise`, read from the source without running it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
VALUES = {
    f"indexer.{name}"
    for name in (
        "columns",
        "deadline",
        "doors",
        "errors",
        "exchange",
        "lazy_names",
        "lazy_pattern",
        "lazy_property",
        "ledger",
        "listener",
        "records",
        "settings",
    )
}
"""Modules that every folder may import, also the folders that their own folder imports."""
FACES = (
    *("indexer", "indexer.encoders", "indexer.sources", "search"),
    *("likewise.readers", "likewise.service", "likewise.workers"),
)
"""Packages whose `__init__` only gives names of other files."""
FILES = sorted(
    path.relative_to(ROOT) for room in ("indexer", "likewise", "search") for path in (ROOT / room).rglob("*.py")
)


def tree(file: Path) -> ast.Module:
    return _trees()[file]


@cache
def _trees() -> dict[Path, ast.Module]:
    """Every file, parsed. With the collection of garbage at work, this takes four times as long."""
    gc.disable()
    trees = {file: ast.parse((ROOT / file).read_text(encoding="utf-8")) for file in FILES}
    gc.freeze()
    gc.enable()
    return trees


def imports(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every module that is imported below a node, with the statement."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from ((alias.name, each) for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            assert each.level == 0, "imports are absolute"
            assert each.module
            yield each.module, each


@cache
def file_imports(file: Path) -> tuple[tuple[str, ast.AST], ...]:
    """Every module that a file imports, with the statement."""
    return tuple(imports(tree(file)))


def module_of(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


@cache
def edges(file: Path) -> frozenset[str]:
    """The modules of ours that a file imports, inside functions and for type checkers too."""
    found: set[str] = set()
    for name, statement in file_imports(file):
        if isinstance(statement, ast.ImportFrom):
            inside = {f"{name}.{alias.name}" for alias in statement.names}
            found |= inside & MODULES.keys() or {name} & MODULES.keys()
        else:
            found |= {name} & MODULES.keys()
    return frozenset(found - {module_of(file)})
