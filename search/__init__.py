"""likewise, the reading room: questions in, ranked hits out. Names are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from search.hits import Hit, Hits
    from search.searcher import Searcher

_HOMES = {"Hit": "hits", "Hits": "hits", "Searcher": "searcher"}
__all__ = ["Hit", "Hits", "Searcher"]

__getattr__ = lazy_names(__name__, _HOMES)
