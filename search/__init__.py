"""likewise, the reading room: questions in, ranked hits out. Names are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indexer.errors import check_system

if TYPE_CHECKING:
    from search.hits import Hit, Hits
    from search.searcher import Searcher

_HOMES = {"Hit": "hits", "Hits": "hits", "Searcher": "searcher"}
__all__ = ["Hit", "Hits", "Searcher"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_system()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
