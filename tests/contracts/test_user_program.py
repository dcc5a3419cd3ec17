"""What users call is typed: a program of theirs passes `mypy --strict`, and does what its types say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = Path(__file__).parents[2]


def test_a_program_of_a_user_passes_mypy_and_runs(tmp_path: Path) -> None:
    mypy = ["-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={ROOT / '.mypy_cache'}", PROGRAM]
    for arguments, said in ((mypy, "Success"), ([PROGRAM, tmp_path / "x.index"], "ok")):
        ended = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout[:7].strip()) == (0, said), ended.stdout + ended.stderr
