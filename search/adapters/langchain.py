"""The public path of what `likewise.adapters.langchain` holds."""

from indexer.doors import installed

with installed("adapters"):
    from likewise.adapters.langchain import LikewiseRetriever as LikewiseRetriever
    from likewise.adapters.langchain import LikewiseVectorStore as LikewiseVectorStore
