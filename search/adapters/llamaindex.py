"""The public import path of the names of `likewise.adapters.llamaindex`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.adapters.llamaindex import LikewiseVectorStore as LikewiseVectorStore
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {"likewise.adapters.llamaindex": ["LikewiseVectorStore"]}, "adapters"
    )
