"""The reading half of likewise: questions in, ranked hits out. Public names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.errors import BadInput as BadInput
from indexer.errors import DeadlinePassed as DeadlinePassed
from indexer.errors import DiskFull as DiskFull
from indexer.errors import FilterError as FilterError
from indexer.errors import IndexDamaged as IndexDamaged
from indexer.errors import IndexUnavailable as IndexUnavailable
from indexer.errors import LikewiseError as LikewiseError
from indexer.errors import ModelError as ModelError
from indexer.errors import NewerFormat as NewerFormat
from indexer.errors import NotAnIndex as NotAnIndex
from indexer.errors import NotPermitted as NotPermitted
from indexer.errors import NoWords as NoWords
from indexer.errors import OlderFormat as OlderFormat
from indexer.errors import RecipeMismatch as RecipeMismatch
from indexer.errors import StorageError as StorageError
from indexer.errors import UnknownField as UnknownField
from indexer.errors import UnknownUri as UnknownUri
from indexer.errors import WordsBuilding as WordsBuilding
from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.deadline import Deadline as Deadline
    from indexer.filters.mapping import Filter as Filter
    from indexer.filters.tree import FilterSyntaxError as FilterSyntaxError
    from indexer.records import Document as Document
    from indexer.stores.port import Info as Info
    from indexer.stores.port import Passage as Passage
    from search.async_searcher import AsyncSearcher as AsyncSearcher
    from search.hits.hits import Hit as Hit
    from search.hits.hits import Hits as Hits
    from search.query.query import Mode as Mode
    from search.query.query import Query as Query
    from search.searcher import Searcher as Searcher
    from search.searcher import search_indexes as search_indexes
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "indexer.deadline": ["Deadline"],
            "indexer.filters.mapping": ["Filter"],
            "indexer.filters.tree": ["FilterSyntaxError"],
            "indexer.records": ["Document"],
            "indexer.stores.port": ["Info", "Passage"],
            "search.async_searcher": ["AsyncSearcher"],
            "search.hits.hits": ["Hit", "Hits"],
            "search.query.query": ["Mode", "Query"],
            "search.searcher": ["Searcher", "search_indexes"],
        },
    )
