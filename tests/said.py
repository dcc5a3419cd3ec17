"""The outcome of a command line, for the fixture that calls it and for tests that call it in other processes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Said:
    """The outcome of a command line."""

    code: int
    out: str
    err: str
    line: str = field(default="", compare=False)
    """The command line, for the messages of failed checks."""

    def __str__(self) -> str:
        return f"likewise {self.line}\nexit code {self.code}\noutput:\n{self.out}\nstandard error:\n{self.err}"

    @property
    def json(self) -> Any:
        """The last line of the output, which with --json is an object."""
        return json.loads(self.out.splitlines()[-1])

    def succeeded(self) -> Said:
        """Check that the exit code is 0, and return this outcome."""
        __tracebackhide__ = True
        assert self.code == 0, f"the command failed: {self}"
        return self

    def reported(self, code: int, /, **members: Any) -> Said:
        """Check the exit code and these members of the JSON object, and return this outcome."""
        __tracebackhide__ = True
        assert self.code == code, f"the exit code is not {code}: {self}"
        found = {name: value for name, value in self.json.items() if name in members}
        assert found == members, f"the JSON object has {found} and not {members}: {self}"
        return self

    def failed(self, code: int, *parts: str) -> str:
        """Check that the command printed one error and nothing else, and return its text.

        Args:
            code: the exit code
            parts: texts that the error contains
        """
        __tracebackhide__ = True
        assert self.code == code, f"the exit code is not {code}: {self}"
        error = re.fullmatch("likewise: error: (.*)\n", self.err)
        assert error, f"standard error is not one line with an error: {self}"
        assert self.out == "", f"the command printed more than an error: {self}"
        missing = [part for part in parts if part not in error[1]]
        assert missing == [], f"the error does not contain {missing}: {self}"
        return error[1]
