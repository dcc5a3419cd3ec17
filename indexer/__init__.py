"""The writing half of likewise: documents in, an index out. Public names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.errors import BadInput as BadInput
from indexer.errors import DiskFull as DiskFull
from indexer.errors import FilterError as FilterError
from indexer.errors import IndexDamaged as IndexDamaged
from indexer.errors import IndexLocked as IndexLocked
from indexer.errors import IndexUnavailable as IndexUnavailable
from indexer.errors import LikewiseError as LikewiseError
from indexer.errors import ModelError as ModelError
from indexer.errors import NewerFormat as NewerFormat
from indexer.errors import NotAnIndex as NotAnIndex
from indexer.errors import NotPermitted as NotPermitted
from indexer.errors import NoWords as NoWords
from indexer.errors import OlderFormat as OlderFormat
from indexer.errors import RecipeMismatch as RecipeMismatch
from indexer.errors import SourceError as SourceError
from indexer.errors import StorageError as StorageError
from indexer.errors import TextTooLong as TextTooLong
from indexer.errors import UnknownField as UnknownField
from indexer.errors import UnknownUri as UnknownUri
from indexer.errors import UnsupportedSystem as UnsupportedSystem
from indexer.errors import WordsBuilding as WordsBuilding
from indexer.errors import WorkersLost as WorkersLost
from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders import Encoder as Encoder
    from indexer.encoders import Recipe as Recipe
    from indexer.encoders import RecipeSpec as RecipeSpec
    from indexer.encoders import load_encoder as load_encoder
    from indexer.exchange import Embedded as Embedded
    from indexer.filters.mapping import Filter as Filter
    from indexer.filters.tree import FilterSyntaxError as FilterSyntaxError
    from indexer.index import Index as Index
    from indexer.indexing.embedder import Embedder as Embedder
    from indexer.indexing.embedder import Workers as Workers
    from indexer.records import Changes as Changes
    from indexer.records import Document as Document
    from indexer.records import Section as Section
    from indexer.stores.port import CheckReport as CheckReport
    from indexer.stores.port import Info as Info
    from indexer.stores.port import Recall as Recall
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "indexer.encoders": ["Encoder", "Recipe", "RecipeSpec", "load_encoder"],
            "indexer.exchange": ["Embedded"],
            "indexer.filters.mapping": ["Filter"],
            "indexer.filters.tree": ["FilterSyntaxError"],
            "indexer.index": ["Index"],
            "indexer.indexing.embedder": ["Embedder", "Workers"],
            "indexer.records": ["Changes", "Document", "Section"],
            "indexer.stores.port": ["CheckReport", "Info", "Recall"],
        },
    )
