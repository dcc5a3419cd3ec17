"""The lines of docs/format.md that look into a catalog print what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_lines_of_the_page_look_into_a_catalog(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "golden" / "files" / "golden.index", tmp_path / "papers.index")
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / "format.md").read_text(encoding="utf-8"), re.DOTALL)
    shown = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert [shlex.split(line)[:2] for line, _ in shown] == [
        ["sqlite-utils", command] for command in ("tables", "rows", "query", "schema")
    ]
    for line, output in shown:
        program, *arguments = shlex.split(line)
        said = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        assert said.stdout == output
