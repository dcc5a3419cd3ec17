"""The outcome of a command line, for the fixture that calls it and for tests that call it in other processes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """The outcome of a command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of the output, which with --json is an object."""
        return json.loads(self.out.splitlines()[-1])
