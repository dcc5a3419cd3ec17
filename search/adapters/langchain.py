"""The public import path of the names of `likewise.adapters.langchain`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.adapters.langchain import LikewiseRetriever as LikewiseRetriever
    from likewise.adapters.langchain import LikewiseVectorStore as LikewiseVectorStore
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {"likewise.adapters.langchain": ["LikewiseRetriever", "LikewiseVectorStore"]}, "adapters"
    )
