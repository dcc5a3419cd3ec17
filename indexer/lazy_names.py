"""Importing the public names of a package on first use, so that importing the package itself takes almost no time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from indexer.errors import check_system


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` (PEP 562) of a package that imports each public name on first use.

    The public names are what the package imports for type checkers alone: `if TYPE_CHECKING: from a import B as B`.
    With `from a import *` they are the public names of `a`.

    Args:
        package: the package's `__name__`.

    The returned `__getattr__` raises UnsupportedSystem on Windows.
    """

    @cache
    def homes() -> dict[str, str]:
        # Read from the byte code, so that each name is written once, and programs without source files work too.
        import dis

        module = sys.modules[package]
        found = dict[str, str]()
        for before, step in pairwise(dis.get_instructions(module.__loader__.get_code(package))):  # type: ignore[union-attr]
            if step.opname != "IMPORT_NAME":
                continue
            for name in before.argval or ():
                if name == "*":
                    found |= dict.fromkeys(import_module(step.argval).__all__, step.argval)
                elif name not in vars(module):
                    found[name] = step.argval
        return found

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check_system()
        return getattr(import_module(homes()[name]), name)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes()})

    return __getattr__, __dir__
