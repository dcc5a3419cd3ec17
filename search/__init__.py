"""The reading half of likewise: questions in, ranked hits out. Public names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.deadline import Deadline
    from indexer.errors import (
        BadInput,
        DeadlinePassed,
        DiskFull,
        FilterError,
        IndexDamaged,
        IndexUnavailable,
        LikewiseError,
        ModelError,
        NewerFormat,
        NotAnIndex,
        NotPermitted,
        NoWords,
        RecipeMismatch,
        StorageError,
        UnknownField,
        UnknownUri,
        WordsBuilding,
    )
    from indexer.filters.mapping import Filter
    from indexer.filters.tree import FilterSyntaxError
    from indexer.records import Document
    from indexer.stores.port import Info
    from search.hits import Hit, Hits
    from search.query import Mode, Query
    from search.searcher import Searcher

_HOMES = {
    "BadInput": "indexer.errors",
    "Deadline": "indexer.deadline",
    "DeadlinePassed": "indexer.errors",
    "DiskFull": "indexer.errors",
    "Document": "indexer.records",
    "Filter": "indexer.filters.mapping",
    "FilterError": "indexer.errors",
    "FilterSyntaxError": "indexer.filters.tree",
    "Hit": "search.hits",
    "Hits": "search.hits",
    "IndexDamaged": "indexer.errors",
    "IndexUnavailable": "indexer.errors",
    "Info": "indexer.stores.port",
    "LikewiseError": "indexer.errors",
    "Mode": "search.query",
    "ModelError": "indexer.errors",
    "NewerFormat": "indexer.errors",
    "NoWords": "indexer.errors",
    "NotAnIndex": "indexer.errors",
    "NotPermitted": "indexer.errors",
    "Query": "search.query",
    "RecipeMismatch": "indexer.errors",
    "Searcher": "search.searcher",
    "StorageError": "indexer.errors",
    "UnknownField": "indexer.errors",
    "UnknownUri": "indexer.errors",
    "WordsBuilding": "indexer.errors",
}
__all__ = [
    "BadInput",
    "Deadline",
    "DeadlinePassed",
    "DiskFull",
    "Document",
    "Filter",
    "FilterError",
    "FilterSyntaxError",
    "Hit",
    "Hits",
    "IndexDamaged",
    "IndexUnavailable",
    "Info",
    "LikewiseError",
    "Mode",
    "ModelError",
    "NewerFormat",
    "NoWords",
    "NotAnIndex",
    "NotPermitted",
    "Query",
    "RecipeMismatch",
    "Searcher",
    "StorageError",
    "UnknownField",
    "UnknownUri",
    "WordsBuilding",
]

__getattr__ = lazy_names(__name__, _HOMES)
