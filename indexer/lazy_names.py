"""Importing the public names of a package on first use, so that importing the package itself takes almost no time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from indexer.errors import check_system


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` (PEP 562) of a package that imports each public name when it is first used.

    Args:
        package: the package's `__name__`.
        homes: module that defines each public name.

    The returned function raises UnsupportedSystem on Windows.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check_system()
        return getattr(import_module(homes[name]), name)

    return __getattr__
