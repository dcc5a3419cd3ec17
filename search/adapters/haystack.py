"""The public import path of the names of `likewise.adapters.haystack`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.adapters.haystack import LikewiseBM25Retriever as LikewiseBM25Retriever
    from likewise.adapters.haystack import LikewiseDocumentStore as LikewiseDocumentStore
    from likewise.adapters.haystack import LikewiseEmbeddingRetriever as LikewiseEmbeddingRetriever
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "likewise.adapters.haystack": [
                "LikewiseBM25Retriever",
                "LikewiseDocumentStore",
                "LikewiseEmbeddingRetriever",
            ]
        },
        "adapters",
    )
