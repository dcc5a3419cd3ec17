"""The writing half of likewise: documents in, an index out. Public names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders import Encoder, Recipe, RecipeSpec, load_encoder
    from indexer.errors import (
        BadInput,
        DiskFull,
        FilterError,
        IndexDamaged,
        IndexLocked,
        IndexUnavailable,
        LikewiseError,
        ModelError,
        NewerFormat,
        NotAnIndex,
        NotPermitted,
        NoWords,
        RecipeMismatch,
        SourceError,
        StorageError,
        TextTooLong,
        UnknownField,
        UnknownUri,
        UnsupportedSystem,
        WordsBuilding,
    )
    from indexer.filters.mapping import Filter
    from indexer.filters.tree import FilterSyntaxError
    from indexer.index import Index
    from indexer.records import Changes, Document, Section
    from indexer.stores.port import CheckReport, Info, Recall

_HOMES = {
    "BadInput": "indexer.errors",
    "Changes": "indexer.records",
    "CheckReport": "indexer.stores.port",
    "DiskFull": "indexer.errors",
    "Document": "indexer.records",
    "Encoder": "indexer.encoders",
    "Filter": "indexer.filters.mapping",
    "FilterError": "indexer.errors",
    "FilterSyntaxError": "indexer.filters.tree",
    "Index": "indexer.index",
    "IndexDamaged": "indexer.errors",
    "IndexLocked": "indexer.errors",
    "IndexUnavailable": "indexer.errors",
    "Info": "indexer.stores.port",
    "LikewiseError": "indexer.errors",
    "ModelError": "indexer.errors",
    "NewerFormat": "indexer.errors",
    "NoWords": "indexer.errors",
    "NotAnIndex": "indexer.errors",
    "NotPermitted": "indexer.errors",
    "Recall": "indexer.stores.port",
    "Recipe": "indexer.encoders",
    "RecipeMismatch": "indexer.errors",
    "RecipeSpec": "indexer.encoders",
    "Section": "indexer.records",
    "SourceError": "indexer.errors",
    "StorageError": "indexer.errors",
    "TextTooLong": "indexer.errors",
    "UnknownField": "indexer.errors",
    "UnknownUri": "indexer.errors",
    "UnsupportedSystem": "indexer.errors",
    "WordsBuilding": "indexer.errors",
    "load_encoder": "indexer.encoders",
}
__all__ = [
    "BadInput",
    "Changes",
    "CheckReport",
    "DiskFull",
    "Document",
    "Encoder",
    "Filter",
    "FilterError",
    "FilterSyntaxError",
    "Index",
    "IndexDamaged",
    "IndexLocked",
    "IndexUnavailable",
    "Info",
    "LikewiseError",
    "ModelError",
    "NewerFormat",
    "NoWords",
    "NotAnIndex",
    "NotPermitted",
    "Recall",
    "Recipe",
    "RecipeMismatch",
    "RecipeSpec",
    "Section",
    "SourceError",
    "StorageError",
    "TextTooLong",
    "UnknownField",
    "UnknownUri",
    "UnsupportedSystem",
    "WordsBuilding",
    "load_encoder",
]

__getattr__ = lazy_names(__name__, _HOMES)
