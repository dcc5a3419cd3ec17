"""The examples of docs/adapters.md, each run by the tests of its framework, which have it loaded."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"


def run_example(framework: str) -> tuple[list[str], list[str]]:
    """Run the example that imports this framework: return the lines it printed, and the lines that its comments
    promise."""
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = (each for each in examples if f"from {framework}" in each)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, str(PAGE), "exec"), {})
    return printed.getvalue().splitlines(), re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)
