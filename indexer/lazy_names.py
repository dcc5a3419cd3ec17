"""Importing the public names of a package on first use, so that importing the package itself takes almost no time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from indexer.doors import has_part
from indexer.errors import LikewiseError, check_system, to_install


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]], part: str = ""
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__all__`, the `__getattr__` and the `__dir__` (PEP 562) of a package that imports names on first use.

    Args:
        package: the package's `__name__`.
        names: the names to import, by their module. Errors that the package has imported itself are public too.
        part: the part of likewise that holds the names, if the package is a public path of the engine.

    The returned `__getattr__` raises UnsupportedSystem on Windows, and ImportError with what to install if the part is
    missing.
    """
    modules = {name: module for module, listed in names.items() for name in listed}
    imported = vars(sys.modules[package])
    errors = [name for name, value in imported.items() if isinstance(value, type) and issubclass(value, LikewiseError)]

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check_system()
        if part and not has_part(part):
            raise ImportError(f"{package} needs a part of likewise that is not installed ({part}): {to_install()}")
        return getattr(import_module(modules[name]), name)

    def __dir__() -> list[str]:
        return sorted({*imported, *modules})

    return sorted({*modules, *errors}), __getattr__, __dir__
