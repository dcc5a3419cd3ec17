"""Lines of code of the engine and of each part, with their ceilings: `make check` prints them and fails above one.

A line counts if it holds code: docstrings, comments and blank lines do not. The ceilings stand in parts.toml: today's
lines and at most a tenth more. Whoever raises one says why in the commit.
"""

from __future__ import annotations

import ast
import sys

from drawn_parts import DRAWN, ENGINE, PARTS, part_of
from source_imports import MODULES, ROOT


def code_lines(source: str) -> int:
    """Return how many lines of a Python file hold code."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                documented.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    lines = enumerate(source.splitlines(), 1)
    return sum(1 for number, line in lines if number not in documented and line.strip() and line.strip()[0] != "#")


def measured() -> dict[str, tuple[int, int]]:
    """Return the lines and the ceiling of the engine and of each part, by its name."""
    lines = dict.fromkeys((ENGINE, *PARTS), 0)
    for module, file in MODULES.items():
        part = part_of(module)
        if part != ENGINE or module.partition(".")[0] != "likewise":  # which only gives names of other packages
            lines[part] += code_lines((ROOT / file).read_text(encoding="utf-8"))
    ceilings = {ENGINE: DRAWN[ENGINE]["ceiling"], **{part: drawn["ceiling"] for part, drawn in PARTS.items()}}
    return {part: (lines[part], ceilings[part]) for part in lines}


def main() -> None:
    table = measured()
    for part, (lines, ceiling) in table.items():
        sys.stdout.write(f"{part:12} {lines:7,} of {ceiling:,} lines\n")
    above = ", ".join(part for part, (lines, ceiling) in table.items() if lines > ceiling)
    if above:
        sys.exit(f"above the ceiling: {above}; make it smaller, or raise the ceiling in a commit that says why")


if __name__ == "__main__":
    main()
