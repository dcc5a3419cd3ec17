"""likewise, the writing room: documents in, passages and vectors kept. Names are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders import Recipe, load_encoder
    from indexer.errors import LikewiseError
    from indexer.index import Index
    from indexer.records import Changes, Document, Section

_HOMES = {
    "Changes": "records",
    "Document": "records",
    "Index": "index",
    "LikewiseError": "errors",
    "Recipe": "encoders",
    "Section": "records",
    "load_encoder": "encoders",
}
__all__ = ["Changes", "Document", "Index", "LikewiseError", "Recipe", "Section", "load_encoder"]

__getattr__ = lazy_names(__name__, _HOMES)
