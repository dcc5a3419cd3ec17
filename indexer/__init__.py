"""likewise, the writing room: documents in, passages and vectors kept. Names are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indexer.errors import check_system

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_system()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
