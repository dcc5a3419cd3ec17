"""The sentences in the source of `indexer` and `search`, read without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from source_imports import FILES, tree

from likewise.shell.program import COMMANDS

SPEAKS_OF_THE_SHELL = re.compile(rf"\blikewise (?:{'|'.join(COMMANDS)})\b|(?<![\w-])--[a-z]")
"""A command or an option."""


@dataclass(frozen=True)
class Sentence:
    """A string in the source; {} stands for a value.

    Attributes:
        for_shell: whether it is an argument `shell` of `Message`, which only the shell prints.
    """

    file: Path
    line: int
    text: str
    for_shell: bool


@cache
def sentences() -> tuple[Sentence, ...]:
    """Every string that speaks of a command or an option; docstrings and declarations of options are left out."""
    return tuple(
        each
        for file in FILES
        for each in _strings(file)
        if SPEAKS_OF_THE_SHELL.search(each.text) and "pip install" not in each.text and not _is_name(each.text)
    )


def _is_name(text: str) -> bool:
    """Return whether a string is nothing but the name of an option."""
    return re.fullmatch(r"--[a-z-]+=?", text) is not None


def _strings(file: Path) -> Iterator[Sentence]:
    shell: set[int] = set()
    skipped: set[int] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            skipped.add(id(node.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Message" and len(node.args) == 2:
            shell.update(map(id, ast.walk(node.args[1])))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "click.option",
            "click.argument",
            "click.Option",
            "options.rare",
            "rare",
        ):
            skipped.update(map(id, ast.walk(node)))
    for node in ast.walk(tree(file)):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values if isinstance(part, ast.Constant))
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield Sentence(file, node.lineno, "".join(parts), id(node) in shell)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Sentence(file, node.lineno, node.value, id(node) in shell)
