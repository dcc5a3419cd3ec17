"""The public functions do what their types say: a user's program runs. `make check` checks it with `mypy --strict`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from contracts import user_program

ROOT = Path(__file__).parents[2]


def test_a_program_of_a_user_runs_and_is_checked(tmp_path: Path) -> None:
    user_program.main(tmp_path / "x.index")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"] is True
    assert str(Path(user_program.__file__).relative_to(ROOT)) in settings["files"]
