"""The command line in this process, without a name that is not public."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@dataclass(frozen=True)
class Ended:
    """What a command line ended with."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """The lines of the output, each of which is JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        return self.lines[-1]


def call(*arguments: str | Path, stdin: str = "") -> Ended:
    from likewise.__main__ import main

    given, out, err = (io.TextIOWrapper(io.BytesIO(text), encoding="utf-8") for text in (stdin.encode(), b"", b""))
    code: Any = "main returned"
    with (
        patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = exit_.code or 0
    ended = Ended(code, *map(_written, (out, err)))
    assert "Traceback" not in ended.err
    return ended


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@pytest.fixture(scope="session")
def shell() -> Callable[..., Ended]:
    """Runs a command line: `shell("search", folder, "question", "--json")`."""
    return call


@pytest.fixture(autouse=True)
def no_default_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKEWISE_INDEX", raising=False)
