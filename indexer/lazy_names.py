"""Importing the public names of a package on first use, so that importing the package itself takes almost no time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from indexer.errors import LikewiseError, check_system


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__all__`, the `__getattr__` and the `__dir__` (PEP 562) of a package that imports names on first use.

    Args:
        package: the package's `__name__`.
        names: the names to import, by their module. Errors that the package has imported itself are public too.

    The returned `__getattr__` raises UnsupportedSystem on Windows.
    """
    modules = {name: module for module, listed in names.items() for name in listed}
    imported = vars(sys.modules[package])
    errors = [name for name, value in imported.items() if isinstance(value, type) and issubclass(value, LikewiseError)]

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check_system()
        return getattr(import_module(modules[name]), name)

    def __dir__() -> list[str]:
        return sorted({*imported, *modules})

    return sorted({*modules, *errors}), __getattr__, __dir__
