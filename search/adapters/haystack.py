"""The public path of what `likewise.adapters.haystack` holds."""

from indexer.doors import installed

with installed("adapters"):
    from likewise.adapters.haystack import LikewiseBM25Retriever as LikewiseBM25Retriever
    from likewise.adapters.haystack import LikewiseDocumentStore as LikewiseDocumentStore
    from likewise.adapters.haystack import LikewiseEmbeddingRetriever as LikewiseEmbeddingRetriever
